"""What of a suite needs launches most: that of which the last run could not tell enough."""

from __future__ import annotations

from corebound.model.measure import Launches
from corebound.stats.compare import Comparison
from corebound.stats.summary import CellSummary

# Blocks a turn of a scenario with a doubtful cell, where one without has one. Three of four
# launches go to it where there is one of each, and no scenario waits for another's end.
DOUBTFUL_TURNS = 3


def is_doubtful(summary: CellSummary, compared: Comparison | None, launches: Launches) -> bool:
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
