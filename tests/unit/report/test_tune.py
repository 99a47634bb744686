"""The page of a race."""

from collections.abc import Sequence

from corebound.analysis.tuning import analyse_tuning
from corebound.present.sections import Named
from corebound.report.pages.tune import tune_page
from support.report_sample import NOW
from support.tuning import BOUND, DEFAULT, ONE_CPU, ONE_THREAD, a_tuned_run


def test_values_that_hardly_differ_have_axes_with_labels() -> None:
    # Between 430 and 456 there is no round value of a logarithmic axis.
    close_ms = {DEFAULT: 430.0, ONE_THREAD: 445.0, BOUND: 450.0, ONE_CPU: 456.0}
    result = analyse_tuning(*a_tuned_run(close_ms))

    shown = tune_page(result, (), loads=None, now=NOW).tradeoff

    assert shown is not None
    assert len(shown.chart.along) > 1
    assert len(shown.chart.levels) > 1


def test_a_winner_that_does_not_clearly_beat_the_default_is_not_recommended() -> None:
    # Launches of the default vary too much to say that they are slower.
    times_ms: dict[str, float | Sequence[float]] = {
        DEFAULT: [6.0, 16.0],
        ONE_THREAD: 14.0,
        BOUND: 9.0,
        ONE_CPU: 15.0,
    }
    result = analyse_tuning(*a_tuned_run(times_ms))

    page = tune_page(result, (), loads=None, now=NOW)

    assert result.advice == "inconclusive"
    assert page.race.rows[0][0] == Named("Physical cores, one thread per core", ("winner",))
    assert result.to_set is None
