"""How many were compared, in words: what lacks one of its two figures was not."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from corebound.report.view.comparing import Compared, RunComparison
from corebound.report.view.words import count
from corebound.stats.between_runs import BetweenRuns
from corebound.units import percent


def compared_words(found: Sequence[Compared], noun: tuple[str, str]) -> str:
    """What became of all of them, findings too.

    Args:
        found: What was measured twice.
        noun: What each of them is, one and several.
    """
    unclear, unknown = unclear_in(found), unknown_in(found)
    said = f"{count(len(found) - unknown, *noun)} compared, {unclear:,} without a clear difference"
    return f"{said}; {unknown:,} more not compared, for a figure is missing" if unknown else said


def unclear_words(others: Sequence[Compared]) -> str:
    """Why those that are no findings are none, with how many each."""
    unclear, unknown = unclear_in(others), unknown_in(others)
    parts = [f"No clear difference: {unclear:,}"] if unclear else []
    parts += [f"not compared, for a figure is missing: {unknown:,}"] if unknown else []
    said = "; ".join(parts)
    return said[:1].upper() + said[1:]


def unknown_in(found: Iterable[Compared]) -> int:
    """How many were not compared, for one of their two figures is missing."""
    return sum(one.comparison is None for one in found)


def unclear_in(found: Iterable[Compared]) -> int:
    """How many were compared and do not clearly differ."""
    return sum(one.comparison is not None and not one.is_finding for one in found)


# From where on it is said that other programs delayed one of two runs more than the other.
_TELLING_DELAY = 1.02


def spread_words(between: BetweenRuns) -> str:
    """How much runs of one cell differ by themselves, and how that is known."""
    spread = percent(between.spread_ratio)
    if between.runs:
        return (
            f"The interval includes that runs differ by {spread} (standard deviation),"
            f" as {between.runs} earlier runs did."
        )
    return f"The interval assumes that runs differ by {spread}: too few earlier runs are known."


def run_to_run_words(found: RunComparison) -> str:
    """How much runs differ by themselves, as the intervals of all cells include it."""
    compared = [one for one in found.cells if one.comparison]
    learned = [one.between for one in compared if one.between.runs]
    assumed = [one.between for one in compared if not one.between.runs]
    said = []
    if learned:
        spread = percent(statistics.median(one.spread_ratio for one in learned))
        runs = max(one.runs for one in learned)
        said.append(
            f"Intervals include how much runs of this host differ: {spread} (standard deviation,"
            f" the median of {count(len(learned), 'cell', 'cells')}), learned from up to"
            f" {count(runs, 'earlier run', 'earlier runs')}."
        )
    if assumed:
        said.append(
            f"Too few comparable earlier runs of {count(len(assumed), 'cell', 'cells')} are known;"
            f" {percent(assumed[0].spread_ratio)} is assumed."
        )
    delayed = sum(one.delay_ratio >= _TELLING_DELAY for one in compared)
    if delayed:
        said.append(
            f"Other programs delayed the two runs unequally in {count(delayed, 'cell', 'cells')};"
            " these intervals are wider."
        )
    floors = [one.floor_ratio for one in compared if one.floor_ratio is not None]
    if floors:
        said.append(
            f"A difference of less than about {percent(statistics.median(floors))} cannot be told"
            " from none here. corebound compare-commits launches both sides in turns and sees"
            " smaller ones."
        )
    return " ".join(said)


def between_document(between: BetweenRuns) -> dict[str, Any]:
    """The same of one cell, for scripts."""
    return {
        "spread_ratio": between.spread_ratio,
        "freedom": between.freedom,
        "runs": between.runs,
        "source": "earlier runs" if between.runs else "default",
    }
