"""Which cells are worth a look inside: the ones a reader compares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from corebound.stats.summary import CellSummary

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
