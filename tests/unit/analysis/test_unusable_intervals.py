"""Intervals that say nothing: text on pages and in the terminal, and null in JSON."""

import pytest
from benchmarks.simulation.verdicts import BASELINE, CELL, summary_of

from corebound.analysis.json_documents import comparison_document
from corebound.analysis.wording import TOO_WIDE, bounds, compared_bounds, within
from corebound.stats.comparison import compare
from corebound.stats.intervals import Interval, interval_pair, ratio_interval_pair
from corebound.units import duration
from support.build import a_comparison
from support.known import known


def an_interval(low: float, high: float) -> Interval:
    return Interval(low=low, high=high, confidence=0.95)


def test_a_comparison_without_an_interval_says_why() -> None:
    assert compared_bounds(a_comparison(0.9)).startswith("4 launches")
    assert compared_bounds(a_comparison(0.9, pairs=0, p_value=0.5)) == TOO_WIDE
    assert compared_bounds(a_comparison(0.9, pairs=0)) == "no interval: 1 launch"
    assert compared_bounds(None) == ""


def test_a_comparison_without_a_usable_interval_is_not_decided() -> None:
    baseline = summary_of(BASELINE, [1e6, 50e6, 1.1e6])
    cell = summary_of(CELL, [0.1e6, 0.1e6, 0.01e6])

    comparison = known(compare(cell, baseline, margin=0.02))

    assert comparison.interval is None
    assert comparison.verdict == "inconclusive"


def test_json_has_no_interval_where_pages_show_none() -> None:
    document = comparison_document(a_comparison(0.9))

    assert (document["speedup_interval"], document["slowdown_interval"]) == (None, None)


@pytest.mark.parametrize(
    ("low", "high", "is_shown"),
    [(0.5, 2.0, True), (0.4, 2.0, False), (0.1, 0.9, True), (1.1, 9.0, True), (5e-4, 0.9, False)],
)
def test_an_interval_of_a_ratio_is_shown_if_it_decides_or_is_narrow(
    low: float, high: float, is_shown: bool
) -> None:
    assert (bounds(low, high) != TOO_WIDE) == is_shown
    assert (ratio_interval_pair(an_interval(low, high)) is not None) == is_shown


@pytest.mark.parametrize(("low", "high", "is_shown"), [(1e6, 4e6, True), (1e6, 4.1e6, False)])
def test_an_interval_of_a_time_is_shown_if_it_is_narrow(
    low: float, high: float, is_shown: bool
) -> None:
    assert (within(low, high, duration) != TOO_WIDE) == is_shown
    assert (interval_pair(an_interval(low, high)) is not None) == is_shown
