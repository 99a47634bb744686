"""Detect what disturbed a launch from outside, iteration by iteration."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar

from corebound.records.launch_record import Kind, Launch, TimeSlice, Worker
from corebound.records.telemetry import (
    Cause,
    Disturbance,
    DisturbedIterations,
    HostOverTime,
    HostWindow,
    Refusal,
    sum_known,
)
from corebound.units import duration, percent

# A tenth of a CPU. `corebound doctor` uses the same threshold for a busy host. If one CPU loses so
# much, its thread is a ninth slower, and so is a pool of any size that waits for it at barriers:
# several times what a comparison's margin allows.
LEAST_LOST_CPUS = 0.1

# The same loss, spread over many CPUs, is their normal state: each loses up to 1 % to the kernel's
# own threads and to other guests, in every launch alike. Other programs or guests have to take
# this share of the time for which the CPUs are not idle. For up to four busy CPUs, that is less
# than a tenth of a CPU (docs/explanation/statistics/launches.md; `benchmarks.simulation
# disturbances`).
LEAST_LOST_SHARE = 0.025

# Idle time and steal are reported in ticks of 10 ms, so the difference of two readings is off by
# up to one tick, with a standard deviation of 10/√6 = 4.1 ms per CPU and column (two columns
# change). Three of these: 3 × 4.1 × √2 = 17 ms for a CPU, and √n times that for n.
_BLUR_NS = 17_000_000

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

# A thread that runs, or waits for a CPU, for less than this share of the time is at rest.
_AT_REST_SHARE = 0.1
# A CPU that was idle is slow for a while. So the CPU time of threads whose counterparts are at rest
# matters, as a part of a CPU: that of a helper that is busy for a sixth of the time does not.
_UNLIKE_CPUS = 0.25

# An interval needs two launches. With this many undisturbed ones, a cell uses no others.
_LEAST_UNDISTURBED = 2

T = TypeVar("T")

_NAMES: dict[Cause, str] = {
    "steal": "the hypervisor gave {} of a CPU to other guests (steal)",
    "throttling": "a cgroup's quota took {} of a CPU from its threads (throttling)",
    "foreign load": "other programs took {} of a CPU from its threads (foreign load)",
}


class Loss(NamedTuple):
    """CPU time that a launch lost, in CPUs: on all its CPUs together, and on one of them at most.

    `most` is 0 where it is not known.
    """

    cpus: float
    most: float = 0.0


def causes(window: HostWindow, cpus: int) -> dict[Cause, Loss]:
    """CPU time that a launch lost in this window, by cause; empty if it lost too little to matter.

    A loss matters if the CPU that lost most lost a tenth of its time, because a pool of threads
    waits for its slowest; or if it is a share of all CPUs beyond what they always lose.

    For a suspension, which stops all CPUs, it is the share of the time.

    Args:
        cpus: How many CPUs the launch was given.
    """
    elapsed_ns = (window.to_ms - window.from_ms) * 1_000_000
    if elapsed_ns <= 0:
        return {}
    least_ns = LEAST_LOST_CPUS * elapsed_ns
    busy_ns = elapsed_ns * cpus - (window.rested_ns or 0)
    least_of_all_ns = max(least_ns, LEAST_LOST_SHARE * busy_ns)
    blur_ns = _BLUR_NS * math.sqrt(cpus)
    lost_by_cause: dict[Cause, Loss] = {}
    for cause, (lost_ns, most_ns) in _lost_ns(window).items():
        is_blurred = {
            "steal": lost_ns < blur_ns and most_ns < _BLUR_NS,
            "foreign load": (window.foreign_ns or 0) < blur_ns,
        }
        is_much = most_ns >= least_ns or lost_ns >= least_of_all_ns
        if is_much and not is_blurred.get(cause):
            lost_by_cause[cause] = Loss(lost_ns / elapsed_ns, most_ns / elapsed_ns)
    if (window.suspended_ns or 0) >= _LEAST_SUSPENDED_NS:
        lost_by_cause["suspension"] = Loss((window.suspended_ns or 0) / elapsed_ns)
    return lost_by_cause


def _lost_ns(window: HostWindow) -> dict[Cause, tuple[float, float]]:
    """CPU time lost in this window on all CPUs, and on the one that lost most; 0 if unknown.

    Foreign load counts as far as the launch's threads waited: on CPUs that they leave idle it takes
    nothing from them. Of the longest wait of a thread, it has the same part as of all waits: the
    others are for threads of the launch itself. If the kernel does not report how long threads
    waited, idle time is subtracted, because the foreign load could have run then.
    """
    foreign_ns, waited_ns = window.foreign_ns or 0, window.waited_ns
    if waited_ns is None:
        foreign = (max(0, foreign_ns - (window.rested_ns or 0)), 0.0)
    else:
        competed_ns = min(foreign_ns, waited_ns)
        foreign = (competed_ns, (window.most_waited_ns or 0) * competed_ns / max(1, waited_ns))
    return {
        "foreign load": foreign,
        "steal": (window.steal_ns or 0, window.most_stolen_ns or 0),
        "throttling": (window.throttled_ns or 0, 0),
    }


def disturbed_ranges(worker: Worker, host: HostOverTime) -> tuple[DisturbedIterations, ...]:
    """The iterations of one worker that overlapped a disturbed window, as ranges.

    The start time of an iteration is not recorded. Iterations follow one another with well
    under a microsecond between them, from the start of their time slice or from the moment
    the workers start measuring. The first iteration runs before that moment.

    Args:
        worker: With every iteration.
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
    bad: Sequence[tuple[HostWindow, dict[Cause, Loss]]], end_ms: float
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
        warm: For each worker, how many iterations at its start are not used. If empty,
            only the first is not.
    """
    if host is None:
        return None
    lost_by_cause = lost_cpus(host)
    if not lost_by_cause:
        return None
    by = sorted(lost_by_cause, key=lambda cause: -lost_by_cause[cause].cpus)
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


def _describe(cause: Cause, loss: Loss, host: HostOverTime) -> str:
    if cause == "suspension":
        suspended_ns = sum_known(window.suspended_ns for window in host.windows) or 0
        return f"its processes were suspended for {duration(suspended_ns)}"
    text = _NAMES[cause].format(percent(loss.cpus, 0))
    if loss.most and len(host.cpus) > 1:
        text += f", up to {percent(loss.most, 0)} of one of its {len(host.cpus)} CPUs"
    return text


def lost_cpus(host: HostOverTime) -> dict[Cause, Loss]:
    """CPU time that disturbed windows took from a launch, in CPUs over its whole time, by cause."""
    lost_by_cause: dict[Cause, Loss] = {}
    for window in host.windows:
        part = (window.to_ms - window.from_ms) / host.duration_ms if host.duration_ms else 0.0
        for cause, loss in causes(window, len(host.cpus)).items():
            before = lost_by_cause.get(cause, Loss(0.0))
            lost_by_cause[cause] = Loss(
                before.cpus + loss.cpus * part, before.most + loss.most * part
            )
    return lost_by_cause


def delay(host: HostOverTime | None) -> float:
    """The most that others can have slowed a launch beyond its own CPU time, as a logarithm.

    It counts the time for which threads waited for a CPU while other programs used it, and
    the time for which a hypervisor or a quota stopped them: of all CPUs, or of the one that lost
    most, for which the others may have waited. 0 if nothing is known.
    """
    ran_ns = host.total("ran_ns") if host else None
    if host is None or not ran_ns or ran_ns < 0:
        return 0.0
    losses_ns = [loss for window in host.windows for loss in _lost_ns(window).values()]
    lost_ns, most_ns = (sum(each) for each in zip(*losses_ns, strict=True))
    # To the CPU that lost most, at least 1 ms was left: the resolution of windows.
    left_ns = max(host.duration_ms * 1_000_000 - most_ns, 1_000_000)
    return math.log1p(max(lost_ns / ran_ns, most_ns / left_ns))


def undelayed_iteration_ns(launch: Launch) -> float | None:
    """What an iteration of a launch that was ended early takes at least, without others' delay.

    Returns:
        Nanoseconds of wall time; None if the launch was not ended early or had no iteration yet.
    """
    least_ns = launch.least_iteration_ns
    return None if least_ns is None else least_ns / math.exp(delay(launch.host))


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
        host: The host's telemetry; None if the record lacks it.
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
    lost_share = sum(loss.cpus for loss in lost_cpus(host).values())
    return host.duration_ms >= LEAST_SEEN_MS or lost_share >= LEAST_LOST_OF_SHORT


class BusyThreads(NamedTuple):
    """How many threads of a launch are not at rest, and how many CPUs all of them need."""

    threads: int
    cpus: float


def busy_threads(
    workers: Sequence[Worker], others: Sequence[Worker], *, cpus: int | None = None
) -> tuple[BusyThreads, BusyThreads] | None:
    """What threads each of two launches kept busy; None if they need equally many CPUs.

    Launches that keep different numbers of CPUs busy disturb each other if they alternate: a
    CPU that was idle is slow for a while (docs/adr/0024). Threads are compared in the order of
    their CPU time. That of threads whose counterparts are at rest is what makes the difference,
    unless the others keep all CPUs busy already.

    Args:
        workers: The workers of a launch, timed iteration by iteration.
        others: The workers of a launch that it alternated with.
        cpus: How many CPUs they have; None if this is not known.
    """
    first, second = _busy_shares(workers), _busy_shares(others)
    pairs = list(itertools.zip_longest(first, second, fillvalue=0.0))
    alone = [one - other for one, other in pairs if min(one, other) < _AT_REST_SHARE]
    is_full = cpus is not None and len(pairs) - len(alone) >= cpus
    if is_full or abs(sum(alone)) < _UNLIKE_CPUS:
        return None
    return _busy(first), _busy(second)


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


def _busy(shares: Sequence[float]) -> BusyThreads:
    return BusyThreads(sum(share >= _AT_REST_SHARE for share in shares), sum(shares))


def is_mostly_disturbed(launch: Launch) -> bool:
    """Whether a launch's value or profile mostly reflects a disturbance, discarded or not."""
    return is_too_much(launch.disturbance, launch.host, launch.kind)


def select_undisturbed(
    launches: Sequence[T], is_disturbed: Callable[[T], bool], *, within_run: bool = False
) -> list[T]:
    """The `ok` launches of a cell that its values are computed from.

    All undisturbed launches if there are enough of them, else all.

    Args:
        launches: Its `ok` launches, as records or summaries.
        is_disturbed: Whether a launch is disturbed, as in `is_mostly_disturbed`.
        within_run: Whether the cell is compared with others of its run. Where most launches are
            disturbed, so are those of the others, and all are compared.
    """
    undisturbed = [launch for launch in launches if not is_disturbed(launch)]
    enough = max(_LEAST_UNDISTURBED, len(launches) / 2 if within_run else 0)
    return undisturbed if len(undisturbed) >= enough else list(launches)


def is_refused(launch: Launch) -> bool:
    """Whether a launch was discarded because of a disturbance, and must be repeated."""
    return launch.disturbance is not None and launch.disturbance.refused


def refusal_of(launch: Launch) -> Refusal | None:
    """Why a launch was refused; None if it was not."""
    disturbance = launch.disturbance
    if disturbance is None or not disturbance.refused:
        return None
    if disturbance.refusal is not None or disturbance.by:
        return disturbance.refusal or "disturbed"
    # A record of an older version: only the comparison of threads gave evidence without a cause.
    return "unlike threads" if disturbance.evidence else "partner disturbed"
