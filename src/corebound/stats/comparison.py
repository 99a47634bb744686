"""Compare a cell with its baseline: speed-up ratio, confidence interval and verdict."""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal, TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from corebound.stats.between_runs import BetweenRuns
from corebound.stats.distributions import (
    student_below,
    student_quantile,
)
from corebound.stats.host_speeds import HostSpeeds, recognise_host_speeds
from corebound.stats.intervals import (
    CONFIDENCE,
    Array,
    Ends,
    Interval,
    is_usable_ratio,
    log_interval,
    middles,
    ratio_interval_pair,
)
from corebound.stats.launch_summary import CellSummary
from corebound.stats.modes import Modes, recognise_modes
from corebound.stats.ranks import CONFIDENCE as RANK_CONFIDENCE
from corebound.stats.ranks import RankComparison, compare_ranks
from corebound.stats.sample_size import ObservedEffect, launches_needed
from corebound.stats.shared_variance import share_variances

# With fewer shared time slices, the launches' own medians are as good.
_MIN_TIME_SLICES = 5
# Where launches have two modes, both launches of a cell are often in one and both of its baseline
# in the other, and their spread shows nothing of that. So the interval of two launches reaches at
# least this far either way, as a logarithm. It covers modes up to a third apart.
_LEAST_REACH_OF_TWO = math.log(4 / 3)


def log_ratios(cell: CellSummary, baseline: CellSummary) -> dict[int, float]:
    """Logarithms of baseline time over cell time, for each block with an `ok` launch of both.

    For launches that alternated, it is the median over their time slices, each paired with the
    other's adjacent slice. Otherwise it uses the launches' medians. Empty if a median is 0.
    """
    logs, baseline_logs = logs_by_block(cell), logs_by_block(baseline)
    if logs is None or baseline_logs is None:
        return {}
    return _paired(cell, baseline, logs, baseline_logs)


def _paired(
    cell: CellSummary,
    baseline: CellSummary,
    logs: dict[int, list[float]],
    baseline_logs: dict[int, list[float]],
) -> dict[int, float]:
    """The `log_ratios` of two cells, given their `logs_by_block`."""
    by_time_slices = time_slice_log_ratios(cell, baseline)
    return {
        block: statistics.median(by_time_slices[block])
        if block in by_time_slices
        else statistics.fmean(baseline_logs[block]) - statistics.fmean(logs[block])
        for block in sorted(logs.keys() & baseline_logs.keys())
    }


def logs_by_block(summary: CellSummary) -> dict[int, list[float]] | None:
    """The logarithms of the launches' medians, by block; None without any, or if one is 0."""
    logs = defaultdict(list)
    for launch in summary.launches:
        if launch.median_ns <= 0:
            return None
        logs[launch.block].append(math.log(launch.median_ns))
    return logs or None


def time_slice_log_ratios(cell: CellSummary, baseline: CellSummary) -> dict[int, list[float]]:
    """For each block in which the two alternated, the log ratio of each pair of time slices."""
    bases = {launch.launch: launch for launch in baseline.launches}
    by_block = {}
    for launch in cell.launches:
        for other in launch.alternated:
            base_ns = dict(bases[other].time_slices_ns) if other in bases else {}
            logs = [math.log(base_ns[at] / ns) for at, ns in launch.time_slices_ns if at in base_ns]
            if len(logs) >= _MIN_TIME_SLICES:
                by_block[launch.block] = logs
    return by_block


Verdict = Literal["faster", "slower", "equivalent", "inconclusive"]

# What errors are multiplied by. Which launches are trimmed, whether they have modes, and what they
# share with other comparisons is chosen after seeing them. Stopping as soon as the interval is
# narrow favours samples whose spread is small by chance, the more so the fewer they are. Without
# these factors up to 8 % of A/A pairs gave a false alarm: see the page
# docs/explanation/statistics/comparisons.md.
_PRICE_OF_CHOOSING = 1.1
_PRICE_OF_STOPPING, _PRICE_OF_STOPPING_EARLY, _EARLY = 1.2, 1.3, 6
# From this many launches on, a comparison's own variance is known well enough that its interval may
# be used if it is narrower than the one from shared variances. Only where stopping has its price:
# of launches of a fixed number, 6 to 8 % of equal pairs would look different.
_OWN_VARIANCE_LAUNCHES = 6
# How soon comparisons that vary alike count as one. Variances of normal values are as alike as the
# square; but with a baseline as noisy as its cells that would widen intervals of three launches by
# 17 %, and this by 8 %, without a false alarm less.
_ALIKE_POWER = 4
# What the p-values of Student's t and of the ranks are multiplied by, because either may decide.
# The error is divided unequally, as the second look has to be clear.
_PRICE_OF_T, _PRICE_OF_RANKS = 1.2, 6.0
# Besides making a program wait, another program that shares its core, cache or memory may halve
# its speed.
_SHARED_CORE = math.log(2)
# That others disturb one side in so many blocks and the other in none is no chance (1 in 32): it
# belongs to its configuration.
_LASTING_BLOCKS = 5


class ModeComparison(Struct, frozen=True, kw_only=True):
    """Both comparisons of launches of two modes.

    Attributes:
        modes: The modes, and the ratio of launches of the same mode.
        expected_ratio: Baseline time over cell time, over launches of any mode.
        expected_interval: The 95 % interval of `expected_ratio`.
        is_same_mode: Whether the verdict is that of launches of the same mode.
        shares_differ: Whether the sides' shares of fast launches differ significantly.
    """

    modes: Modes
    expected_ratio: float
    expected_interval: Interval
    is_same_mode: bool
    shares_differ: bool


class Comparison(Struct, frozen=True, kw_only=True):
    """A cell's speed as a multiple of its baseline's.

    Attributes:
        speedup_ratio: Baseline time over cell time; above 1 the cell is faster.
        interval: The 95 % interval of that ratio; None if the launches are too few for one, for
            example one of each, or if it is too wide to be useful (`is_usable_ratio`). If
            `by_ranks`, the 99 % interval of the ranks instead.
        verdict: The verdict from the interval; `inconclusive` without one.
        pairs: How many blocks had an `ok` launch of both and were paired. 0
            if the launches were compared unpaired, by request or because fewer
            than two blocks had both.
        per_block: Each paired block and the ratio within it.
        p_value: The probability that launches of two equal cells differ this much; None
            with too few launches. Input of `multiplicity.holm` for several cells.
        launches_needed: If inconclusive, how many launches of each side would decide the
            comparison with a probability of four fifths, given the ratio and the spread
            seen and their uncertainty. None if decided or if the data cannot tell.
        by_mode: If launches have two modes, the comparisons within a mode and over both. The
            other values are those of the one that decides.
        host_speeds: If the host had two speeds and its slow blocks vary more, those blocks. The
            other values weight them by that.
        by_ranks: Whether the ranks of the launches decide, because their spread hides the
            difference from Student's t. The ratio is then at least the interval's nearer end.
    """

    speedup_ratio: float
    interval: Interval | None
    verdict: Verdict
    pairs: int
    per_block: tuple[tuple[int, float], ...]
    p_value: float | None
    launches_needed: int | None
    by_mode: ModeComparison | None = None
    host_speeds: HostSpeeds | None = None
    by_ranks: bool = False

    @property
    def speedup_interval(self) -> Ends | None:
        """The ends of `interval`, (low, high); None without one."""
        return ratio_interval_pair(self.interval)

    @property
    def slowdown_ratio(self) -> float:
        """Cell time over baseline time: above 1 the cell is slower."""
        return 1 / self.speedup_ratio

    @property
    def slowdown_interval(self) -> Ends | None:
        """The 95 % interval of `slowdown_ratio`, (low, high); None without one."""
        return (1 / self.interval.high, 1 / self.interval.low) if self.interval else None


class LogRatioEstimate(Struct, frozen=True, kw_only=True):
    """The logarithm of a ratio.

    `blocks` are the logarithms whose mean it is, empty if unpaired. `error` is its
    standard error and `freedom` that error's degrees of freedom; both can be None.
    `launches` is the number of launches used of each side.
    `by_launches` is the part of `error` that more launches would reduce, with its own
    degrees of freedom; None if that is all of it. `modes` are those of the launches, if they
    have two, and `host_speeds` those of the host, if it had two.
    """

    blocks: tuple[tuple[int, float], ...] = ()
    middle: float
    error: float | None = None
    freedom: float | None = None
    launches: int
    by_launches: tuple[float, float] | None = None
    modes: Modes | None = None
    host_speeds: HostSpeeds | None = None

    @property
    def least_reach(self) -> float:
        """The least half width of its interval, which its error may be too small for."""
        return _LEAST_REACH_OF_TWO if self.launches == 2 else 0.0


def compare(
    cell: CellSummary,
    baseline: CellSummary,
    *,
    margin: float,
    adaptive: bool = False,
    between: BetweenRuns | None = None,
) -> Comparison | None:
    """Compare a cell with its baseline, paired by block.

    The launches of one block run close in time, so disturbances by the host that affect
    all of them cancel in the ratio. For two launches that alternate, the ratio is the
    median over their time slices, each paired with the other's adjacent slice. Disturbances
    of a few milliseconds then cancel too. With fewer than two shared blocks, the launches
    are compared unpaired (Welch), which allows unequal numbers of launches. Both methods
    use logarithms, so swapping the two cells gives exactly the reciprocal.

    Args:
        baseline: What it is compared with; from the same run, unless `between` is given.
        margin: How far either way still counts as equal, above 0; a ratio of
            1 / (1 + margin) to 1 + margin.
        adaptive: Whether the number of launches depended on their spread, as in
            `sample_size.unfinished` if `Launches.max` exceeds `min`.
            The interval is then wider, to correct for stopping when it happens to be narrow.
        between: How much the cell's level varies from run to run, if the two come from
            different runs; blocks with the same number are then unrelated. The interval is
            widened by it, and by how unequally other programs delayed the two.

    The verdict is `inconclusive` if only the slower side's value is based on disturbed launches
    and the disturbance can explain the difference, unless it was so in five blocks of one run.

    Returns:
        The comparison, or None if one of the two has no `ok` launch, or if a
        launch's median is 0 and so no ratio exists.

    Raises:
        ValueError: `margin` is not above 0.

    Source: pairing, Kalibera & Jones, "Rigorous benchmarking in reasonable time"
    (2013); outlying blocks, `intervals.adaptive_trimmed_mean`; equivalence by inclusion of the
    interval, Schuirmann (1987), here at the stricter 95 %; Welch, Biometrika 34 (1947);
    degrees of freedom of a sum of variances, Satterthwaite, Biometrics Bulletin 2 (1946).
    """
    if margin <= 0:
        raise ValueError("a margin is above 0")
    if between is None:
        ((cell, baseline),) = _as_exposed([(cell, baseline)])
    estimate = _estimate(cell, baseline, adaptive=adaptive, between=between)
    return None if estimate is None else _comparison(cell, baseline, estimate, margin)


def compare_expected(
    cell: CellSummary, baseline: CellSummary, *, margin: float, adaptive: bool = False
) -> Comparison | None:
    """Compare two cells as `compare` does, but over launches of any mode.

    This is what a user gets on average, whichever mode a launch is in.
    """
    comparison = compare(cell, baseline, margin=margin, adaptive=adaptive)
    if comparison is None or comparison.by_mode is None:
        return comparison
    ratio, interval = comparison.by_mode.expected_ratio, comparison.by_mode.expected_interval
    is_usable = is_usable_ratio(*interval.ends)
    return replace(
        comparison,
        speedup_ratio=ratio,
        interval=interval if is_usable else None,
        verdict=verdict_of(interval, margin) if is_usable else "inconclusive",
        launches_needed=None,
        by_mode=None,
    )


Other = TypeVar("Other", CellSummary, CellSummary | None)
# A cell, and the baseline it is compared with; None if it has none or the host cannot run it.
Pair = tuple[CellSummary, CellSummary | None]


def compare_together(
    pairs: Sequence[Pair], *, margin: float, adaptive: bool = False
) -> tuple[Comparison | None, ...]:
    """Compare the cells of one scenario with their baselines, in one run.

    Each comparison is that of `compare`, but the paired ones share what they show of the
    variance between launches, see `share_variances`. With few launches that makes intervals
    narrower, and no less likely to include the true ratio.

    Args:
        margin: As in `compare`.
        adaptive: As in `compare`.

    Returns:
        A comparison for each pair, in their order; None where `compare` returns None, and
        for a cell without a baseline.

    Raises:
        ValueError: `margin` is not above 0.
    """
    if margin <= 0:
        raise ValueError("a margin is above 0")
    pairs = _as_exposed(pairs)
    return tuple(
        None
        if estimate is None or baseline is None
        else _comparison(cell, baseline, estimate, margin)
        for (cell, baseline), estimate in zip(
            pairs, _estimates(pairs, adaptive=adaptive), strict=True
        )
    )


def _as_exposed(pairs: Iterable[tuple[CellSummary, Other]]) -> list[tuple[CellSummary, Other]]:
    """The same pairs; both sides have all their launches if one has disturbed ones.

    It has these if most of its launches are disturbed. The undisturbed ones of the other side then
    belong to few of the same blocks, and would be compared with what others delayed.
    """
    return [
        (_with_all_launches(cell), _with_all_launches(baseline))
        if baseline is not None and (cell.disturbed or baseline.disturbed)
        else (cell, baseline)
        for cell, baseline in pairs
    ]


def _with_all_launches(summary: CellSummary) -> CellSummary:
    launches = sorted(
        (*summary.launches, *summary.left_out), key=lambda launch: (launch.block, launch.launch)
    )
    return replace(summary, launches=tuple(launches), left_out=())


def speedup_intervals(
    pairs: Sequence[Pair], *, adaptive: bool = False, confidence: float = CONFIDENCE
) -> tuple[Interval | None, ...]:
    """The intervals of `compare_together`, however wide; None with too few launches."""
    return tuple(
        None if estimate is None else interval_of(estimate, confidence=confidence)
        for estimate in _estimates(_as_exposed(pairs), adaptive=adaptive, confidence=confidence)
    )


def are_different(
    pairs: Sequence[Pair],
    intervals: Sequence[Interval | None],
    *,
    margin: float,
    confidence: float,
    adaptive: bool = False,
) -> tuple[bool, ...]:
    """Whether each cell differs from its baseline by more than the margin.

    Args:
        pairs: As in `compare_together`.
        intervals: Their `speedup_intervals` at the usual confidence, which is lower.
        margin: As in `compare`.
        confidence: The confidence of the interval that must lie beyond the margin.
        adaptive: As in `compare`.

    Returns:
        For each pair, in their order; False where a disturbance can explain the difference.
    """
    # No interval is narrower at a higher confidence, so most need not be computed.
    if any(interval is not None and interval.is_beyond(margin) for interval in intervals):
        intervals = speedup_intervals(pairs, adaptive=adaptive, confidence=confidence)
    pairs = _as_exposed(pairs)
    return tuple(
        baseline is not None
        and any(
            interval is not None
            and interval.is_beyond(margin)
            and not _is_explained_by_disturbance(
                cell, baseline, interval, verdict_of(interval, margin), within_run=True
            )
            for ranks in [_ranks(cell, baseline, confidence=confidence)]
            for interval in (by_t, ranks.interval if ranks else None)
        )
        for (cell, baseline), by_t in zip(pairs, intervals, strict=True)
    )


def _comparison(
    cell: CellSummary, baseline: CellSummary, estimate: LogRatioEstimate, margin: float
) -> Comparison:
    """The comparison that an estimate gives."""
    by_mode = _by_mode(estimate, margin)
    if by_mode is not None and by_mode.is_same_mode:
        modes = by_mode.modes
        estimate = replace(estimate, middle=modes.middle, error=modes.error, freedom=modes.freedom)
    interval = interval_of(estimate)
    is_usable = interval is not None and is_usable_ratio(*interval.ends)
    verdict = verdict_of(interval, margin) if is_usable else "inconclusive"
    within_run = estimate.by_launches is None
    # Two runs differ by more than the ranks of their launches show.
    ranks = _ranks(cell, baseline) if within_run else None
    by_ranks = ranks is not None and verdict == "inconclusive" and not ranks.interval.contains(1.0)
    if ranks is not None and by_ranks:
        interval, is_usable = ranks.interval, True
        verdict = verdict_of(interval, margin)
    explained = _is_explained_by_disturbance(
        cell, baseline, interval, verdict, within_run=within_run
    )
    p_value = _p_value(estimate)
    if p_value is not None and ranks is not None:
        p_value = min(1.0, _PRICE_OF_T * p_value, _PRICE_OF_RANKS * ranks.p_value)
    if explained:
        # More launches cannot tell.
        verdict, estimate, p_value = "inconclusive", replace(estimate, error=None), None
    return Comparison(
        speedup_ratio=math.exp(estimate.middle),
        interval=interval if is_usable else None,
        verdict=verdict,
        pairs=len(estimate.blocks),
        per_block=tuple((block, math.exp(log)) for block, log in estimate.blocks),
        p_value=p_value,
        launches_needed=_launches_needed(estimate, margin) if verdict == "inconclusive" else None,
        by_mode=by_mode,
        host_speeds=estimate.host_speeds,
        by_ranks=by_ranks,
    )


def _ranks(
    cell: CellSummary, baseline: CellSummary, *, confidence: float = RANK_CONFIDENCE
) -> RankComparison | None:
    """The comparison by ranks of all launches of both."""
    logs, baseline_logs = logs_by_block(cell), logs_by_block(baseline)
    if logs is None or baseline_logs is None:
        return None
    return compare_ranks(_flat(logs), _flat(baseline_logs), confidence=confidence)


# The two sides' shares of fast launches differ if they would so rarely by chance.
_SHARES_DIFFER = 0.05


def _by_mode(estimate: LogRatioEstimate, margin: float) -> ModeComparison | None:
    """Both comparisons of launches of two modes, and which decides; None without modes.

    The one within a mode decides unless the sides' shares of fast launches differ, or the other's
    interval lies elsewhere. It cannot decide that two cells are equivalent: a few launches do not
    exclude that the shares differ, which would make one of the cells slower on average.
    """
    modes = estimate.modes
    if modes is None or (expected_interval := interval_of(estimate)) is None:
        return None
    interval, shares_differ = modes.interval, modes.share_p_value <= _SHARES_DIFFER
    is_same_mode = (
        verdict_of(interval, margin) != "equivalent"
        and not shares_differ
        and interval.low <= expected_interval.high
        and expected_interval.low <= interval.high
    )
    return ModeComparison(
        modes=modes,
        expected_ratio=math.exp(estimate.middle),
        expected_interval=expected_interval,
        is_same_mode=is_same_mode,
        shares_differ=shares_differ,
    )


def _is_explained_by_disturbance(
    cell: CellSummary,
    baseline: CellSummary,
    interval: Interval | None,
    verdict: Verdict,
    *,
    within_run: bool,
) -> bool:
    """Whether disturbances of the slower side alone can explain a difference.

    Args:
        within_run: Whether both are of one run, so that blocks of the same number belong together.
    """
    if interval is None or verdict not in {"faster", "slower"}:
        return False
    slower, quicker = (cell, baseline) if verdict == "slower" else (baseline, cell)
    if not slower.disturbed or quicker.disturbed:
        return False
    together = {launch.block for launch in quicker.launches}
    hit = sum(launch.disturbed and launch.block in together for launch in slower.launches)
    if within_run and hit >= _LASTING_BLOCKS:
        return False
    nearest = interval.high if interval.high < 1 else interval.low
    # The ratio is that of means, so what a single launch waited is only its part of it.
    delay = statistics.fmean(launch.delay for launch in slower.launches)
    return abs(math.log(nearest)) <= _SHARED_CORE + delay


def _estimates(
    pairs: Sequence[Pair], *, adaptive: bool, confidence: float = CONFIDENCE
) -> list[LogRatioEstimate | None]:
    """The estimates of several comparisons, of which the paired ones share their variances."""
    estimates = [
        None if baseline is None else _estimate(cell, baseline, adaptive=adaptive, between=None)
        for cell, baseline in pairs
    ]
    # Launches that alternate vary much less than others, so each kind shares with its own.
    for alternates in (False, True):
        members = [
            index
            for index, (cell, _) in enumerate(pairs)
            if any(launch.alternated for launch in cell.launches) is alternates
        ]
        shared = _shared([estimates[i] for i in members], adaptive=adaptive, confidence=confidence)
        for index, estimate in zip(members, shared, strict=True):
            estimates[index] = estimate
    return estimates


def _shared(
    estimates: Sequence[LogRatioEstimate | None], *, adaptive: bool, confidence: float
) -> list[LogRatioEstimate | None]:
    """The same estimates; the paired ones with the errors that sharing gives."""
    result = list(estimates)
    sharing = [
        (index, estimate, estimate.error, estimate.freedom)
        for index, estimate in enumerate(estimates)
        if estimate is not None
        and estimate.blocks
        and estimate.error is not None
        and estimate.freedom is not None
    ]
    if not sharing:
        return result
    # The standard deviation of one pair, because the numbers of launches may differ.
    roots = np.sqrt([float(estimate.launches) for _, estimate, _, _ in sharing])
    shared = share_variances(
        np.array([error for _, _, error, _ in sharing]) * roots,
        np.array([freedom for _, _, _, freedom in sharing]),
        confidence=confidence,
        independent=_independent([dict(estimate.blocks) for _, estimate, _, _ in sharing]),
    )
    quantile = (1 + confidence) / 2
    for (index, estimate, own_error, own_freedom), error, freedom in zip(
        sharing, shared.errors / roots, shared.freedoms, strict=True
    ):
        own_reach = own_error * student_quantile(own_freedom, quantile)
        is_narrower = own_reach < error * student_quantile(float(freedom), quantile)
        if not (adaptive and is_narrower and estimate.launches >= _OWN_VARIANCE_LAUNCHES):
            result[index] = replace(estimate, error=float(error), freedom=float(freedom))
    return result


def _independent(rows: Sequence[dict[int, float]]) -> float:
    """How many independent comparisons each of some is worth, given its log ratios by block.

    Where the launches of a common baseline vary most, all comparisons vary alike, and tell no more
    about the variance than one does. Their mean then varies as much as each.
    """
    blocks = sorted(set.intersection(*map(set, rows)))
    if len(rows) < 2 or len(blocks) < 2:
        return 1.0
    logs = np.array([[row[block] for block in blocks] for row in rows])
    each, mean = float(logs.var(axis=1).mean()), float(logs.mean(axis=0).var())
    alike = max(0.0, (len(rows) * mean / each - 1) / (len(rows) - 1)) if each else 0.0
    return 1 / (1 + (len(rows) - 1) * alike**_ALIKE_POWER)


def _estimate(
    cell: CellSummary, baseline: CellSummary, *, adaptive: bool, between: BetweenRuns | None
) -> LogRatioEstimate | None:
    """Pair by block if at least two blocks can be paired; None if there is no ratio."""
    logs, baseline_logs = logs_by_block(cell), logs_by_block(baseline)
    if logs is None or baseline_logs is None:
        return None
    blocks = () if between else tuple(_paired(cell, baseline, logs, baseline_logs).items())
    if len(blocks) < 2:
        unpaired = _unpaired(_flat(logs), _flat(baseline_logs))
        if adaptive and unpaired.error is not None:
            price = _price(unpaired.launches, adaptive=True)
            unpaired = replace(unpaired, error=unpaired.error * price)
        return (
            unpaired
            if between is None
            else _add_run_variation(unpaired, between, delay_difference(cell, baseline))
        )
    (estimate,) = paired_estimates(np.array([[log for _, log in blocks]]), adaptive=adaptive)
    cell_logs, other_logs = (
        {block: statistics.fmean(by_block[block]) for block, _ in blocks}
        for by_block in (logs, baseline_logs)
    )
    price = _price(len(blocks), adaptive=adaptive)
    modes = recognise_modes(dict(blocks), cell_logs, other_logs)
    if modes is not None:
        modes = replace(modes, error=modes.error * price)
    elif all(launch.alternated for launch in cell.launches):
        levels = {block: (cell_logs[block] + other_logs[block]) / 2 for block, _ in blocks}
        host_speeds = recognise_host_speeds(dict(blocks), levels)
        if host_speeds is not None:
            host_speeds = replace(host_speeds, error=host_speeds.error * price)
            estimate = replace(
                estimate,
                middle=host_speeds.middle,
                error=host_speeds.error,
                freedom=host_speeds.freedom,
            )
            return replace(estimate, blocks=blocks, host_speeds=host_speeds)
    return replace(estimate, blocks=blocks, modes=modes)


def paired_estimates(rows: Array, *, adaptive: bool) -> list[LogRatioEstimate]:
    """The estimates that `compare` makes from k comparisons of n pairs, without their blocks.

    Args:
        rows: (k, n) log ratios of pairs of launches, n at least two.
        adaptive: As in `compare`.
    """
    return [
        LogRatioEstimate(
            middle=middle.mean,
            error=middle.error * _price(rows.shape[1], adaptive=adaptive),
            freedom=middle.freedom,
            launches=rows.shape[1],
        )
        for middle in middles(rows)
    ]


def _price(launches: int, *, adaptive: bool) -> float:
    """What the error of paired launches is multiplied by, because choices depend on them."""
    if not adaptive:
        return _PRICE_OF_CHOOSING
    return _PRICE_OF_STOPPING_EARLY if launches < _EARLY else _PRICE_OF_STOPPING


def _flat(logs: dict[int, list[float]]) -> list[float]:
    return [log for block in sorted(logs) for log in logs[block]]


def _unpaired(logs: Sequence[float], baseline_logs: Sequence[float]) -> LogRatioEstimate:
    """Welch's t: each side with its own spread and all its launches.

    Trimming outliers from one side and not from the other would shift the ratio. If
    launches fall into two groups, such intervals held the truth in only 83 of 100 trials.
    """
    middle = statistics.fmean(baseline_logs) - statistics.fmean(logs)
    sides = (logs, baseline_logs)
    fewest = min(map(len, sides))
    if fewest < 2:
        return LogRatioEstimate(middle=middle, launches=fewest)
    shares = [statistics.variance(side) / len(side) for side in sides]
    error = math.sqrt(sum(shares))
    freedom = (
        sum(shares) ** 2
        / sum(share**2 / (len(side) - 1) for share, side in zip(shares, sides, strict=True))
        if error > 0
        else fewest - 1
    )
    return LogRatioEstimate(middle=middle, error=error, freedom=freedom, launches=fewest)


def delay_difference(cell: CellSummary, baseline: CellSummary) -> float:
    """How much more other programs can have delayed one run than the other, as a logarithm."""
    delay, other_delay = (
        statistics.fmean([launch.delay for launch in side.launches]) for side in (cell, baseline)
    )
    return abs(delay - other_delay)


def _add_run_variation(
    estimate: LogRatioEstimate, between: BetweenRuns, delayed: float
) -> LogRatioEstimate:
    """Add the variation between two runs, which more launches cannot reduce."""
    if estimate.error is None or estimate.freedom is None:
        return estimate
    # The difference between the levels of two runs has twice the variance of one level.
    own_variance, runs_variance = estimate.error**2, 2 * between.variance
    variance = own_variance + runs_variance + delayed**2
    # A delay is a bound on the host's effect, not an estimate: it adds no uncertainty of the error.
    uncertainty = own_variance**2 / estimate.freedom + (2 * between.whole) ** 2 / between.freedom
    return replace(
        estimate,
        error=math.sqrt(variance),
        freedom=variance**2 / uncertainty if uncertainty > 0 else estimate.freedom,
        by_launches=(estimate.error, estimate.freedom),
    )


def interval_of(estimate: LogRatioEstimate, *, confidence: float = CONFIDENCE) -> Interval | None:
    """The interval of the ratio, by Student's t; None without an error."""
    if estimate.error is None or estimate.freedom is None:
        return None
    return log_interval(
        estimate.middle,
        standard_error=_widened_error(estimate.error, estimate.freedom, estimate, confidence),
        freedom=estimate.freedom,
        confidence=confidence,
    )


def _p_value(estimate: LogRatioEstimate) -> float | None:
    """Two-sided p-value of the hypothesis that the ratio is 1."""
    if estimate.error is None or estimate.freedom is None:
        return None
    error = _widened_error(estimate.error, estimate.freedom, estimate, CONFIDENCE)
    if error == 0:
        return 1.0 if estimate.middle == 0 else 0.0
    return 2 * student_below(estimate.freedom, -abs(estimate.middle) / error)


def _widened_error(
    error: float, freedom: float, estimate: LogRatioEstimate, confidence: float
) -> float:
    """The error, at least so large that the interval has the estimate's least reach."""
    return max(error, estimate.least_reach / student_quantile(freedom, (1 + confidence) / 2))


def verdict_of(interval: Interval | None, margin: float) -> Verdict:
    """The verdict from the interval of a speed ratio; differences within the margin are none."""
    if interval is None:
        return "inconclusive"
    if 1 / (1 + margin) <= interval.low and interval.high <= 1 + margin:
        return "equivalent"
    if interval.low > 1:
        return "faster"
    return "slower" if interval.high < 1 else "inconclusive"


def _launches_needed(estimate: LogRatioEstimate, margin: float) -> int | None:
    """How many launches of each side decide with a probability of four fifths, given these."""
    if estimate.error is None or estimate.freedom is None:
        return None
    error, freedom = estimate.by_launches or (estimate.error, estimate.freedom)
    if error == 0:
        return None
    factor = student_quantile(estimate.freedom, (1 + CONFIDENCE) / 2)
    effect = ObservedEffect(
        # The sign does not matter; taking it off makes both directions round alike.
        middle=abs(estimate.middle),
        error=error,
        freedom=freedom,
        launches=estimate.launches,
        fixed=factor * math.sqrt(max(0.0, estimate.error**2 - error**2)),
    )
    return launches_needed(effect, room=math.log1p(margin))
