"""Decide which cells need more launches."""

from collections.abc import Mapping, Sequence

from corebound.scenario.models import Launches
from corebound.stats.comparison import Comparison, are_different, speedup_intervals
from corebound.stats.intervals import Interval
from corebound.stats.launch_summary import CellSummary

# A cell that fails twice and never succeeds would keep failing for the rest of the nightly run.
_ATTEMPTS_BEFORE_GIVING_UP = 2
# The confidence at which a difference ends a cell's launches. Looking after every block from the
# third to the thirtieth adds less than 0.5 % of false alarms with any simulated noise; at 99.8 %
# it adds 0.7 % where launches have two modes 22 % apart.
_DIFFERENT_CONFIDENCE = 0.999


def unfinished(
    summaries: Sequence[CellSummary],
    baselines: Mapping[str, str],
    launches: Launches,
    *,
    margin: float,
) -> frozenset[str]:
    """Name the cells of one scenario that the next block launches.

    Every cell gets launches up to `launches.min`. It gets more, up to `launches.max`,
    while the interval of its ratio to its baseline is wider, either way, than
    `launches.until_relative_ci`. Its baseline then gets more too, because the two are
    paired. It gets more than `launches.max` only for a cell that has fewer than `launches.min`,
    because it was left out of a block. A cell that is clearly different gets no more: the
    interval of its ratio at a confidence of 99.9 % lies beyond the margin. A cell with no ratio
    uses the interval of its own time instead. Examples are the only cell of a scenario, and a
    cell whose baseline cannot run.

    A cell without an `ok` launch is given up after two attempts. After a skipped launch it
    is given up at once, because the host will not gain resources, after an error of its own,
    because it would fail again, and after a launch that was too slow for the budget.

    No cell is launched again and again until it happens to look different: at 99.9 %, looking
    after every block makes hardly any false alarm. All else depends on the width of an interval,
    never on its position.

    Args:
        summaries: The scenario's cells so far, including those without a launch.
        baselines: For a cell's key, the key of the cell it is compared with. A
            baseline is absent or maps to itself.
        launches: How many are wanted. Every attempt counts, whatever its status.
        margin: How far either way a ratio still counts as equal, above 0.

    Returns:
        Keys of the cells that need another launch.

    Source of looking at a stricter level than that of the final test: Haybittle, "Repeated
    assessment of results in clinical trials of cancer treatment" (1971); Peto et al., "Design and
    analysis of randomized clinical trials" (1976).
    """
    by_key = {summary.cell.key: summary for summary in summaries}
    compared = {
        key: baselines[key]
        for key in by_key
        if key in baselines and baselines[key] in by_key and baselines[key] != key
    }
    with_baseline = {
        key: baseline for key, baseline in compared.items() if not is_given_up(by_key[baseline])
    }
    # A baseline whose compared cells are all given up is treated like any other cell.
    leading = {compared[key] for key in compared if not is_given_up(by_key[key])}
    open_keys = {
        key
        for key, summary in by_key.items()
        if not is_given_up(summary) and summary.attempts < launches.max
    }
    due = {key for key in open_keys if by_key[key].attempts < launches.min}
    following = {
        key for key in open_keys - due - leading if with_baseline.get(key, key) in open_keys
    }
    selected = due
    if following:
        selected |= following - _certain(by_key, compared, launches, margin)
    return frozenset(selected | {with_baseline[key] for key in selected & with_baseline.keys()})


def is_given_up(summary: CellSummary) -> bool:
    """Whether a cell gets no more launches, because none was ever `ok`."""
    if summary.count("ok"):
        return False
    is_hopeless = bool(summary.count("skipped") or summary.count("dropped")) or summary.has_error
    return is_hopeless or summary.attempts >= _ATTEMPTS_BEFORE_GIVING_UP


def _certain(
    by_key: Mapping[str, CellSummary],
    compared: Mapping[str, str],
    launches: Launches,
    margin: float,
) -> set[str]:
    """The cells whose reported value is as precise as requested, or clearly different.

    That is the ratio to the baseline. Without a measured baseline it is the cell's own time.
    """
    pairs = {
        key: (by_key[key], by_key[baseline])
        for key, baseline in compared.items()
        if not is_given_up(by_key[baseline])
    }
    intervals: dict[str, Interval | None] = {
        key: summary.interval for key, summary in by_key.items() if key not in pairs
    }
    sides = tuple(pairs.values())
    of_ratios = speedup_intervals(sides, adaptive=True)
    intervals |= zip(pairs, of_ratios, strict=True)
    precise = {
        key
        for key, interval in intervals.items()
        if interval is not None and interval.relative_half_width <= launches.until_relative_ci
    }
    different = are_different(
        sides, of_ratios, margin=margin, confidence=_DIFFERENT_CONFIDENCE, adaptive=True
    )
    return precise | {key for key, differs in zip(pairs, different, strict=True) if differs}


# Blocks per turn of a scenario with a doubtful cell; a scenario without one gets one block. With
# one scenario of each kind, the doubtful one gets three of four launches, and no scenario waits
# for another to finish.
DOUBTFUL_TURNS = 3


def needs_more_launches(
    summary: CellSummary, comparison: Comparison | None, launches: Launches, *, margin: float
) -> bool:
    """Whether a cell's last result was inconclusive or too noisy.

    Args:
        comparison: Its comparison with its baseline; None without one: its own time counts then.
        launches: The interval width that the scenario requests.
        margin: How far either way a ratio still counts as equal, above 0.

    Returns:
        False also if no launch was `ok`, because more would fail as well.
    """
    if not summary.count("ok"):
        return False
    if comparison is not None and comparison.verdict == "inconclusive":
        return True
    interval = comparison.interval if comparison is not None else summary.interval
    if interval is None:
        return True
    is_different = comparison is not None and interval.is_beyond(margin)
    return not is_different and interval.relative_half_width > launches.until_relative_ci


# A cell this many times slower than its baseline is a trap, and its cause is worth knowing.
_TRAP_RATIO = 2.0


def most_informative_cells(
    summaries: Sequence[CellSummary], baselines: Mapping[str, str]
) -> tuple[tuple[str, ...], ...]:
    """Choose, for every baseline, the cells that best show where time goes.

    Args:
        baselines: For a cell's key, the key of the cell it is compared with. A
            baseline is absent or maps to itself.

    Returns:
        For each baseline, in the order of the cells, keys of measured cells: its
        own, that of the fastest cell compared with it, and that of the slowest
        if it takes at least twice the baseline's time. A cell whose baseline
        was not measured is still included in the baseline's group.
    """
    medians_ns = {
        summary.cell.key: summary.median_ns
        for summary in summaries
        if summary.median_ns is not None
    }
    rivals: dict[str, list[str]] = {}
    for key in (summary.cell.key for summary in summaries):
        base = baselines.get(key, key)
        own = rivals.setdefault(base, [])
        if key != base and key in medians_ns:
            own.append(key)
    chosen = (_informative(base, own, medians_ns) for base, own in rivals.items())
    return tuple(keys for keys in chosen if keys)


def _informative(base: str, rivals: list[str], medians_ns: Mapping[str, float]) -> tuple[str, ...]:
    ranked = sorted(rivals, key=lambda key: medians_ns[key])
    keys = [base] if base in medians_ns else []
    keys += ranked[:1]
    if base in medians_ns and ranked and medians_ns[ranked[-1]] >= _TRAP_RATIO * medians_ns[base]:
        keys.append(ranked[-1])
    return tuple(dict.fromkeys(keys))
