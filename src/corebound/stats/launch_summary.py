"""Summarise launches: one value for each launch, one value with its interval for a cell."""

import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain

import numpy as np
from msgspec import Struct

from corebound.records.launch_record import Launch, Served, Status
from corebound.scenario.cell import Cell
from corebound.stats import intervals
from corebound.stats.interference import delay, is_mostly_disturbed, select_undisturbed
from corebound.stats.latency import percentiles
from corebound.stats.server_summary import judged_value_ns
from corebound.stats.warmup import (
    SteadyState,
    Warmup,
    drop_warmup,
    reported_times,
    steady_state,
    worst,
)

# One iteration in a hundred takes longer than p99. With fewer iterations, possibly none does.
LEAST_FOR_P99 = 100


def effective_sample_size(samples: Sequence[float]) -> float:
    """The number of independent values that an autocorrelated series is worth.

    Args:
        samples: n numbers in time order, in any unit. Only their ranks are used, so that
            a few outliers do not decide the result.

    Returns:
        n (1 - r) / (1 + r) if the lag-1 correlation r is above 0, else n.

    Source: Bayley & Hammersley (1946), for a series in which each value depends on the last only.

    >>> effective_sample_size([1, 5, 2, 4, 3])
    5.0
    """
    n = len(samples)
    ranks = np.argsort(np.argsort(samples, kind="stable"), kind="stable") - (n - 1) / 2
    square = float(ranks @ ranks)
    r = max(float(ranks[1:] @ ranks[:-1]) / square, 0.0) if square else 0.0
    return n * (1 - r) / (1 + r)


def p99_ns(wall_ns: Sequence[float]) -> float | None:
    """The 99th percentile, by the rule whose mean over launches has the least bias.

    For a hundred samples it lies halfway between the two longest.

    Source: Hazen (1914), the fifth of Hyndman & Fan, "Sample quantiles in statistical
    packages" (1996); chosen by simulation, see docs/explanation/statistics/launches.md.
    """
    if len(wall_ns) < LEAST_FOR_P99:
        return None
    return float(np.quantile(wall_ns, 0.99, method="hazen"))


# Standard error of a normal sample's median, in multiples of that of its mean.
_MEDIAN_ERROR = math.sqrt(math.pi / 2)
# The interquartile range of a normal distribution, in standard deviations.
_QUARTILES_APART = 1.349


def median_error(values: Sequence[float] | intervals.Array, independent: float) -> float:
    """The standard error of the median of some values.

    Args:
        values: n numbers. Their standard deviation is taken from the interquartile range, so that
            a few outliers, which hardly move the median, do not count.
        independent: How many independent values they are worth.

    >>> median_error([5.0, 5.0, 5.0], 3)
    0.0
    """
    low, high = np.quantile(values, (0.25, 0.75))
    return float(high - low) / _QUARTILES_APART * _MEDIAN_ERROR / math.sqrt(max(independent, 1.0))


# With fewer, a launch's own p99 is biased, and more launches only make the bias more precise.
# Found by simulation: `python -m benchmarks.simulation percentiles`.
_LEAST_FOR_P99_INTERVAL = 500

# Of an iteration's CPU time, 0.5 to 2 µs are spent in the worker's own clock calls and loop. For a
# shorter iteration this is more than 1 %, and makes one thread appear busier than possible.
LEAST_FOR_CPU_NS = 200_000


class LaunchSummary(Struct, frozen=True, kw_only=True):
    """One launch, without its warm-up.

    Attributes:
        launch: The launch's id.
        block: The block it ran in, which pairs it with the other cells' launches.
        median_ns: Median wall time of an iteration, over all its workers. If its command reports
            a metric, that of the metric, as `Metric.as_time_ns` has it.
        iteration_ns: The median wall time in that case; else None.
        p99_ns: Wall time that 99 of 100 iterations do not exceed; None below
            100 iterations.
        cpu_median_ns: Median CPU time of an iteration; None if unknown, or if an
            iteration is too short for the CPU clock.
        used: Number of iterations used, over all workers.
        used_ns: The time that they took, of the worker that took longest.
        independent: Effective number of independent iterations, given their autocorrelation.
        error: Standard error of the logarithm of `median_ns`: how much it would vary if the
            launch had iterated again.
        time_slices_ns: For each time slice used, its number and the median of its iterations,
            with several workers their mean; empty if the launch did not alternate.
        alternated: The ids of the launches that it alternated with.
        disturbed: Whether something outside disturbed most of the iterations used.
        steady: How the launch behaved; with several workers, the worst of them.
        settled: Whether all the iterations used are steady.
        delay: The most that other programs can have slowed it down (`interference.delay`).
    """

    launch: str
    block: int
    median_ns: float
    p99_ns: float | None
    cpu_median_ns: float | None
    used: int
    steady: SteadyState
    used_ns: int = 0
    settled: bool = True
    independent: float = 0.0
    error: float = 0.0
    time_slices_ns: tuple[tuple[int, float], ...] = ()
    alternated: tuple[str, ...] = ()
    disturbed: bool = False
    delay: float = 0.0
    iteration_ns: float | None = None

    @property
    def wall_median_ns(self) -> float:
        """Median wall time of an iteration, whatever it is judged by."""
        return self.median_ns if self.iteration_ns is None else self.iteration_ns


class CellSummary(Struct, frozen=True, kw_only=True):
    """The combined results of one cell's launches.

    Attributes:
        launches: Its `ok` launches that its values are computed from, by block.
        counts: How many launches have each status; absent ones are 0.
        median_ns: The median of a typical launch (`typical_launch_value`); None without an `ok`
            launch.
        interval: Its 95 % interval, in nanoseconds; None with fewer than two `ok` launches.
        p99_ns: Geometric mean over the launches that have one.
        p99_interval: The 95 % interval of a typical launch's p99, in nanoseconds. None
            if one of the launches has none, or too few iterations for a reliable
            p99 of its own.
        cpu_median_ns: That of a typical launch that has one. It is chosen as `median_ns` is, so
            that their quotient never exceeds one CPU per thread.
        spread_ratio: Standard deviation of the launches' medians as a share of
            their mean; None with fewer than two.
        unsettled: How many of `launches` used iterations that are not steady.
        left_out: Its other `ok` launches: disturbed ones, if enough others were not.
        has_error: Whether a launch failed by an error of its own, which another would repeat.
    """

    cell: Cell
    launches: tuple[LaunchSummary, ...]
    counts: tuple[tuple[Status, int], ...]
    median_ns: float | None
    interval: intervals.Interval | None
    p99_ns: float | None
    cpu_median_ns: float | None
    spread_ratio: float | None
    unsettled: int
    p99_interval: intervals.Interval | None = None
    left_out: tuple[LaunchSummary, ...] = ()
    has_error: bool = False

    @property
    def disturbed(self) -> int:
        """How many of the launches that its values are computed from were disturbed."""
        return sum(launch.disturbed for launch in self.launches)

    def count(self, status: Status) -> int:
        """How many launches have this status."""
        return dict(self.counts).get(status, 0)

    @property
    def wall_median_ns(self) -> float | None:
        """The wall time of an iteration of a typical launch, whatever it is judged by."""
        return _typical(launch.wall_median_ns for launch in self.launches)

    @property
    def spread_interval(self) -> intervals.Interval | None:
        """The 95 % interval of `spread_ratio`; None with fewer than two `ok` launches."""
        return intervals.variation_interval([launch.median_ns for launch in self.launches])

    @property
    def cpus_busy(self) -> float | None:
        """CPU time over wall time of a typical launch that has both.

        None if no launch has both.
        """
        return _typical(
            None if launch.cpu_median_ns is None or not launch.wall_median_ns
            else launch.cpu_median_ns / launch.wall_median_ns
            for launch in self.launches
        )  # fmt: skip

    @property
    def attempts(self) -> int:
        """How many launches there were, whatever their status."""
        return sum(number for _, number in self.counts)


def summarise_launch(launch: Launch, warmup: Warmup, metric: int = 0) -> LaunchSummary:
    """Reduce a launch to its summary values.

    The warm-up of every worker is detected separately, because processes settle
    independently. Then the iterations of all workers are combined.

    Args:
        launch: An `ok` launch. For a server, the value that it is judged by replaces
            the median, and p99 is that of its latencies.
        warmup: `Measure.warmup`. If a fixed warm-up leaves no iteration, the launch
            is treated like one that never settles.
        metric: Which of its metrics, if its command reports any; negative: none.

    Raises:
        ValueError: No worker has a sample, or the launch was profiled.
    """
    if launch.kind != "measure":
        raise ValueError(f"launch {launch.id} was profiled, not measured")
    if launch.served is not None:
        return _summarise_served(launch, launch.served)
    is_alone = len(launch.workers) == 1
    used = [
        drop_warmup(worker, warmup, is_alone=is_alone, reported=reported)
        for worker in launch.workers
        if worker.wall_ns
        for reported in [reported_times(launch.cell, worker, metric)]
    ]
    if not used:
        raise ValueError(f"launch {launch.id} has no samples")
    wall_ns = [sample for part in used for sample in part.wall_ns]
    cpu_ns = [sample for part in used for sample in part.cpu_ns]
    median_ns = float(np.median(wall_ns))
    is_reported = any(part.reported for part in used)
    is_told = bool(cpu_ns) and median_ns >= LEAST_FOR_CPU_NS
    series = [
        [sample for each in part.reported for sample in each[1:] or each]
        if is_reported
        else part.wall_ns
        for part in used
    ]
    independent = sum(map(effective_sample_size, series))
    samples = np.array(list(chain.from_iterable(series)), dtype=np.float64)
    return LaunchSummary(
        launch=launch.id,
        block=launch.block,
        median_ns=float(np.median([each[0] for part in used for each in part.reported]))
        if is_reported
        else median_ns,
        iteration_ns=median_ns if is_reported else None,
        p99_ns=None if is_reported else p99_ns(wall_ns),
        cpu_median_ns=float(np.median(cpu_ns)) if is_told else None,
        used=len(wall_ns),
        used_ns=max(sum(part.wall_ns) for part in used),
        steady=worst(part.steady for part in used),
        settled=all(part.settled for part in used),
        independent=independent,
        error=median_error(np.log(samples if is_reported else np.maximum(samples, 1)), independent),
        time_slices_ns=_combine_time_slices(part.time_slices_ns for part in used),
        alternated=launch.alternated,
        disturbed=is_mostly_disturbed(launch),
        delay=delay(launch.host),
    )


def _summarise_served(launch: Launch, served: Served) -> LaunchSummary:
    """Summarise a server launch. Its warm-up requests are separate; its windows show settling."""
    answered = served.answered
    tail = percentiles(answered.latencies)
    pace_ns = [answered.window_ns // window.ok for window in answered.windows[:-1] if window.ok]
    state = steady_state(pace_ns)
    return LaunchSummary(
        launch=launch.id,
        block=launch.block,
        median_ns=judged_value_ns(served),
        p99_ns=float(tail.p99_ns) if tail and tail.count >= LEAST_FOR_P99 else None,
        cpu_median_ns=served.cpu_ns / answered.ok,
        used=answered.ok,
        steady=state,
        settled=state.kind in {"steady", "warm-up then steady"},
        independent=float(answered.ok),
        disturbed=is_mostly_disturbed(launch),
        delay=delay(launch.host),
    )


def summarise(
    cell: Cell,
    launches: Iterable[Launch],
    warmup: Warmup,
    metric: int = 0,
    *,
    within_run: bool = False,
) -> CellSummary:
    """Summarise the launches of one cell; only `ok` ones contribute to its statistics.

    Args:
        launches: Its launches, from one run, in any order and of any status.
        warmup: `Measure.warmup`.
        metric: As in `summarise_launch`.
        within_run: As in `select_undisturbed`.
    """
    attempted = tuple(launches)
    summaries = [
        summarise_launch(launch, warmup, metric)
        for launch in attempted
        if launch.status == "ok"
        and (launch.served is not None or any(worker.wall_ns for worker in launch.workers))
    ]
    return combine_launches(cell, summaries, attempted, within_run=within_run)


def combine_launches(
    cell: Cell,
    summaries: Iterable[LaunchSummary],
    launches: Collection[Launch],
    *,
    within_run: bool = False,
) -> CellSummary:
    """Combine launches that are already summarised.

    Launches that never settle are included, flagged and counted in `unsettled`.
    Leaving them out would bias the result in the cell's favour.
    Disturbed launches are left out if there are enough others, because the host's telemetry
    identifies them, not their duration. Otherwise they are included and counted in `disturbed`.

    Args:
        summaries: Its `ok` launches, in any order.
        within_run: As in `select_undisturbed`.
    """
    in_order = sorted(summaries, key=lambda summary: (summary.block, summary.launch))
    by_block = select_undisturbed(
        in_order, lambda summary: summary.disturbed, within_run=within_run
    )
    medians_ns = [summary.median_ns for summary in by_block]
    p99s_ns = [summary.p99_ns for summary in by_block if summary.p99_ns is not None]
    enough = bool(by_block) and all(
        summary.p99_ns is not None and summary.independent >= _LEAST_FOR_P99_INTERVAL
        for summary in by_block
    )
    return CellSummary(
        cell=cell,
        launches=tuple(by_block),
        counts=tuple(sorted(Counter(launch.status for launch in launches).items())),
        has_error=any(launch.ended_by == "error" for launch in launches),
        median_ns=intervals.typical_launch_value(medians_ns) if medians_ns else None,
        interval=intervals.typical_launch_interval(medians_ns),
        p99_ns=intervals.geometric_mean(p99s_ns) if p99s_ns else None,
        p99_interval=intervals.geometric_mean_interval(p99s_ns) if enough else None,
        cpu_median_ns=_typical(summary.cpu_median_ns for summary in by_block),
        spread_ratio=_spread_ratio(medians_ns),
        unsettled=sum(not summary.settled for summary in by_block),
        left_out=tuple(summary for summary in in_order if summary not in by_block),
    )


def value_of(summary: CellSummary) -> float | None:
    """The value of a cell in the unit of its metric, or its median in nanoseconds."""
    metric, median_ns = summary.cell.metric, summary.median_ns
    return median_ns if metric is None or median_ns is None else metric.from_time_ns(median_ns)


def value_ends(summary: CellSummary) -> tuple[float, float] | None:
    """The 95 % interval of `value_of`, low and high; None if there is none."""
    metric, interval = summary.cell.metric, summary.interval
    if interval is None:
        return None
    return interval.ends if metric is None else metric.span_of(interval.ends)


def is_too_short(cell: CellSummary) -> bool:
    """Whether the cell's iterations are too short for the CPU clock."""
    return cell.wall_median_ns is not None and cell.wall_median_ns < LEAST_FOR_CPU_NS


def _combine_time_slices(
    of_workers: Iterable[Sequence[tuple[int, float]]],
) -> tuple[tuple[int, float], ...]:
    """The mean over the workers of each time slice that all of them used."""
    medians_ns = [dict(time_slices) for time_slices in of_workers]
    numbers = set(medians_ns[0]).intersection(*medians_ns[1:])
    return tuple(
        (number, statistics.fmean(by_number[number] for by_number in medians_ns))
        for number in sorted(numbers)
    )


def _typical(values: Iterable[float | None]) -> float | None:
    available = [value for value in values if value is not None]
    return intervals.typical_launch_value(available) if available else None


def _spread_ratio(medians_ns: Sequence[float]) -> float | None:
    if len(medians_ns) < 2:
        return None
    mean_ns = statistics.fmean(medians_ns)
    return statistics.stdev(medians_ns) / mean_ns if mean_ns > 0 else 0.0
