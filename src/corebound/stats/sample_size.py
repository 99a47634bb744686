"""Which cells need more launches, and how many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corebound.scenario.models import Launches
from corebound.stats.comparison import Comparison, speedup_interval
from corebound.stats.launch_summary import CellSummary

# What fails twice and never succeeds would fail for the rest of the night.
_ATTEMPTS_BEFORE_GIVING_UP = 2


def unfinished(
    summaries: Sequence[CellSummary], baselines: Mapping[str, str], launches: Launches
) -> frozenset[str]:
    """Name the cells of one scenario that the next block is to launch.

    Every cell wants launches up to `launches.min`. It goes on, up to
    `launches.max`, while the interval of its ratio to its baseline is wider,
    either way, than `launches.until_relative_ci`; and its baseline goes on with
    it, for the two are paired. A cell with no ratio, as the only one of a
    scenario or one whose baseline cannot run, looks at the interval of its own
    time instead.

    A cell is given up without an `ok` launch after two attempts, or after one
    that was skipped: the host will not grow.

    The rule looks at how wide an interval is, never at where it lies, so a
    cell is not launched again and again until it happens to look different.

    Args:
        summaries: The scenario's cells so far, those without a launch included.
        baselines: For a cell's key, the key of the cell it is compared with. A
            baseline is left out or is its own.
        launches: How many are wanted. Every attempt counts, whatever became of it.

    Returns:
        Keys of the cells that want another launch.
    """
    by_key = {summary.cell.key: summary for summary in summaries}
    compared = {
        key: baselines[key]
        for key in by_key
        if key in baselines and baselines[key] in by_key and baselines[key] != key
    }
    # A baseline whose comparisons are all given up is a cell like any other.
    leading = {compared[key] for key in compared if not given_up(by_key[key])}
    open_keys = {
        key
        for key, summary in by_key.items()
        if not given_up(summary) and summary.attempts < launches.max
    }
    wanted = {
        key
        for key in open_keys
        if by_key[key].attempts < launches.min
        or (
            key not in leading
            and not _narrow(by_key[key], by_key.get(compared.get(key, "")), launches)
        )
    }
    return frozenset(wanted | ({compared[key] for key in wanted & compared.keys()} & open_keys))


def given_up(summary: CellSummary) -> bool:
    """Whether a cell is launched no more, for it never went well."""
    if summary.count("ok"):
        return False
    return summary.count("skipped") > 0 or summary.attempts >= _ATTEMPTS_BEFORE_GIVING_UP


def _narrow(summary: CellSummary, baseline: CellSummary | None, launches: Launches) -> bool:
    """Whether what is reported of this cell is as certain as asked."""
    if baseline is None or given_up(baseline):
        interval = summary.interval
    else:
        interval = speedup_interval(summary, baseline, adaptive=True)
    return interval is not None and interval.relative_half_width <= launches.until_relative_ci


# Blocks a turn of a scenario with a doubtful cell, where one without has one. Three of four
# launches go to it where there is one of each, and no scenario waits for another's end.
DOUBTFUL_TURNS = 3


def needs_more_launches(
    summary: CellSummary, compared: Comparison | None, launches: Launches
) -> bool:
    """Whether a cell was undecided when it was last measured, or too noisy to tell.

    Args:
        summary: What its launches came to.
        compared: With its baseline; None where it has none: its own time counts then.
        launches: How narrow an interval the scenario asks for.

    Returns:
        False also where no launch was `ok`: more would fail as well.
    """
    if not summary.count("ok"):
        return False
    if compared is not None and compared.verdict == "undecided":
        return True
    interval = compared.interval if compared is not None else summary.interval
    return interval is None or interval.relative_half_width > launches.until_relative_ci


# A cell this many times as slow as its baseline is a trap; why it is one is worth knowing.
_TRAP_RATIO = 2.0


def telling(
    summaries: Sequence[CellSummary], baselines: Mapping[str, str]
) -> tuple[tuple[str, ...], ...]:
    """Choose, for every baseline, the cells that show best where time goes.

    Args:
        summaries: The cells of one scenario.
        baselines: For a cell's key, the key of the cell it is compared with. A
            baseline is left out or is its own.

    Returns:
        For each baseline, in the order of the cells, keys of measured cells: its
        own, that of the fastest cell compared with it, and that of the slowest
        where it takes at least twice the baseline's time. A cell whose baseline
        was not measured belongs with it all the same.
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
    chosen = (_chosen(base, own, medians_ns) for base, own in rivals.items())
    return tuple(keys for keys in chosen if keys)


def _chosen(base: str, rivals: list[str], medians_ns: Mapping[str, float]) -> tuple[str, ...]:
    ranked = sorted(rivals, key=lambda key: medians_ns[key])
    keys = [base] if base in medians_ns else []
    keys += ranked[:1]
    if base in medians_ns and ranked and medians_ns[ranked[-1]] >= _TRAP_RATIO * medians_ns[base]:
        keys.append(ranked[-1])
    return tuple(dict.fromkeys(keys))
