"""Which cells want another launch: decided from the data alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corebound.model.measure import Launches
from corebound.stats.compare import speedup_interval
from corebound.stats.summary import CellSummary

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
