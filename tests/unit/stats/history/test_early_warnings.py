"""Specifies early warnings from two points, and how re-runs confirm or refute them."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.records.decisions import Answer
from corebound.stats.comparison import Comparison, Verdict
from corebound.stats.history.early_warnings import (
    early_warning,
    evaluate_commit_comparison,
    evaluate_rerun,
    is_final,
    raises_alarm,
)
from corebound.stats.intervals import Interval
from support.build import a_comparison
from support.known import known
from support.series import Observation, find_change_points, history_arrays


def nights(*later: float, before: int = 40, seed: int = 1, key: str = "") -> list[Observation]:
    """Nights that vary by 1 %, then the figures given, of a level of 1."""
    chance = random.Random(seed)
    usual = [math.exp(chance.gauss(0, 0.01)) for _ in range(before)]
    return [Observation(figure=figure, key=key) for figure in (*usual, *later)]


def test_two_outlying_points_give_an_early_warning_with_size_and_location() -> None:
    step = known(early_warning(history_arrays(nights(1.05, 1.06)), ()))

    assert (step.at, step.last_good, step.direction) == (40, 39, "up")
    assert 1.04 < step.ratio < 1.07
    assert step.is_early


def with_outliers() -> list[Observation]:
    """One night in ten takes 9 % longer: two of them in a row are no news."""
    return [
        Observation(figure=(night.figure or 0.0) * (1.09 if place % 10 == 3 else 1.0))
        for place, night in enumerate(nights())
    ]


WIDE = Observation(figure=1.05, interval=Interval(low=0.95, high=1.16, confidence=0.95))


@pytest.mark.parametrize(
    "history",
    [
        *(nights(*later) for later in ((1.05,), (1.05, 1.0), (1.0, 1.05), (0.95, 1.05))),
        nights(1.015, 1.015),
        [*with_outliers(), Observation(figure=1.06), Observation(figure=1.06)],
        # Another environment, and points with wide intervals.
        [*nights(), *(Observation(figure=figure, key="new") for figure in (1.05, 1.06))],
        [*nights(), WIDE, WIDE],
        [],
        [Observation(figure=None)] * 10,
    ],
)
def test_these_give_no_early_warning(history: list[Observation]) -> None:
    assert early_warning(history_arrays(history), ()) is None


def test_a_detected_change_point_is_no_early_warning() -> None:
    history = nights(1.08, 1.08, 1.08)
    found = find_change_points(history)

    assert found
    assert early_warning(history_arrays(history), found) is None


@pytest.mark.parametrize(
    ("rerun", "answer"),
    [(1.0, "refuted"), (1.02, "refuted"), (1.05, "confirmed"), (1.2, "confirmed")],
)
def test_a_re_run_is_compared_with_the_good_points(rerun: float, answer: Answer) -> None:
    good = [night.figure for night in nights() if night.figure is not None]

    assert evaluate_rerun(good, rerun, direction="up", ratio=1.05) == answer
    down = evaluate_rerun([1 / one for one in good], 1 / rerun, direction="down", ratio=1 / 1.05)
    assert down == answer


def test_bimodal_good_points_leave_a_re_run_open() -> None:
    good = [1.0, 1.06] * 20

    assert evaluate_rerun(good, 1.06, direction="up", ratio=1.05) == "inconclusive"


@given(st.lists(st.floats(0.5, 2.0), max_size=1), st.floats(0.5, 2.0))
def test_too_few_good_points_never_confirm(good: list[float], rerun: float) -> None:
    assert evaluate_rerun(good, rerun, direction="up", ratio=1.05) != "confirmed"


def compared(verdict: Verdict, speedup_ratio: float, *, p_value: float = 0.001) -> Comparison:
    return a_comparison(speedup_ratio, verdict=verdict, p_value=p_value)


@pytest.mark.parametrize(
    ("comparison", "answer"),
    [
        (compared("slower", 1 / 1.05), "confirmed"),
        # Slower, but by much less than was suspected, or not so clearly.
        (compared("slower", 1 / 1.02), "inconclusive"),
        (compared("slower", 1 / 1.05, p_value=0.04), "inconclusive"),
        (compared("inconclusive", 1 / 1.05), "inconclusive"),
        (compared("equivalent", 1.0), "refuted"),
        (compared("faster", 1.05), "refuted"),
    ],
)
def test_a_comparison_of_both_commits_confirms_or_refutes(
    comparison: Comparison, answer: Answer
) -> None:
    assert evaluate_commit_comparison(comparison, direction="up", ratio=1.05) == answer


@pytest.mark.parametrize(
    ("is_accepted", "answer", "is_commit_comparison", "alarms"),
    [
        # An early warning, only if both commits confirm it.
        (False, "confirmed", True, True),
        (False, "confirmed", False, False),
        (False, None, False, False),
        # A detected change, unless it is refuted.
        (True, None, False, True),
        (True, "inconclusive", True, True),
        (True, "refuted", False, False),
    ],
)
def test_an_early_warning_alarms_once_confirmed_and_a_detected_change_until_refuted(
    *, is_accepted: bool, answer: Answer | None, is_commit_comparison: bool, alarms: bool
) -> None:
    assert alarms == raises_alarm(
        is_accepted=is_accepted, answer=answer, is_commit_comparison=is_commit_comparison
    )


def test_a_confirmation_is_final_but_a_refutation_only_by_both_commits() -> None:
    assert is_final("confirmed", is_commit_comparison=False, is_covered=False)
    assert is_final("refuted", is_commit_comparison=True, is_covered=True)
    assert not is_final("refuted", is_commit_comparison=True, is_covered=False)
    assert not is_final("refuted", is_commit_comparison=False, is_covered=True)


def test_values_beyond_a_float_s_ratio_give_an_early_warning() -> None:
    history = [Observation(figure=1e-160)] * 12 + [Observation(figure=1e160)] * 2

    step = known(early_warning(history_arrays(history), ()))

    assert step.ratio > 1e300
    assert 1 / step.ratio > 0
