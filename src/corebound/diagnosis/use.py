"""What was busy while a launch was timed: its processes, its CPUs, a GPU."""

from __future__ import annotations

import statistics
from collections import Counter

from corebound.model.record import Launch, Worker
from corebound.model.telemetry import known_sum


def cpu_share(launch: Launch) -> float | None:
    """CPU time of a launch's processes as a share of what its CPUs could give; None if unknown."""
    host = launch.host
    if host is None:
        return None
    if not launch.alternated:
        return host.share("ran_ns", cpus=len(host.cpus))
    ran_ns, whole_ns = known_sum(window.ran_ns for window in host.windows), _whole_ns(launch)
    return ran_ns / (whole_ns * len(host.cpus)) if ran_ns is not None and whole_ns else None


def gpu_share(launch: Launch) -> float | None:
    """Share of the time that the busiest GPU was busy; None where none was watched."""
    shares = launch.host.gpu_busy_shares if launch.host else ()
    return statistics.fmean(shares) if shares else None


def waiting_share(launch: Launch) -> float | None:
    """Share of the time that the process of the step neither ran nor wanted a CPU.

    That of its busiest thread, of the worker where it is least; None where nobody could say.
    """
    whole_ns = _whole_ns(launch)
    busy = [most for worker in launch.workers if (most := _busiest_ns(worker)) is not None]
    return max(0.0, 1 - max(busy) / whole_ns) if busy and whole_ns else None


def helper_share(launch: Launch) -> float | None:
    """CPU time of the busiest process that a worker started, as a share of the time."""
    whole_ns = _whole_ns(launch)
    each = [
        ran_ns
        for worker in launch.workers
        for pid, ran_ns in _by_process(worker).items()
        if pid != _own(worker)
    ]
    return max(each) / whole_ns if each and whole_ns else None


def _whole_ns(launch: Launch) -> int:
    """How long it was timed; of launches that alternate the one's own stints."""
    if launch.alternated:
        return sum(sum(worker.wall_ns[1:]) for worker in launch.workers)
    return launch.host.duration_ms * 1_000_000 if launch.host else 0


def _own(worker: Worker) -> int | None:
    """The worker's own process: it was there before those that it started."""
    return min((thread.pid for thread in worker.threads), default=None)


def _busiest_ns(worker: Worker) -> int | None:
    own = _own(worker)
    used = [
        thread.run_ns + (thread.wait_ns or 0)
        for thread in worker.threads
        if thread.pid == own and thread.run_ns is not None
    ]
    return max(used, default=None)


def _by_process(worker: Worker) -> Counter[int]:
    found: Counter[int] = Counter()
    for thread in worker.threads:
        found[thread.pid] += thread.run_ns or 0
    return found
