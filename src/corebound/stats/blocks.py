"""What the launches of one block say of two cells: they ran close in time, or by turns."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict

from corebound.stats.summary import CellSummary

# With fewer stints of both, the launches' own medians tell as much.
_LEAST_STINTS = 5


def log_ratios(cell: CellSummary, baseline: CellSummary) -> dict[int, float]:
    """For each block with an `ok` launch of both, the logarithm of baseline time over cell time.

    Of launches that alternated it is the median over their stints, each with the other's
    next to it; else it is the launches' medians. Empty where a median is 0.
    """
    logs, baseline_logs = logs_by_block(cell), logs_by_block(baseline)
    if logs is None or baseline_logs is None:
        return {}
    by_stints = _by_stints(cell, baseline)
    return {
        block: by_stints[block]
        if block in by_stints
        else statistics.fmean(baseline_logs[block]) - statistics.fmean(logs[block])
        for block in sorted(logs.keys() & baseline_logs.keys())
    }


def logs_by_block(summary: CellSummary) -> dict[int, list[float]] | None:
    """The logarithms of the launches' medians; None without any, or where one is 0."""
    logs = defaultdict(list)
    for launch in summary.launches:
        if launch.median_ns <= 0:
            return None
        logs[launch.block].append(math.log(launch.median_ns))
    return logs or None


def _by_stints(cell: CellSummary, baseline: CellSummary) -> dict[int, float]:
    """For each block in which the two alternated, the logarithm of their ratio."""
    bases = {launch.launch: launch for launch in baseline.launches}
    found = {}
    for launch in cell.launches:
        for other in launch.alternated:
            base_ns = dict(bases[other].stints_ns) if other in bases else {}
            pairs = [(base_ns[at], own) for at, own in launch.stints_ns if at in base_ns]
            if len(pairs) >= _LEAST_STINTS:
                found[launch.block] = statistics.median(math.log(a / b) for a, b in pairs)
    return found
