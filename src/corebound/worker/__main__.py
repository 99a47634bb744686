"""The worker: one launch's work, inside the framework's own environment.

Started as `python -m corebound.worker` with the request on descriptor 3 and the
reply on 4. Imports nothing heavy before it is told what to import, and times
that as a phase.
"""

from __future__ import annotations

import gc
import importlib
import os
import platform
import stat
import sys
import tempfile
import time
import traceback
from functools import partial
from importlib.machinery import PathFinder
from types import ModuleType
from typing import BinaryIO

from corebound.worker import protocol
from corebound.worker.timing import SocketBaton, Timed, iterate, measure
from corebound.worker.workload import Workload, WorkloadError, find, make

ADAPTERS = {
    "none": "corebound.worker.adapters.python",
    "numpy": "corebound.worker.adapters.numpy",
    "pytorch": "corebound.worker.adapters.pytorch",
    "tensorflow": "corebound.worker.adapters.tensorflow",
    "mindspore": "corebound.worker.adapters.mindspore",
}


# Steps between the first and the profiled ones: caches fill, graphs are traced.
WARM_UP_STEPS = 3


class Reply:
    """Sends messages; remembers which part of the work is under way."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.during = "start"

    def send(self, message: protocol.Message) -> None:
        """Write one message at once: the runner waits for it."""
        self._stream.write(protocol.encode(message))
        self._stream.flush()


class Edge:
    """Where the work ends: whatever a workload raises becomes a record, and goes no further.

    Of every class, for a workload that calls sys.exit() or is interrupted has ended its launch
    as surely as one that raises, and the runner can only tell what it is told here.
    """

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.failed = False

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if error is None:
            return False
        mend = error.mend if isinstance(error, WorkloadError) else None
        what = str(error) or type(error).__name__
        if not isinstance(error, WorkloadError):
            what = f"{type(error).__name__}: {what}"
            traceback.print_exception(error)
        self._reply.send(protocol.Failure(during=self._reply.during, what=what, mend=mend))
        self.failed = True
        return True


class Phase:
    """Times one part of the set-up and reports it."""

    def __init__(self, reply: Reply, name: str) -> None:
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
    """The environment variables that steer threads and memory, as this process sees them."""
    return {name: value for name, value in os.environ.items() if name.startswith(protocol.STEERING)}


def _first(workload: Workload) -> tuple[int, int]:
    """Time the first iteration, then check what it made, before any other timing counts."""
    kept: list[object] = []
    walls, cpus = measure(
        lambda: kept.append(workload.step()),
        iterations=1,
        wall_ns=time.perf_counter_ns,
        cpu_ns=workload.cpu_ns,
    )
    workload.check(kept[0])
    return walls[0], cpus[0]


def _ready(adapter: ModuleType, workload: Workload, environment: dict[str, str]) -> protocol.Ready:
    described = adapter.describe()
    return protocol.Ready(
        threads_used=described["threads_used"],
        inter_op_used=described["inter_op_used"],
        python=platform.python_version(),
        versions=described["versions"],
        blas=workload.blas or described["blas"],
        environment=environment,
        work=dict(workload.work),
    )


def _timed(workload: Workload, request: protocol.Request) -> Timed:
    timing = partial(
        iterate,
        workload.step,
        iterations=request.iterations - 1,
        wall_ns=time.perf_counter_ns,
        cpu_ns=workload.cpu_ns,
    )
    if request.baton is None:
        return timing()
    with SocketBaton(request.baton, request.place) as baton:
        return timing(baton=baton)


def _send(reply: Reply, timed: Timed) -> None:
    walls, cpus, lengths, began_us = timed.walls, timed.cpus, timed.lengths, timed.began_us
    for start in range(0, len(walls), protocol.SAMPLES_A_MESSAGE):
        part = slice(start, start + protocol.SAMPLES_A_MESSAGE)
        reply.send(protocol.Samples(wall_ns=walls[part].tolist(), cpu_ns=cpus[part].tolist()))
    for start in range(0, len(lengths), protocol.SAMPLES_A_MESSAGE):
        part = slice(start, start + protocol.SAMPLES_A_MESSAGE)
        stints = protocol.Stints(
            iterations=lengths[part].tolist(), began_us=began_us[part].tolist()
        )
        reply.send(stints)


def _profile(adapter: ModuleType, workload: Workload, iterations: int) -> protocol.Profile:
    """Put warm steps under the framework's profiler; its files stay in the scratch folder."""
    for _ in range(WARM_UP_STEPS):
        workload.step()
    folder = tempfile.mkdtemp(prefix="profile-")
    profile: protocol.Profile = adapter.profile(workload.step, iterations, folder)
    return profile


def give_up_name() -> None:
    """Let `import corebound` find the environment's own, where it is the project under test.

    What the worker needs of ours it has imported by now, and goes on holding.
    """
    ours = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    theirs = [folder for folder in sys.path if folder not in ours]
    if PathFinder.find_spec("corebound", theirs) is None:
        return
    sys.path[:] = theirs
    # Processes that the workload starts inherit it.
    os.environ.pop("PYTHONPATH", None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "corebound"]:
        del sys.modules[name]


def work(request: protocol.Request, orders: BinaryIO, reply: Reply) -> None:
    """Carry out one request, up to the last message.

    Raises:
        WorkloadError: the workload cannot be run or gave a wrong result.
        Exception: whatever the workload itself raised.
    """
    environment = steering_environment()
    if request.project:
        # A checkout beside the scenario must not stand in for the commit that was built.
        sys.path += request.path
    else:
        sys.path[:0] = request.path
    with Phase(reply, "import"):
        adapter = importlib.import_module(ADAPTERS[request.framework])
        adapter.prepare(seed=request.seed, intra_op=request.intra_op, inter_op=request.inter_op)
        if request.project:
            give_up_name()
        if request.target is not None:
            find(request.target)
    with Phase(reply, "setup"):
        workload = make(request)
    with Phase(reply, "first"):
        wall_ns, cpu_ns = _first(workload)
    # What set-up left behind is not to be collected on a step's time.
    gc.collect()
    gc.freeze()
    reply.send(_ready(adapter, workload, environment))
    if orders.readline() != protocol.GO:
        return  # the runner has given the launch up
    reply.during = "loop"
    if request.operators is not None:
        reply.during = "profile"
        reply.send(_profile(adapter, workload, request.operators))
    else:
        made = _timed(workload, request)
        reply.send(protocol.Samples(wall_ns=[wall_ns], cpu_ns=[cpu_ns]))
        _send(reply, made)
    reply.during = "teardown"
    allowed = workload.allowed()
    workload.teardown()
    reply.send(protocol.End(allowed=allowed))


def _pipe(descriptor: int, flags: int) -> int:
    """One of the two pipes, kept from the processes that a workload starts."""
    try:
        is_ours = stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except OSError:
        is_ours = False
    if not is_ours:
        # A framework's launcher closes what it hands on, but holds its own.
        return os.open(f"/proc/{os.getppid()}/fd/{descriptor}", flags)
    os.set_inheritable(descriptor, False)
    return descriptor


def main() -> int:
    """Answer one request; 0 if it was carried out, 1 if it failed and the runner knows why."""
    orders = os.fdopen(_pipe(protocol.REQUEST_FD, os.O_RDONLY), "rb")
    reply = Reply(os.fdopen(_pipe(protocol.REPLY_FD, os.O_WRONLY), "wb"))
    edge = Edge(reply)
    with edge:
        work(protocol.decode_request(orders.readline()), orders, reply)
    if edge.failed:
        return 1
    # Stay until the runner has had its last look.
    orders.read()
    return 0


if __name__ == "__main__":
    sys.exit(main())
