"""From launches to what a cell measures: a launch gives one value, a cell an interval."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct

from corebound.records.launch_record import Launch, Served, Status, Worker
from corebound.scenario.cell import Cell
from corebound.scenario.models import WarmupIterations, WarmupSeconds
from corebound.stats.interference import counting, delay, is_spoilt
from corebound.stats.intervals import (
    Interval,
    geometric_mean,
    geometric_mean_interval,
    variation_interval,
)
from corebound.stats.latency import percentiles
from corebound.stats.server_summary import figure_ns
from corebound.stats.warmup import SteadyState, steady_state, unsettled_start, worst

# One iteration in a hundred takes longer than p99: with fewer, none may.
LEAST_FOR_P99 = 100


def effective_sample_size(samples: Sequence[float]) -> float:
    """As how many independent numbers a series counts, going by each and the one before.

    Args:
        samples: n numbers in time order and any unit, which only their ranks enter of, so
            that a few that are far out do not decide.

    Returns:
        n (1 - r) / (1 + r) where the correlation r is above 0, else n.

    Source: Bayley & Hammersley (1946), for a series of which each goes with the last alone.

    >>> effective_sample_size([1, 5, 2, 4, 3])
    5.0
    """
    n = len(samples)
    ranks = np.argsort(np.argsort(samples, kind="stable"), kind="stable") - (n - 1) / 2
    square = float(ranks @ ranks)
    r = max(float(ranks[1:] @ ranks[:-1]) / square, 0.0) if square else 0.0
    return n * (1 - r) / (1 + r)


def p99_ns(wall_ns: Sequence[float]) -> float | None:
    """The 99th percentile, by the rule whose mean over launches is the least biased.

    Of a hundred samples it lies halfway between the two longest.

    Source: Hazen (1914), the fifth of Hyndman & Fan, "Sample quantiles in statistical
    packages" (1996); chosen by simulation, see docs/statistics.md.
    """
    if len(wall_ns) < LEAST_FOR_P99:
        return None
    return float(np.quantile(wall_ns, 0.99, method="hazen"))


Warmup = Literal["auto"] | WarmupIterations | WarmupSeconds

# With fewer a launch's own p99 is biased, and many launches only make sure of the bias.
# Found by simulation: `python -m benchmarks.simulation percentiles`.
_LEAST_FOR_P99_INTERVAL = 500

# Of an iteration's CPU time 0.5 to 2 µs are the worker's own, for its two clocks and its loop;
# of a shorter iteration that is more than 1 %, and makes one thread busier than it can be.
LEAST_FOR_CPU_NS = 200_000


class LaunchSummary(Struct, frozen=True, kw_only=True):
    """One launch, its warm-up left out.

    Attributes:
        launch: The launch's id.
        block: The block it ran in, which pairs it with the other cells' launches.
        median_ns: Median wall time of an iteration, over all its workers.
        p99_ns: Wall time that 99 of 100 iterations do not exceed; None below
            100 iterations.
        cpu_median_ns: Median CPU time of an iteration, or None where unknown, or where an
            iteration is too short for the CPU clock.
        used: Iterations that entered, over all workers.
        independent: As how many they count, where each goes with the one before.
        stints_ns: Of each stint that entered, its number and the median of its iterations;
            empty where the launch did not alternate.
        alternated: The ids of the launches that it alternated with.
        disturbed: Whether something outside disturbed most of what entered.
        steady: How the launch behaved; of several workers, the worst.
        settled: Whether all the iterations that entered are steady ones.
        delay: How much longer other programs can have made it take (`disturbance.delay`).
    """

    launch: str
    block: int
    median_ns: float
    p99_ns: float | None
    cpu_median_ns: float | None
    used: int
    steady: SteadyState
    settled: bool = True
    independent: float = 0.0
    stints_ns: tuple[tuple[int, float], ...] = ()
    alternated: tuple[str, ...] = ()
    disturbed: bool = False
    delay: float = 0.0


class CellSummary(Struct, frozen=True, kw_only=True):
    """What the launches of one cell say together.

    Attributes:
        cell: The cell.
        launches: Its `ok` launches that enter its value, by block.
        counts: How many launches came to each status; absent ones are 0.
        median_ns: Geometric mean of the launches' medians: the middle of
            `interval`. None without an `ok` launch.
        interval: Where a typical launch's median lies, in nanoseconds, 95 %;
            None with fewer than two `ok` launches.
        p99_ns: Geometric mean over the launches that have one.
        p99_interval: Where a typical launch's p99 lies, in nanoseconds, 95 %; None
            where one of the launches has none, or too few iterations to be sure
            of its own.
        cpu_median_ns: Geometric mean over the launches that have one, as `median_ns` is, so
            that the two can be divided: no thread is busier than all the time.
        spread_ratio: Standard deviation of the launches' medians as a share of
            their mean; None with fewer than two.
        unsettled: How many of `launches` used iterations that are not steady.
        left_out: Its other `ok` launches: disturbed ones, of a cell with enough that were not.
    """

    cell: Cell
    launches: tuple[LaunchSummary, ...]
    counts: tuple[tuple[Status, int], ...]
    median_ns: float | None
    interval: Interval | None
    p99_ns: float | None
    cpu_median_ns: float | None
    spread_ratio: float | None
    unsettled: int
    p99_interval: Interval | None = None
    left_out: tuple[LaunchSummary, ...] = ()

    @property
    def disturbed(self) -> int:
        """How many of the launches that enter its value were disturbed."""
        return sum(launch.disturbed for launch in self.launches)

    def count(self, status: Status) -> int:
        """How many launches came to this status."""
        return dict(self.counts).get(status, 0)

    @property
    def spread_interval(self) -> Interval | None:
        """Where `spread_ratio` lies, 95 %; None with fewer than two `ok` launches."""
        return variation_interval([launch.median_ns for launch in self.launches])

    @property
    def cpus_busy(self) -> float | None:
        """CPU time over wall time: the geometric mean over the launches that have both.

        None where none has.
        """
        return _mean(
            None if one.cpu_median_ns is None or not one.median_ns
            else one.cpu_median_ns / one.median_ns
            for one in self.launches
        )  # fmt: skip

    @property
    def attempts(self) -> int:
        """How many launches there were, whatever became of them."""
        return sum(number for _, number in self.counts)


def summarise_launch(launch: Launch, warmup: Warmup) -> LaunchSummary:
    """Reduce a launch to its figures.

    Every worker's warm-up is found by itself, for processes settle apart; then
    the iterations of all are taken together.

    Args:
        launch: An `ok` launch. One of a server is reduced to what it is judged by,
            in place of the median, with the p99 of its latencies.
        warmup: `Measure.warmup`. A fixed one that leaves no iteration is
            answered like a launch that never settles.

    Raises:
        ValueError: No worker has a sample, or the launch was there to be profiled.
    """
    if launch.kind != "measure":
        raise ValueError(f"launch {launch.id} was profiled, not measured")
    if launch.served is not None:
        return _summarise_served(launch, launch.served)
    kept = [_kept(worker, warmup) for worker in launch.workers if worker.wall_ns]
    if not kept:
        raise ValueError(f"launch {launch.id} has no samples")
    wall_ns = [sample for part in kept for sample in part.wall_ns]
    cpu_ns = [sample for part in kept for sample in part.cpu_ns]
    median_ns = float(np.median(wall_ns))
    is_told = bool(cpu_ns) and median_ns >= LEAST_FOR_CPU_NS
    return LaunchSummary(
        launch=launch.id,
        block=launch.block,
        median_ns=median_ns,
        p99_ns=p99_ns(wall_ns),
        cpu_median_ns=float(np.median(cpu_ns)) if is_told else None,
        used=len(wall_ns),
        steady=worst(part.steady for part in kept),
        settled=all(part.settled for part in kept),
        independent=sum(effective_sample_size(part.wall_ns) for part in kept),
        stints_ns=tuple(stint for part in kept for stint in part.stints_ns),
        alternated=launch.alternated,
        disturbed=is_spoilt(launch),
        delay=delay(launch.host),
    )


def _summarise_served(launch: Launch, served: Served) -> LaunchSummary:
    """Of a server; its warm-up requests are apart, and how it settled shows in its windows."""
    answered = served.answered
    tail = percentiles(answered.latencies)
    pace_ns = [answered.window_ns // window.ok for window in answered.windows[:-1] if window.ok]
    found = steady_state(pace_ns)
    return LaunchSummary(
        launch=launch.id,
        block=launch.block,
        median_ns=figure_ns(served),
        p99_ns=float(tail.p99_ns) if tail and tail.count >= LEAST_FOR_P99 else None,
        cpu_median_ns=served.cpu_ns / answered.ok,
        used=answered.ok,
        steady=found,
        settled=found.kind in {"steady", "warm-up then steady"},
        independent=float(answered.ok),
        disturbed=is_spoilt(launch),
        delay=delay(launch.host),
    )


def summarise(cell: Cell, launches: Iterable[Launch], warmup: Warmup) -> CellSummary:
    """Take the launches of one cell together; only `ok` ones enter a statistic.

    Args:
        cell: The cell.
        launches: Its launches, of one run, in any order and of any status.
        warmup: `Measure.warmup`.
    """
    attempted = tuple(launches)
    summaries = [
        summarise_launch(launch, warmup)
        for launch in attempted
        if launch.status == "ok"
        and (launch.served is not None or any(worker.wall_ns for worker in launch.workers))
    ]
    return gather(cell, summaries, [launch.status for launch in attempted])


def gather(
    cell: Cell, summaries: Iterable[LaunchSummary], statuses: Iterable[Status]
) -> CellSummary:
    """Take launches together that have been summarised already.

    Launches that never settle enter too, flagged and counted in `unsettled`:
    leaving them out would choose the well-behaved ones and flatter the cell.
    Disturbed ones do not, if there are enough others: what was seen of the host tells which
    they are, and not how long they took. Else they enter, counted in `disturbed`.

    Args:
        cell: The cell.
        summaries: Its `ok` launches, in any order.
        statuses: Those of all its launches.
    """
    every = sorted(summaries, key=lambda summary: (summary.block, summary.launch))
    by_block = counting(every, lambda summary: summary.disturbed)
    medians_ns = [summary.median_ns for summary in by_block]
    p99s_ns = [summary.p99_ns for summary in by_block if summary.p99_ns is not None]
    enough = bool(by_block) and all(
        summary.p99_ns is not None and summary.independent >= _LEAST_FOR_P99_INTERVAL
        for summary in by_block
    )
    return CellSummary(
        cell=cell,
        launches=tuple(by_block),
        counts=tuple(sorted(Counter(statuses).items())),
        median_ns=geometric_mean(medians_ns) if medians_ns else None,
        interval=geometric_mean_interval(medians_ns),
        p99_ns=geometric_mean(p99s_ns) if p99s_ns else None,
        p99_interval=geometric_mean_interval(p99s_ns) if enough else None,
        cpu_median_ns=_mean(summary.cpu_median_ns for summary in by_block),
        spread_ratio=_spread_ratio(medians_ns),
        unsettled=sum(not summary.settled for summary in by_block),
        left_out=tuple(summary for summary in every if summary not in by_block),
    )


def is_too_short(cell: CellSummary) -> bool:
    """Whether the cell's iterations are too short for the CPU clock."""
    return cell.median_ns is not None and cell.median_ns < LEAST_FOR_CPU_NS


class _Kept(Struct, frozen=True, kw_only=True):
    """What is left of one worker's samples."""

    wall_ns: Sequence[int]
    cpu_ns: Sequence[int]
    stints_ns: tuple[tuple[int, float], ...]
    steady: SteadyState
    settled: bool


def counted_from(worker: Worker, warmup: Warmup) -> int:
    """The first of a worker's iterations that enters its launch's value.

    Args:
        worker: With its iterations.
        warmup: `Measure.warmup`.
    """
    wall_ns = worker.wall_ns
    start = _warm(wall_ns, warmup, steady_state(wall_ns))
    return start if start < len(wall_ns) else unsettled_start(len(wall_ns))


def _warm(wall_ns: Sequence[int], warmup: Warmup, found: SteadyState) -> int:
    """How many samples the warm-up takes; of a fixed one perhaps more than there are."""
    if isinstance(warmup, WarmupIterations):
        return warmup.iterations
    if isinstance(warmup, WarmupSeconds):
        return _started_within(wall_ns, math.ceil(warmup.seconds * 1e9))
    return found.start


def _kept(worker: Worker, warmup: Warmup) -> _Kept:
    """Drop a worker's warm-up."""
    wall_ns = worker.wall_ns
    found = steady_state(wall_ns)
    start = _warm(wall_ns, warmup, found)
    settled = found.kind in {"steady", "warm-up then steady"} and found.start <= start
    if start >= len(wall_ns):
        start, settled = unsettled_start(len(wall_ns)), False
    return _Kept(
        wall_ns=wall_ns[start:],
        cpu_ns=worker.cpu_ns[start:] if len(worker.cpu_ns) == len(wall_ns) else (),
        stints_ns=tuple(_stints_ns(worker, start)),
        steady=found,
        settled=settled,
    )


def _stints_ns(worker: Worker, start: int) -> Iterator[tuple[int, float]]:
    """Number and median of each stint that begins at this iteration or later."""
    begin = 1  # the first iteration is of none
    for number, stint in enumerate(worker.stints):
        if begin >= start:
            stint_ns = worker.wall_ns[begin : begin + stint.iterations]
            yield number, float(statistics.median(stint_ns))
        begin += stint.iterations


def _started_within(wall_ns: Sequence[int], limit_ns: int) -> int:
    """How many iterations start before so much time has gone by."""
    started_ns = 0
    for index, sample in enumerate(wall_ns):
        if started_ns >= limit_ns:
            return index
        started_ns += sample
    return len(wall_ns)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return geometric_mean(known) if known else None


def _spread_ratio(medians_ns: Sequence[float]) -> float | None:
    if len(medians_ns) < 2:
        return None
    mean_ns = statistics.fmean(medians_ns)
    return statistics.stdev(medians_ns) / mean_ns if mean_ns > 0 else 0.0
