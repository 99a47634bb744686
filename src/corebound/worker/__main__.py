"""The worker's entry point: runs and times one workload in the framework's environment.

The process is started as `python -m corebound.worker`. It reads its request from
descriptor 3 and writes its reply to descriptor 4. It imports nothing large before it has
read the request, and times the workload's imports as a phase.
"""

from __future__ import annotations

import gc
import importlib
import os
import stat
import sys
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

from corebound.worker import protocol
from corebound.worker.protocol import ErrorBoundary, MessageWriter
from corebound.worker.timing import SocketTurnSignal, Timings, iterate
from corebound.worker.workload import Workload, WorkloadError, find_function

if TYPE_CHECKING:
    from corebound.worker.operator_table import Profile


def _adapter_of(framework: str) -> str:
    """The module that adapts the worker to a framework, named after it."""
    name = "python" if framework == "none" else framework.replace("-", "_")
    return f"corebound.worker.adapters.{name}"


# Steps between the first and the profiled ones, in which caches fill and graphs are traced.
WARM_UP_STEPS = 3


class Phase:
    """Times one phase of the setup and reports its duration."""

    def __init__(self, reply: MessageWriter, name: str) -> None:
        self._reply = reply
        self._name = name

    def __enter__(self) -> None:
        self._reply.during = self._name
        self._began_ns = time.perf_counter_ns()

    def __exit__(self, kind: object, _error: object, _trace: object) -> None:
        if kind is None:
            duration_ns = time.perf_counter_ns() - self._began_ns
            self._reply.send(protocol.Phase(name=self._name, duration_ns=duration_ns))


def steering_environment() -> dict[str, str]:
    """The environment variables that control threads and memory, as this process sees them."""
    return {name: value for name, value in os.environ.items() if name.startswith(protocol.STEERING)}


def _time_first(workload: Workload, timings: Timings) -> None:
    """Time the first iteration, then check its result, before any other timing counts."""
    results: list[object] = []
    timings.measure(
        lambda: results.append(workload.step()),
        iterations=1,
        wall_ns=time.perf_counter_ns,
        cpu_ns=workload.cpu_ns,
        prepare=workload.prepare,
    )
    workload.check(results[0])


def _ready(
    adapter: ModuleType, workload: Workload, environment: dict[str, str], *, is_command: bool
) -> protocol.Ready:
    # It leaves out what it does not know.
    described = adapter.describe()
    if is_command:
        # This process's pools are not the command's.
        described.update(threads_used=None, inter_op_used=None)
    return protocol.Ready(
        threads_used=described.get("threads_used"),
        inter_op_used=described.get("inter_op_used"),
        python=sys.version.split()[0],
        versions={**described["versions"], **workload.versions},
        blas=workload.blas or described.get("blas"),
        environment=environment,
        work=dict(workload.work),
        pins_threads=described.get("pins_threads", False),
    )


def _time_others(
    workload: Workload,
    timings: Timings,
    request: protocol.Request,
    order: bytes,
    report: Callable[[], None],
) -> None:
    """Time the iterations after the first, as the order to go says."""
    alternates, most_ns = protocol.decode_go(order)
    limits_ns = [limit_ns for limit_ns in (request.most_ns, most_ns) if limit_ns is not None]
    time_iterations = partial(
        iterate,
        workload.step,
        timings,
        iterations=request.iterations - 1,
        enough_ns=request.enough_ns,
        least_iterations=request.least_iterations - 1,
        most_ns=min(limits_ns, default=None),
        wall_ns=time.perf_counter_ns,
        cpu_ns=workload.cpu_ns,
        prepare=workload.prepare,
        report=report,
    )
    if alternates is None:
        time_iterations()
        return
    with closing(SocketTurnSignal(alternates.turn_signal, alternates.turn_number)) as turn_signal:
        time_iterations(turn_signal=turn_signal)


class _Report:
    """Sends the samples and time slices that were not sent before."""

    def __init__(self, reply: MessageWriter, timings: Timings, workload: Workload) -> None:
        self._reply = reply
        self._timings = timings
        self._workload = workload
        self._samples = self._time_slices = 0

    def __call__(self) -> None:
        timings = self._timings
        walls, cpus = timings.walls, timings.cpus
        lengths, began_us = timings.lengths, timings.began_us
        for start in range(self._samples, len(walls), protocol.SAMPLES_A_MESSAGE):
            part = slice(start, start + protocol.SAMPLES_A_MESSAGE)
            samples = protocol.Samples(
                wall_ns=walls[part].tolist(),
                cpu_ns=cpus[part].tolist(),
                metrics=self._workload.metrics[part] or None,
            )
            self._reply.send(samples)
        for start in range(self._time_slices, len(lengths), protocol.SAMPLES_A_MESSAGE):
            part = slice(start, start + protocol.SAMPLES_A_MESSAGE)
            time_slices = protocol.TimeSlices(
                iterations=lengths[part].tolist(), began_us=began_us[part].tolist()
            )
            self._reply.send(time_slices)
        self._samples, self._time_slices = len(walls), len(lengths)


def _profile(adapter: ModuleType, workload: Workload, iterations: int) -> Profile:
    """Run warm steps under the framework's profiler, with its files in the scratch folder."""
    for _ in range(WARM_UP_STEPS):
        workload.step()
    folder = importlib.import_module("tempfile").mkdtemp(prefix="profile-")
    profile: Profile = adapter.profile(workload.step, iterations, folder)
    return profile


def release_own_name() -> None:
    """If corebound is the project under test, make `import corebound` find the environment's.

    The worker has already imported the modules of its own corebound that it needs, and keeps
    using them.
    """
    own_folders = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    other_folders = [folder for folder in sys.path if folder not in own_folders]
    if PathFinder.find_spec("corebound", other_folders) is None:
        return
    sys.path[:] = other_folders
    # Otherwise, processes that the workload starts would inherit it.
    os.environ.pop("PYTHONPATH", None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "corebound"]:
        del sys.modules[name]


def work(request: protocol.Request, orders: BinaryIO, reply: MessageWriter) -> None:
    """Execute one request, and send all messages.

    Raises:
        WorkloadError: the workload cannot be run or returned a wrong result.
        Exception: any exception that the workload itself raised.
    """
    environment = steering_environment()
    if request.project:
        # A checkout beside the scenario must not be imported instead of the built commit.
        sys.path += request.path
    else:
        sys.path[:0] = request.path
        sys.path += request.fallback_path
    with Phase(reply, "import"):
        adapter = importlib.import_module(_adapter_of(request.framework))
        kind = "workload" if request.command is None else "command_workload"
        make_workload = importlib.import_module(f"corebound.worker.{kind}").make_workload
        adapter.prepare(seed=request.seed, intra_op=request.intra_op, inter_op=request.inter_op)
        if request.project:
            release_own_name()
        if request.target is not None:
            find_function(request.target)
    if orders.readline() != protocol.SET_UP:
        return  # the runner has abandoned the launch
    timings = Timings(request.iterations)
    with Phase(reply, "setup"):
        workload: Workload = make_workload(request)
    with Phase(reply, "first"):
        _time_first(workload, timings)
    # Collect the garbage of the setup now, so that it is not collected during a timed step.
    gc.collect()
    gc.freeze()
    is_command = request.command is not None
    reply.send(_ready(adapter, workload, environment, is_command=is_command))
    if not (order := orders.readline()):
        return  # the runner has abandoned the launch
    reply.during = "loop"
    if request.operators is not None:
        reply.during = "profile"
        reply.send(_profile(adapter, workload, request.operators))
    else:
        report = _Report(reply, timings, workload)
        _time_others(workload, timings, request, order, report)
        report()
    reply.during = "teardown"
    allowed = workload.allowed()
    # A step may have changed it. The numbers of other adapters are those of threads that exist.
    reads = None if is_command else getattr(adapter, "threads_set", None)
    threads_after = reads() if reads is not None else None
    workload.teardown()
    reply.send(protocol.End(allowed=allowed, threads_after=threads_after))


def _pipe(descriptor: int, flags: int) -> int:
    """Open one of the two pipes, so that processes started by the workload do not inherit it."""
    try:
        is_ours = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        is_ours = False
    if not is_ours:
        # A framework's launcher closes the descriptors of its child, but keeps its own open.
        return os.open(f"/proc/{os.getppid()}/fd/{descriptor}", flags)
    os.set_inheritable(descriptor, False)
    return descriptor


def describe(error: BaseException) -> tuple[str, str | None] | None:
    """What is wrong and how to fix it, for an error that is meant for the user."""
    if not isinstance(error, WorkloadError):
        return None
    return str(error) or type(error).__name__, error.fix


def main() -> int:
    """Execute one request; returns 0 on success, or 1 on a failure reported to the runner."""
    orders = os.fdopen(_pipe(protocol.REQUEST_FD, os.O_RDONLY), "rb")
    reply = MessageWriter(os.fdopen(_pipe(protocol.REPLY_FD, os.O_WRONLY), "wb"))
    boundary = ErrorBoundary(reply, describe)
    with boundary:
        work(protocol.decode_request(orders.readline()), orders, reply)
    if boundary.failed:
        return 1
    # Stay alive until the runner has taken its last sample.
    orders.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
