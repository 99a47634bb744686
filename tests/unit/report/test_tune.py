"""The page of a race."""

from __future__ import annotations

from corebound.analysis.tuning import analyse_tuning
from corebound.report.pages.tune import tune_page
from support.report_sample import NOW
from support.tuning import BOUND, DEFAULT, ONE_CPU, ONE_THREAD, a_tuned_run


def test_values_that_hardly_differ_have_axes_with_labels() -> None:
    # Between 430 and 456 there is no round value of a logarithmic axis.
    close_ms = {DEFAULT: 430.0, ONE_THREAD: 445.0, BOUND: 450.0, ONE_CPU: 456.0}
    result = analyse_tuning(*a_tuned_run(close_ms))

    shown = tune_page(result, (), loads=None, now=NOW).tradeoff

    assert shown is not None
    assert len(shown.along) > 1
    assert len(shown.levels) > 1
