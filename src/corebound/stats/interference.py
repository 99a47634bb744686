"""Detect what disturbed a launch from outside, iteration by iteration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from corebound.records.launch_record import Kind, Launch, TimeSlice, Worker
from corebound.records.telemetry import (
    Cause,
    Disturbance,
    DisturbedIterations,
    HostOverTime,
    HostWindow,
    sum_known,
)
from corebound.units import duration, percent

# A tenth of a CPU. `corebound doctor` uses the same threshold for a busy host. A loss of this size
# makes a thread on that CPU a ninth slower, several times what a comparison's margin allows.
LEAST_LOST_CPUS = 0.1

# Idle time and steal are reported in ticks of 10 ms, so the difference of two readings is off by
# up to one tick, with a standard deviation of 10/√6 = 4.1 ms per CPU and column (two columns
# change). Three of these: 3 × 4.1 × √2 = 17 ms for a CPU, and √n times that for n.
_BLUR_NS = 17_000_000

# Foreign load counts only if the launch's threads waited: on CPUs that they left idle it
# takes nothing from them. A wait of half the load is enough, because two competing threads take
# turns, and a wait may fall into the next window. So is a wait that would count by itself, because
# one thread on two busy CPUs waits for less than half of their combined load.
_LEAST_WAITED = 0.5

# A launch's value is its median. With more than half of the iterations disturbed, the median
# is itself a disturbed iteration.
MOST_DISTURBED = 0.5
# Disturbances are located to one window, which lasts half a second or more. In a launch shorter
# than two windows, a tenth of a CPU may be a burst within a few iterations. One competing
# program takes half of a CPU, so beyond a quarter of one most of the time was disturbed.
LEAST_SEEN_MS = 1_000
LEAST_LOST_OF_SHORT = 0.25

# An operator's time is a sum over the whole profile, not a median. If a tenth of the profile is
# disturbed, the sum is 1 % too large at the smallest loss that counts, and 10 % too large with a
# busy neighbour.
MOST_OF_PROFILE = 0.1

# At least two readings apart, and longer than a scheduler keeps any thread from running.
_LEAST_SUSPENDED_NS = 50_000_000

# A thread is busy if it runs, or waits for a CPU, for so much of the time, and at rest below the
# smaller share. Between them it may be either, so that a thread at the limit decides nothing.
_BUSY_SHARE = 0.25
_AT_REST_SHARE = 0.1

# An interval needs two launches. With this many undisturbed ones, a cell uses no others.
_LEAST_UNDISTURBED = 2

T = TypeVar("T")

_NAMES: dict[Cause, str] = {
    "steal": "the hypervisor gave {} of a CPU to other guests (steal)",
    "throttling": "a cgroup's quota took {} of a CPU from its threads (throttling)",
    "foreign load": "other programs took {} of a CPU on its CPUs (foreign load)",
}


def causes(window: HostWindow, cpus: int) -> dict[Cause, float]:
    """CPU time that a launch lost in this window, in CPUs, by cause; empty if it lost none.

    For a suspension, which stops all CPUs, it is the share of the time.

    Args:
        window: A part of the launch.
        cpus: How many CPUs the launch was given.
    """
    elapsed_ns = (window.to_ms - window.from_ms) * 1_000_000
    if elapsed_ns <= 0:
        return {}
    least_ns = LEAST_LOST_CPUS * elapsed_ns
    blurred_ns = max(least_ns, _BLUR_NS * math.sqrt(cpus))
    foreign_ns = _competing_ns(window, least_waited_ns=blurred_ns)
    lost_by_cause: dict[Cause, float] = {}
    if foreign_ns >= blurred_ns:
        lost_by_cause["foreign load"] = foreign_ns / elapsed_ns
    if (window.steal_ns or 0) >= blurred_ns:
        lost_by_cause["steal"] = (window.steal_ns or 0) / elapsed_ns
    if (window.throttled_ns or 0) >= least_ns:
        lost_by_cause["throttling"] = (window.throttled_ns or 0) / elapsed_ns
    if (window.suspended_ns or 0) >= _LEAST_SUSPENDED_NS:
        lost_by_cause["suspension"] = (window.suspended_ns or 0) / elapsed_ns
    return lost_by_cause


def _competing_ns(window: HostWindow, *, least_waited_ns: float) -> int:
    """Foreign load that competed with the launch; 0 if it did not have to.

    If the kernel does not report how long threads waited, the CPUs' idle time is subtracted,
    because the foreign load could have run then.
    """
    foreign_ns, waited_ns = window.foreign_ns or 0, window.waited_ns
    if waited_ns is None:
        return max(0, foreign_ns - (window.rested_ns or 0))
    return foreign_ns if waited_ns >= min(_LEAST_WAITED * foreign_ns, least_waited_ns) else 0


def disturbed_ranges(worker: Worker, host: HostOverTime) -> tuple[DisturbedIterations, ...]:
    """The iterations of one worker that overlapped a disturbed window, as ranges.

    The start time of an iteration is not recorded. Iterations follow one another with well
    under a microsecond between them, from the start of their time slice or from the moment
    the workers start measuring. The first iteration runs before that moment.

    Args:
        worker: With every iteration.
        host: The host's telemetry.
    """
    disturbed = [
        (window, lost_by_cause)
        for window in host.windows
        if (lost_by_cause := causes(window, len(host.cpus)))
    ]
    if not disturbed:
        return ()
    ranges: list[DisturbedIterations] = []
    next_window = 0
    for index, (begin_ms, end_ms) in enumerate(_spans_ms(worker), start=1):
        while next_window < len(disturbed) and disturbed[next_window][0].to_ms <= begin_ms:
            next_window += 1
        causes_here = _overlapping(disturbed[next_window:], end_ms)
        if not causes_here:
            continue
        if ranges and ranges[-1].last == index - 1 and ranges[-1].by == causes_here:
            ranges[-1] = DisturbedIterations(first=ranges[-1].first, last=index, by=causes_here)
        else:
            ranges.append(DisturbedIterations(first=index, last=index, by=causes_here))
    return tuple(ranges)


def _spans_ms(worker: Worker) -> Iterator[tuple[float, float]]:
    """Start and end of each iteration but the first, in ms since the workers' start signal."""
    walls_ns = iter(worker.wall_ns[1:])
    time_slices = worker.time_slices or (TimeSlice(iterations=len(worker.wall_ns), began_us=0),)
    for time_slice in time_slices:
        at_ms = time_slice.began_us / 1e3
        for wall_ns in islice(walls_ns, time_slice.iterations):
            yield at_ms, at_ms + wall_ns / 1e6
            at_ms += wall_ns / 1e6


def _overlapping(
    bad: Sequence[tuple[HostWindow, dict[Cause, float]]], end_ms: float
) -> tuple[Cause, ...]:
    """The causes that affect an iteration up to `end_ms`; `bad` has windows that end later."""
    by: set[Cause] = set()
    for window, lost_by_cause in bad:
        if window.from_ms >= end_ms:
            break
        by.update(lost_by_cause)
    return tuple(sorted(by))


def disturbance(
    workers: Sequence[Worker], host: HostOverTime | None, *, warm: Sequence[int] = ()
) -> Disturbance | None:
    """The disturbances of a launch, with `refused` not yet set; None if there were none.

    Args:
        workers: Its workers, with the iterations that `disturbed_ranges` found. Without any
            iterations, as for a server, the share is of time.
        host: The host's telemetry.
        warm: For each worker, how many iterations at its start are not used. If empty,
            only the first is not.
    """
    if host is None:
        return None
    lost_by_cause = lost_cpus(host)
    if not lost_by_cause:
        return None
    by = sorted(lost_by_cause, key=lambda cause: -lost_by_cause[cause])
    share = _share(workers, host, warm or [0] * len(workers))
    what = (
        "its iterations after the warm-up"
        if any(worker.wall_ns for worker in workers)
        else "its time"
    )
    return Disturbance(
        share=share,
        by=tuple(by),
        evidence=(
            f"{percent(share, 0)} of {what} overlapped a disturbance",
            *(_describe(cause, lost_by_cause[cause], host) for cause in by),
        ),
    )


def _describe(cause: Cause, share: float, host: HostOverTime) -> str:
    if cause == "suspension":
        suspended_ns = sum_known(window.suspended_ns for window in host.windows) or 0
        return f"its processes were suspended for {duration(suspended_ns)}"
    return _NAMES[cause].format(percent(share, 0))


def lost_cpus(host: HostOverTime) -> dict[Cause, float]:
    """CPU time that disturbed windows took from a launch, in CPUs over its whole time, by cause."""
    lost_by_cause: dict[Cause, float] = {}
    for window in host.windows:
        part = (window.to_ms - window.from_ms) / host.duration_ms if host.duration_ms else 0.0
        for cause, cpus in causes(window, len(host.cpus)).items():
            lost_by_cause[cause] = lost_by_cause.get(cause, 0.0) + cpus * part
    return lost_by_cause


def delay(host: HostOverTime | None) -> float:
    """The most that others can have slowed a launch beyond its own CPU time, as a logarithm.

    It counts the time for which threads waited for a CPU while other programs used it, and
    the time for which a hypervisor or a quota stopped them. 0 if nothing is known.
    """
    ran_ns = host.total("ran_ns") if host else None
    if host is None or not ran_ns or ran_ns < 0:
        return 0.0
    lost_ns = sum(
        max(0, taken)
        for window in host.windows
        for taken in (_delayed_ns(window), window.steal_ns or 0, window.throttled_ns or 0)
    )
    return math.log1p(lost_ns / ran_ns)


def _delayed_ns(window: HostWindow) -> int:
    if window.waited_ns is None:
        return _competing_ns(window, least_waited_ns=0.0)
    return min(window.waited_ns, window.foreign_ns or 0)


def _share(workers: Sequence[Worker], host: HostOverTime, warm: Sequence[int]) -> float:
    # The first iteration ran before the telemetry started.
    counted = [
        range(max(1, begin), len(worker.wall_ns))
        for worker, begin in zip(workers, warm, strict=True)
    ]
    if iterations := sum(map(len, counted)):
        hits = sum(
            at in used
            for worker, used in zip(workers, counted, strict=True)
            for at in _disturbed_iterations(worker)
        )
        return hits / iterations
    disturbed_windows = (window for window in host.windows if causes(window, len(host.cpus)))
    return sum(window.to_ms - window.from_ms for window in disturbed_windows) / host.duration_ms


def _disturbed_iterations(worker: Worker) -> Iterator[int]:
    for marked_range in worker.disturbed:
        yield from range(marked_range.first, marked_range.last + 1)


def is_too_much(
    disturbance: Disturbance | None, host: HostOverTime | None, kind: Kind = "measure"
) -> bool:
    """Whether a launch was disturbed so much that its value mostly reflects the disturbance.

    This depends on the host's telemetry only, never on how long iterations took: leaving out
    launches because of their own values would bias the rest.

    Args:
        disturbance: The launch's disturbances.
        host: The host's telemetry; None if the record lacks it.
        kind: The purpose of the launch.
    """
    if disturbance is None:
        return False
    if "suspension" in disturbance.by:
        return True
    if kind == "profile":
        return disturbance.share > MOST_OF_PROFILE
    if disturbance.share <= MOST_DISTURBED:
        return False
    if host is None:
        return True
    lost_share = sum(lost_cpus(host).values())
    return host.duration_ms >= LEAST_SEEN_MS or lost_share >= LEAST_LOST_OF_SHORT


def busy_threads(workers: Sequence[Worker], others: Sequence[Worker]) -> tuple[int, int] | None:
    """How many threads each of two launches kept busy; None if they may be equally many.

    Launches that keep different numbers of threads busy disturb each other if they alternate: a
    CPU that was idle is slow for a while (docs/adr/0024).

    Args:
        workers: The workers of a launch, timed iteration by iteration.
        others: The workers of a launch that it alternated with.
    """
    first, second = _busy_shares(workers), _busy_shares(others)
    pairs = itertools.zip_longest(first, second, fillvalue=0.0)
    if all(max(pair) < _BUSY_SHARE or min(pair) >= _AT_REST_SHARE for pair in pairs):
        return None
    return _count_busy(first), _count_busy(second)


def _busy_shares(workers: Sequence[Worker]) -> list[float]:
    """The share of the timed iterations for which each thread ran or waited, largest first."""
    return sorted(
        (
            ((thread.run_ns or 0) + (thread.wait_ns or 0)) / timed_ns
            for worker in workers
            # The first iteration runs before the threads are observed.
            if (timed_ns := sum(worker.wall_ns[1:]))
            for thread in worker.threads
        ),
        reverse=True,
    )


def _count_busy(shares: Sequence[float]) -> int:
    return sum(share >= _BUSY_SHARE for share in shares)


def is_mostly_disturbed(launch: Launch) -> bool:
    """Whether a launch's value or profile mostly reflects a disturbance, discarded or not."""
    return is_too_much(launch.disturbance, launch.host, launch.kind)


def select_undisturbed(launches: Sequence[T], is_disturbed: Callable[[T], bool]) -> list[T]:
    """The `ok` launches of a cell that its values are computed from.

    All undisturbed launches if there are enough of them, else all.

    Args:
        launches: Its `ok` launches, as records or summaries.
        is_disturbed: Whether a launch is disturbed, as in `is_mostly_disturbed`.
    """
    undisturbed = [launch for launch in launches if not is_disturbed(launch)]
    return undisturbed if len(undisturbed) >= _LEAST_UNDISTURBED else list(launches)


def is_refused(launch: Launch) -> bool:
    """Whether a launch was discarded because of a disturbance, and must be repeated."""
    return launch.disturbance is not None and launch.disturbance.refused
