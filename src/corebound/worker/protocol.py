"""What runner and worker say to one another: JSON lines over two pipes.

Standard library only: this module is imported under every environment's Python.

The runner writes one `Request`, then `GO`, then closes the pipe. The worker
answers with one message a line: `phase` as each part of its set-up ends,
`ready` once the first iteration is through (pools exist and are sized),
`samples` in pieces, and `end`; or `failure` in place of the rest. Where operators
are asked for, one `profile` stands in place of the samples. It stays
alive until its request pipe closes, so that the runner can look at it last.

Workers that alternate are told when over a socket of their own: each says its place
once, then waits for one byte before every stint, and answers with one after it. Where
nothing comes any more it goes on alone; one that is through closes the socket.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, TypeVar

GO = b"go\n"

# A worker's stint begins, and has ended.
YOURS = b"g"
DONE = b"."
# Iterations go on within a stint until this much has been timed. As short as handing over
# (some 0.1 ms) allows: what disturbs a host comes and goes within milliseconds, so that of
# stints of 1, 4, 10 and 60 ms the ratio of two equal launches varied by 0.8, 1.6, 2.8 and
# 9 % (`python -m benchmarks.alternation`).
STINT_NS = 1_000_000

# Where a worker finds its pipes, whatever bound it on the way.
REQUEST_FD = 3
REPLY_FD = 4

# The variables that steer thread pools and memory: that they reached the worker
# is part of the proof of binding.
STEERING = (
    "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLIS_", "NUMEXPR_", "TF_NUM_", "LD_PRELOAD",
    "MALLOC_", "DNNL_", "ONEDNN_", "CUDA_VISIBLE_DEVICES",
)  # fmt: skip

# The variables by which a server's workers learn what they are to do, for servers hand their
# environment on: the size of images, threads (where any are asked for), the server's
# distribution, and the folder that each tells in what it got.
SERVED_IMAGE = "COREBOUND_SERVED_IMAGE"
SERVED_THREADS = "COREBOUND_SERVED_THREADS"
SERVED_BY = "COREBOUND_SERVED_BY"
SERVED_REPORTS = "COREBOUND_SERVED_REPORTS"

# One message stays well under what a reader should have to buffer.
SAMPLES_A_MESSAGE = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What one worker is to do.

    Attributes:
        target: `module:function` that returns the step, or None for `command`.
        command: The words of a command timed whole, or None.
        parameters: Keyword arguments of the function.
        framework: Whose adapter seeds it, sets its threads and describes it.
        intra_op, inter_op: Threads the framework is told to use; None: not told.
        iterations: How many to time, the first included.
        seed: For every generator of random numbers the framework has.
        path: Directories that `target` may be imported from, before others; after
            them where the project under test is measured.
        gpus: How many GPUs the function is to compute on; it is told only if not 0.
        operators: None: time the iterations. Else time none of them, and put so
            many, warm ones, under the framework's own profiler instead.
        project: Whether the environment holds the project under test, which nothing
            else that bears its name may stand before.
        baton: The abstract socket at which it hears when its stints are, where it
            alternates with other workers; None: it iterates without a break.
        place: Which of those workers it is, from 0.
        awaits: Whether the function, its step, its check and its teardown may be
            asynchronous: what they return is then awaited, on one event loop.
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
    gpus: int = 0
    operators: int | None = None
    project: bool = False
    baton: str | None = None
    place: int = 0
    awaits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One part of a worker's life ended: `import`, `setup` or `first`."""

    kind: Literal["phase"] = "phase"
    name: str
    duration_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The first iteration is through; the worker waits for `GO`.

    Attributes:
        threads_used: What the framework says its intra-op pool has; None
            where it has no such figure.
        inter_op_used: Likewise between operators.
        python: Version of the interpreter.
        versions: The framework's and its libraries' versions, by name.
        blas: The BLAS that is in use, with its version, where there is one.
        environment: The environment variables that steer threads, as the
            worker itself sees them.
        work: What one iteration does, counted by unit: `flop`, `images`, `tokens`;
            empty where the workload does not say.
    """

    kind: Literal["ready"] = "ready"
    threads_used: int | None
    inter_op_used: int | None
    python: str
    versions: dict[str, str]
    blas: str | None
    environment: dict[str, str]
    work: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Durations and CPU time of consecutive iterations, in nanoseconds.

    `cpu_ns` is the CPU time of the worker's process (of the command, where
    one is timed) over the same iterations, one for one.
    """

    kind: Literal["samples"] = "samples"
    wall_ns: list[int]
    cpu_ns: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stints:
    """Consecutive stints of a worker that alternates with others, one for one.

    Attributes:
        iterations: How many iterations each has; together they are those after the first.
        began_us: When each began, in microseconds since the worker was told to go.
    """

    kind: Literal["stints"] = "stints"
    iterations: list[int]
    began_us: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """All operators of one type, by their own time: what those within them took is not theirs.

    Attributes:
        type: As the framework calls it.
        calls: An iteration.
        total_ns: An iteration; of any moment that operators of several threads
            share, each has an equal part.
        quiet_ns: The same of an undisturbed iteration: each call at its shortest.
        min_ns, max_ns: One call, over all iterations.

    The last three are None where a profile made elsewhere does not tell them.
    """

    type: str
    calls: float
    total_ns: int
    quiet_ns: int | None
    min_ns: int | None
    max_ns: int | None

    @property
    def mean_ns(self) -> float:
        """One call; 0 for a type that was not called in the iterations that count."""
        return self.total_ns / self.calls if self.calls else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Where an iteration's time goes; `operators` and `outside_ns` add up to `step_ns`.

    Attributes:
        iterations: How many were profiled.
        step_ns: Wall time of an iteration under the profiler.
        outside_ns: The part of it in which no operator ran.
        operators: By type, the most time first.
        phases: Time in operators an iteration, by what they are for (`forward`,
            `backward`, `update`, `data`); empty where the framework does not tell.
        trace: A Chrome trace of the iterations, in the worker's own folder.
    """

    kind: Literal["profile"] = "profile"
    iterations: int
    step_ns: int
    outside_ns: int
    operators: list[Operator]
    phases: dict[str, int]
    trace: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """All iterations are through and the step was torn down.

    Attributes:
        allowed: For a command, every different set of CPUs that its process
            was allowed as it ended; None otherwise.
    """

    kind: Literal["end"] = "end"
    allowed: list[list[int]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """The worker could not go on; `mend` is None where it cannot know.

    The traceback, if there is one, went to the worker's standard error.
    """

    kind: Literal["failure"] = "failure"
    during: str
    what: str
    mend: str | None


Message = Phase | Ready | Samples | Stints | Profile | End | Failure

_KINDS: dict[str, type[Message]] = {
    "phase": Phase,
    "ready": Ready,
    "samples": Samples,
    "stints": Stints,
    "profile": Profile,
    "end": End,
    "failure": Failure,
}


class WireError(ValueError):
    """A line that is not of this protocol."""


def encode(message: Request | Message) -> bytes:
    """Write a message as one line."""
    return json.dumps(asdict(message), separators=(",", ":")).encode() + b"\n"


T = TypeVar("T")


def _build(kind: type[T], document: Any) -> T:
    try:
        if kind is Profile:
            document["operators"] = [Operator(**row) for row in document["operators"]]
        return kind(**document)
    except (KeyError, TypeError) as error:
        raise WireError(f"not a {kind.__name__}: {error}") from None


def decode_request(line: bytes) -> Request:
    """Read the runner's request.

    Raises:
        WireError: the line is not a request.
    """
    try:
        return _build(Request, json.loads(line))
    except json.JSONDecodeError as error:
        raise WireError(f"not JSON: {error}") from None


def decode_message(line: bytes) -> Message:
    """Read one of the worker's messages.

    Raises:
        WireError: the line is no message of this protocol.
    """
    try:
        document = json.loads(line)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise WireError(f"not JSON: {error}") from None
    kind = _KINDS.get(str(document.get("kind"))) if isinstance(document, dict) else None
    if kind is None:
        raise WireError(f"not a message of a worker: {line[:80]!r}")
    return _build(kind, document)
