"""The protocol between runner and worker: JSON lines over two pipes.

Uses only the standard library, because every environment's Python imports this module.

The runner writes one `Request`, `SET_UP`, `GO`, then closes the pipe. `GO` says whether the worker
alternates with others. Until then it does the same either way, so that its heap is alike: how
often the C library returns memory to the kernel depends on that. The worker answers with one
message per line:

- `phase` when it has imported, after which it waits for `SET_UP`, and when each part of its setup
  ends;
- `ready` after the first iteration, when thread pools exist and are sized;
- `samples`, in several messages, or one `profile` if operators are requested; those of long
  iterations as soon as they end, so that they count if the launch is ended;
- `end`.

On an error it sends `failure` instead of the remaining messages. It stays alive until
its request pipe closes, so that the runner can take a last sample of its threads.

Workers that alternate use an additional socket, named by `Alternates`. Each sends the number of its
launch once, then waits for one byte before every time slice, and sends one byte after it. After
its last time slice it sends `FINISHED` and waits until the others have finished too, so that its
teardown disturbs none of them. If the socket closes, it continues alone.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeVar, Union

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform

    from corebound.worker.operator_table import Profile
else:

    def dataclass_transform(**_options: bool) -> Callable[[type], type]:
        """Tells a type checker what the fields of a `Struct` are; does nothing at run time."""
        return lambda kind: kind


SET_UP = b"set-up\n"
GO = b"go\n"

# The bytes that start a worker's time slice, start its last one, which takes all remaining
# iterations, and report the end of a time slice and of the last one.
YOURS = b"g"
ALL_YOURS = b"a"
HAND_OVER = b"."
FINISHED = b"!"
# A time slice ends once this many iterations of at least this total duration have been timed. It
# is as short as handing over (about 0.2 ms) allows, because disturbances of a host may last only
# milliseconds. With time slices of 1, 4, 10 and 60 ms, the ratio of two equal launches varied by
# 0.8, 1.6, 2.8 and 9 % on a busy host. Its first iteration finds the caches filled by others and
# is left out (`stats.launch_summary`), so there are at least two more.
TIME_SLICE_NS = 1_000_000
TIME_SLICE_ITERATIONS = 3
# An iteration or a time slice of this length is reported as soon as it ends. Reporting takes about
# 0.1 ms, between iterations.
LONG_NS = 200_000_000

# The descriptors of a worker's pipes, whichever binding backend started it.
REQUEST_FD = 3
REPLY_FD = 4

# The variables that control thread pools and memory. Verification checks that the worker
# received them.
STEERING = (
    "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLIS_", "NUMEXPR_", "TF_NUM_", "NPROC", "XLA_",
    "LD_PRELOAD", "MALLOC_", "DNNL_", "ONEDNN_", "CUDA_VISIBLE_DEVICES",
)  # fmt: skip

# The variables that configure a server's workers, which inherit the server's environment: the
# words that a text and its answer may have, and the texts that a worker writes at once; the size
# of images, and the runtime that classifies them; the number of threads (if requested), the
# server's distribution, the file of the model (if it has no other way to learn it), and the
# folder in which each worker reports its setup.
SERVED_CONTEXT = "COREBOUND_SERVED_CONTEXT"
SERVED_SLOTS = "COREBOUND_SERVED_SLOTS"
SERVED_IMAGE = "COREBOUND_SERVED_IMAGE"
SERVED_RUNTIME = "COREBOUND_SERVED_RUNTIME"
SERVED_THREADS = "COREBOUND_SERVED_THREADS"
SERVED_BY = "COREBOUND_SERVED_BY"
SERVED_MODEL = "COREBOUND_SERVED_MODEL"
SERVED_REPORTS = "COREBOUND_SERVED_REPORTS"

# The maximum number of samples per message, to limit what a reader has to buffer.
SAMPLES_A_MESSAGE = 10_000


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Struct:
    """An immutable record whose fields are its annotations, given by name.

    Like a frozen dataclass, but importing `dataclasses` and generating the code of these few
    classes would take a quarter of the start of a worker without a framework.
    """

    def __init__(self, **values: Any) -> None:
        """Set the fields.

        Raises:
            TypeError: a field without default is missing, or there is no field of a name.
        """
        names = type(self).__annotations__
        unknown = values.keys() - names.keys()
        missing = [name for name in names if name not in values and not hasattr(self, name)]
        if unknown or missing:
            raise TypeError(f"unknown: {sorted(unknown)}, missing: {missing}")
        self.__dict__.update(values)

    def __setattr__(self, name: str, _value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable: {name}")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and fields(other) == fields(self)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in fields(self).items())
        return f"{type(self).__name__}({values})"

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**{**fields(self), **changes})


def fields(record: object) -> dict[str, Any]:
    """The values of a record's fields by name."""
    return {name: getattr(record, name) for name in type(record).__annotations__}


class Request(Struct):
    """The task of one worker.

    Attributes:
        target: `module:function` that returns the step, or None for `command`.
        command: The command line of an external command timed as a whole, or None.
        prepare: The command that runs before each iteration of `command`, or None.
        cleanup: The command that runs once, after the last iteration, or None.
        parameters: Keyword arguments of the function.
        framework: Selects the adapter that seeds, configures and describes the framework.
        intra_op, inter_op: The framework's thread counts; None: the framework default.
        iterations: The number of iterations to time, including the first.
        enough_ns: If not None, stop earlier: once the iterations have taken this long in total,
            but not before there are `least_iterations`.
        least_iterations: See `enough_ns`.
        most_ns: If not None, stop once the iterations have taken this long in total, however few
            they are.
        seed: The seed of all the framework's random number generators.
        path: Directories to import `target` from. They come first in the search path, or
            last if the project under test is measured.
        fallback_path: Directories to import from if a module is found nowhere else.
        gpus: The number of GPUs to compute on; passed to the function only if not 0.
        operators: None: time the iterations. Otherwise, time none, and run this many
            warm iterations under the framework's own profiler instead.
        project: Whether the environment holds the project under test. No other module of
            the same name may then take precedence.
        metrics: How the values that a command reports are found, as fields of `MetricSource`.
        awaits: Whether the function, its step, its check and its teardown may be
            asynchronous. Their results are then awaited, on one event loop.
        programs: The folder in which a command is searched before PATH; None: none.
    """

    target: str | None
    command: list[str] | None
    parameters: dict[str, str | int | float | bool]
    framework: str
    intra_op: int | None
    inter_op: int | None
    iterations: int
    seed: int
    path: list[str]
    enough_ns: int | None = None
    least_iterations: int = 1
    most_ns: int | None = None
    gpus: int = 0
    operators: int | None = None
    project: bool = False
    awaits: bool = False
    prepare: list[str] | None = None
    cleanup: list[str] | None = None
    fallback_path: Sequence[str] = ()
    metrics: Sequence[Mapping[str, Any]] = ()
    programs: str | None = None


class MetricSource(Struct):
    """How a value that a command reports is found.

    Attributes:
        path: Its path in JSON: keys, indices, and None for every item of a list; None for `regex`.
        samples: The path of the tool's own samples, or None.
        regex: The regular expression whose group is the value.
        all_matches: Whether each match of it is a sample.
        file: The file that contains it; None: the command's output.
    """

    name: str
    path: Sequence[str | int | None] | None = None
    samples: Sequence[str | int | None] | None = None
    regex: str | None = None
    all_matches: bool = False
    file: str | None = None


class Alternates(Struct):
    """How a worker alternates with others.

    Attributes:
        turn_signal: The abstract socket that signals its time slices.
        turn_number: The number of its launch among those that alternate, from 0.
    """

    turn_signal: str
    turn_number: int


class Phase(Struct):
    """One phase of a worker has ended: `import`, `setup` or `first` (the first iteration)."""

    kind: Literal["phase"] = "phase"
    name: str
    duration_ns: int


class Ready(Struct):
    """The first iteration has ended; the worker waits for `GO`.

    Attributes:
        threads_used: The size of the framework's intra-op pool as it reports it; None
            if it reports none.
        inter_op_used: The size of the inter-op pool, likewise.
        versions: The framework's and its libraries' versions, by name.
        blas: The BLAS in use, with its version, if there is one.
        environment: The environment variables that control threads and memory, as the
            worker itself sees them.
        work: The work of one iteration by unit: `flop`, `images`, `tokens`; empty if the
            workload does not report it.
        pins_threads: Whether the framework binds each of its threads to a part of the CPUs
            that the worker may use.
    """

    kind: Literal["ready"] = "ready"
    threads_used: int | None
    inter_op_used: int | None
    python: str
    versions: dict[str, str]
    blas: str | None
    environment: dict[str, str]
    work: dict[str, float]
    pins_threads: bool = False


class Samples(Struct):
    """Durations and CPU time of consecutive iterations, in nanoseconds.

    `cpu_ns` holds the CPU time of the worker's process (or of the command, if one is
    timed) for each of the same iterations. `metrics` holds, for each of them and each metric of
    the request, the value and the samples that the command reported; None without metrics.
    """

    kind: Literal["samples"] = "samples"
    wall_ns: list[int]
    cpu_ns: list[int]
    metrics: Sequence[Sequence[Sequence[float]]] | None = None


class TimeSlices(Struct):
    """Consecutive time slices of a worker that alternates with others.

    Attributes:
        iterations: The number of iterations in each; together, all but the first iteration.
        began_us: The start of each, in microseconds since the start of the timed loop.
    """

    kind: Literal["stints"] = "stints"
    iterations: list[int]
    began_us: list[int]


class End(Struct):
    """All iterations have ended and the workload has been torn down.

    Attributes:
        allowed: For a command, every distinct CPU affinity set that its process
            had when it ended; None otherwise.
        threads_after: The framework's setting of intra-op threads after the last iteration;
            None if it has none that can be read.
    """

    kind: Literal["end"] = "end"
    allowed: list[list[int]] | None = None
    threads_after: int | None = None


# How a process failed: by an error that it reported or an exit code of its own; by a signal for
# what it did itself, such as SIGSEGV; or by a signal from outside, such as the OOM killer's.
EndedBy = Literal["error", "crash", "kill"]
# Source: signal(7), the signals whose action is to dump core, without those of a terminal or limit.
_CRASHES = ("SIGILL", "SIGTRAP", "SIGABRT", "SIGBUS", "SIGFPE", "SIGSEGV", "SIGSYS")


def ended_by(code: int) -> EndedBy:
    """How a process failed, by its exit code; negative: the signal that ended it.

    >>> ended_by(1), ended_by(-11), ended_by(-9), ended_by(137)
    ('error', 'crash', 'kill', 'kill')
    """
    # A shell or a launcher passes on that its child got SIGKILL or SIGTERM.
    if code >= 0 and code not in {128 + signal.SIGKILL, 128 + signal.SIGTERM}:
        return "error"
    return "crash" if -code in {getattr(signal, name) for name in _CRASHES} else "kill"


class Failure(Struct):
    """The worker failed; `fix` is the suggested fix, or None if the worker knows none.

    The worker writes the traceback, if there is one, to its standard error.
    """

    kind: Literal["failure"] = "failure"
    during: str
    what: str
    fix: str | None
    ended_by: EndedBy = "error"


Message = Union[Phase, Ready, Samples, TimeSlices, "Profile", End, Failure]

_KINDS: Mapping[str, Callable[..., Message]] = {
    "phase": Phase,
    "ready": Ready,
    "samples": Samples,
    "stints": TimeSlices,
    "end": End,
    "failure": Failure,
}


class WireError(ValueError):
    """A line that does not conform to this protocol."""


def encode(message: Request | Message) -> bytes:
    """Encode a message as one line."""
    text = json.dumps(fields(message), separators=(",", ":"), default=fields)
    return text.encode() + b"\n"


def encode_go(alternates: Alternates | None, most_ns: int | None = None) -> bytes:
    """The line that starts a worker's loop.

    Args:
        alternates: How the worker alternates; None if it iterates without interruption.
        most_ns: As in `Request.most_ns`, for what a budget leaves; None: as requested.

    >>> encode_go(Alternates(turn_signal="socket", turn_number=1), 500).decode().split()
    ['go', '500', 'socket', '1']
    """
    words = [GO.strip(), b"-" if most_ns is None else b"%d" % most_ns]
    if alternates is not None:
        words += [alternates.turn_signal.encode(), b"%d" % alternates.turn_number]
    return b" ".join(words) + b"\n"


def decode_go(line: bytes) -> tuple[Alternates | None, int | None]:
    """How a worker alternates and the time that it has, as passed to `encode_go`.

    Raises:
        WireError: the line does not start a loop.
    """
    match line.split():
        case [b"go", most, *rest] if len(rest) in {0, 2} and (most == b"-" or most.isdigit()):
            alternates = (
                Alternates(turn_signal=rest[0].decode(), turn_number=int(rest[1])) if rest else None
            )
            return alternates, None if most == b"-" else int(most)
        case _:
            raise WireError(f"not the start of a loop: {line[:80]!r}")


T = TypeVar("T")


def _build(kind: Callable[..., T], document: Any) -> T:
    try:
        return kind(**document)
    except (KeyError, TypeError) as error:
        raise WireError(f"not a message: {error}") from None


def decode_request(line: bytes) -> Request:
    """Decode the runner's request.

    Raises:
        WireError: the line is not a request.
    """
    try:
        return _build(Request, json.loads(line))
    except json.JSONDecodeError as error:
        raise WireError(f"not JSON: {error}") from None


def decode_message(line: bytes) -> Message:
    """Decode one of the worker's messages.

    Raises:
        WireError: the line is not a message of this protocol.
    """
    try:
        document = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise WireError(f"not JSON: {error}") from None
    name = str(document.get("kind")) if isinstance(document, dict) else ""
    if name == "profile":
        # Import it only here: few workers send one.
        table = importlib.import_module("corebound.worker.operator_table")
        profile: Profile = _build(table.profile_from_fields, document)
        return profile
    kind = _KINDS.get(name)
    if kind is None:
        raise WireError(f"not a message of a worker: {line[:80]!r}")
    return _build(kind, document)


class MessageWriter:
    """A child's connection to the runner: sends messages and holds the current phase of the work.

    Attributes:
        during: The current phase, for failures.
    """

    def __init__(self, stream: BinaryIO, encode: Callable[[Any], bytes] = encode) -> None:
        self._stream = stream
        self._encode = encode
        self.during = "start"

    def send(self, message: Any) -> None:
        """Write one message and flush it: the runner waits for it."""
        self._stream.write(self._encode(message))
        self._stream.flush()


class ErrorBoundary:
    """A child's outermost error handler: reports any exception to the runner as a `Failure`.

    It catches exceptions of every class. A workload that calls sys.exit() or is interrupted
    ends its launch like one that raises, and the runner learns the reason only from this report.

    Attributes:
        failed: Whether there was an exception.
    """

    def __init__(
        self,
        messages: MessageWriter,
        describe: Callable[[BaseException], tuple[str, str | None] | None],
    ) -> None:
        """Prepare the boundary.

        Args:
            describe: What is wrong and how to fix it, for an exception that is meant for the
                user; None for any other, whose traceback is printed.
        """
        self._messages = messages
        self._describe = describe
        self.failed = False

    def __enter__(self) -> None:
        """Enter the context."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if error is None:
            return False
        description = self._describe(error)
        # That of a command that the workload ran.
        how: EndedBy = "error" if description is None else getattr(error, "ended_by", "error")
        if description is None:
            name = type(error).__name__
            description = f"{name}: {str(error) or name}", None
            sys.excepthook(type(error), error, error.__traceback__)
        what, fix = description
        self._messages.send(Failure(during=self._messages.during, what=what, fix=fix, ended_by=how))
        self.failed = True
        return True
