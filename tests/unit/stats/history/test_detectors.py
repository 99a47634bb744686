"""Specifies each change-point detector, checked against a reference."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from corebound.stats.history.detectors import (
    CutSides,
    best_split,
    potts_cuts,
    potts_cuts_of_many,
    score,
)
from corebound.stats.history.location import locate
from corebound.stats.history.shift_tests import (
    correlation,
    hodges_lehmann_shift,
    inflation,
    ranks,
    shift_bounds,
    t_p_value,
    trimmed,
)
from support.examples import examples
from support.known import known

few_values = st.lists(st.integers(0, 20), min_size=1, max_size=9)


def _potts_cost(values: list[int], cuts: tuple[int, ...], penalty: float) -> float:
    pieces = np.split(np.array(values, dtype=float), cuts)
    return penalty * len(cuts) + sum(
        float(np.abs(piece - np.median(piece)).sum()) for piece in pieces
    )


def _shortest_piece(values: list[int], cuts: tuple[int, ...]) -> int:
    return min(end - start for start, end in itertools.pairwise((0, *cuts, len(values))))


@examples(60)
@given(values=few_values, penalty=st.floats(0.5, 30))
def test_potts_pieces_have_the_least_cost(values: list[int], penalty: float) -> None:
    found = potts_cuts(values, penalty=penalty)

    least = min(
        _potts_cost(values, cuts, penalty)
        for count in range(len(values))
        for cuts in itertools.combinations(range(1, len(values)), count)
        if not cuts or _shortest_piece(values, cuts) >= 2
    )
    assert _potts_cost(values, found, penalty) == pytest.approx(least)
    assert not found or _shortest_piece(values, found) >= 2


def test_an_empty_series_has_no_cuts_and_too_few_points_no_split_and_no_bounds() -> None:
    pair = np.array([1.0, 2.0])

    assert potts_cuts([], penalty=1) == ()
    with pytest.raises(ValueError, match="more than nothing"):
        potts_cuts([1, 2], penalty=0)
    with pytest.raises(ValueError, match="each side"):
        best_split(np.array([1.0, 2.0, 3.0]), least=2)
    assert shift_bounds(pair, pair + 9, rho=0.0, own_error=0.0, confidence=0.95) is None


@given(
    all_values=st.lists(st.lists(st.integers(0, 9), max_size=12), max_size=5),
    penalty=st.integers(1, 12),
)
def test_several_series_are_cut_as_each_alone(all_values: list[list[int]], penalty: int) -> None:
    penalties = [penalty + index / 2 for index in range(len(all_values))]

    together = potts_cuts_of_many([np.array(values, float) for values in all_values], penalties)

    assert together == [
        potts_cuts(values, penalty=own) for values, own in zip(all_values, penalties, strict=True)
    ]


@examples(60)
@given(st.lists(st.integers(0, 50), min_size=4, max_size=12))
def test_the_best_split_has_the_greatest_energy_distance(values: list[int]) -> None:
    series = np.array(values, dtype=float)

    cut, score = best_split(series, least=1)

    def energy(k: int) -> float:
        left, right = series[:k], series[k:]
        # SciPy's is the square root of Székely and Rizzo's.
        return k * (series.size - k) / series.size * stats.energy_distance(left, right) ** 2

    assert score == pytest.approx(max(energy(k) for k in range(1, series.size)), abs=1e-9)
    assert score == pytest.approx(energy(cut), abs=1e-9)


samples = st.integers(0, 10_000).map(np.random.default_rng)


@given(samples)
def test_the_t_test_is_student_s_or_the_more_careful_of_yuen_s_two(
    rng: np.random.Generator,
) -> None:
    short = rng.normal(0, 1, 6), rng.normal(1, 1, 9)
    unequal = rng.normal(0, 1, 40), rng.normal(0.5, 4, 12)

    of_short, of_unequal = (
        t_p_value(trimmed(left), trimmed(right), rho=0.0, own_error=0.0)
        for left, right in (short, unequal)
    )

    assert of_short == pytest.approx(float(stats.ttest_ind(*short).pvalue))
    welch = stats.ttest_ind(*unequal, equal_var=False, trim=0.1).pvalue
    assert of_unequal >= float(welch) * (1 - 1e-9)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=30))
def test_ranks_are_scipy_s(values: list[int]) -> None:
    assert ranks(np.array(values, dtype=float)) == pytest.approx(stats.rankdata(values))


def test_correlated_points_count_for_less() -> None:
    left, right = np.array([1.0, 2, 3, 1, 2, 3]), np.array([3.0, 4, 5, 3, 4, 5])

    assert t_p_value(trimmed(left), trimmed(right), rho=0.6, own_error=0.0) > t_p_value(
        trimmed(left), trimmed(right), rho=0.0, own_error=0.0
    )
    assert inflation(1, 0.6) == 1


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_the_correlation_is_estimated_despite_steps_and_spikes(rho: float) -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(50):
        noise = rng.normal(0, 1, 100)
        for index in range(1, 100):
            noise[index] += rho * noise[index - 1]
        noise[30] += 50
        noise[60:] += 10
        found.append(correlation([noise[:60], noise[60:]]))

    # What is below 0 counts as 0, so that the mean of none lies above it.
    assert float(np.mean(found)) == pytest.approx(max(rho, 0.05), abs=0.08)


def test_a_shift_lies_within_its_bounds_and_resists_spikes() -> None:
    rng = np.random.default_rng(1)
    left, right = rng.normal(0, 0.01, 40), rng.normal(0.05, 0.01, 40)
    right[3] += 5

    bounds = known(shift_bounds(left, right, rho=0.0, own_error=0.0, confidence=0.95))

    assert hodges_lehmann_shift(left, right) == pytest.approx(0.05, abs=0.01)
    assert bounds[0] < 0.05 < bounds[1]
    assert bounds[1] - bounds[0] < 0.02


def _two_kinds(nights_between: int) -> NDArray[np.float64]:
    """Thirty nights of each level, and between them some that either level may have."""
    left, right = np.tile([0.0, 0.06], 15), np.tile([0.12, 0.06], 15)
    values = np.concatenate((left, np.full(nights_between, 0.06), right))
    values += 0.002 * np.sin(2.4 * np.arange(values.size))
    return values


@pytest.mark.parametrize("nights_between", [4, 6, 8])
@pytest.mark.parametrize("start", [28, 30, 34])
def test_between_ambiguous_points_the_location_is_the_middle(
    nights_between: int, start: int
) -> None:
    found = locate(_two_kinds(nights_between), start, size=0.06, least=2)

    assert found.first <= 30 < 30 + nights_between <= found.last
    assert abs(found.middle - (30 + nights_between / 2)) <= 1
    assert found.first <= found.likeliest <= found.last


def test_with_clear_levels_the_middle_is_the_likeliest_location() -> None:
    values = np.concatenate((np.zeros(30), np.full(20, 0.05)))
    values += 0.002 * np.sin(2.4 * np.arange(50))

    found = locate(values, 28, size=0.05, least=2)

    assert (found.first, found.likeliest, found.middle, found.last) == (30, 30, 30, 30)
    assert found.moved(5).middle == 35


def test_a_score_at_one_location_is_low_by_chance_as_often_as_it_states() -> None:
    # docs/explanation/statistics/change-points.md: at most 5 % in 5.2 % of 2,000 series.
    rng = np.random.default_rng(4)
    nights = (rng.normal(0, 0.01, 100) for _ in range(300))
    low = sum(
        score(CutSides(one[:50], one[50:]), rho=0.02, own_error=0.0) <= 0.05 for one in nights
    )

    assert 5 <= low <= 30
