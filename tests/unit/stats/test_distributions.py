"""Specifies distributions and pairwise differences, checked against SciPy and brute force."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special

from corebound.stats.distributions import (
    beta_below,
    binomial_above,
    chi_squared_upper_quantile,
    f_above,
    log_betas,
    normal_below,
    normal_probabilities,
    normal_quantile,
    student_below,
    student_probabilities,
    student_quantile,
    student_quantiles,
)
from corebound.stats.history.shift_tests import (
    hodges_lehmann_shift,
    ranked_differences,
    shift_at_least,
)

FREEDOMS = st.one_of(st.integers(1, 1_000_000).map(float), st.floats(0.25, 1e4))
PROBABILITIES = st.floats(1e-12, 1 - 1e-12)
SHAPES = st.floats(0.25, 1e6)


@given(freedom=FREEDOMS, p=PROBABILITIES)
def test_the_chi_squared_quantile_is_scipy_s_and_exponential_with_two_degrees_of_freedom(
    freedom: float, p: float
) -> None:
    expected = special.chdtri(freedom, p)

    assert chi_squared_upper_quantile(freedom, p) == pytest.approx(expected, rel=1e-9)
    assert chi_squared_upper_quantile(2, p) == pytest.approx(-2 * math.log(p), rel=1e-11)


@given(st.floats(-30, 8), st.floats(1e-9, 1 - 1e-9))
def test_the_normal_distribution_is_scipy_s(x: float, p: float) -> None:
    assert normal_below(x) == pytest.approx(special.ndtr(x), rel=1e-12)
    assert normal_probabilities(np.array([[x]])) == np.array([[normal_below(x)]])
    assert normal_quantile(p) == pytest.approx(special.ndtri(p), rel=1e-9, abs=1e-12)


@given(freedoms=st.lists(FREEDOMS, min_size=1, max_size=3), t=st.floats(-1e9, 0), p=PROBABILITIES)
@example(freedoms=[3.0], t=-1e200, p=0.5)
def test_student_s_distribution_is_scipy_s_for_an_array_as_for_its_elements(
    freedoms: list[float], t: float, p: float
) -> None:
    below = [student_below(freedom, t) for freedom in freedoms]
    quantiles = [student_quantile(freedom, p) for freedom in freedoms]

    assert below == pytest.approx(special.stdtr(freedoms, t), rel=1e-9, abs=1e-250)
    # Arrays are asked for moderate values only.
    if t > -100:
        together = student_probabilities(np.array(freedoms), np.array([t]))
        assert together == pytest.approx(below, rel=1e-11, abs=1e-300)
    assert quantiles == pytest.approx(special.stdtrit(freedoms, p), rel=1e-9, abs=1e-12)
    assert student_quantiles(np.array([freedoms]), p).tolist() == [quantiles]


@given(first=FREEDOMS, second=FREEDOMS, x=st.floats(0, 1e6))
def test_the_f_distribution_is_scipy_s(first: float, second: float, x: float) -> None:
    expected = special.fdtrc(first, second, x)

    assert f_above(first, second, x) == pytest.approx(expected, rel=1e-8, abs=1e-250)


@given(a=SHAPES, b=SHAPES, deviation=st.floats(-5, 5))
def test_the_beta_distribution_and_function_are_scipy_s(
    a: float, b: float, deviation: float
) -> None:
    middle = a / (a + b)
    x = min(max(middle + deviation * math.sqrt(middle * (1 - middle) / (a + b + 1)), 0.0), 1.0)
    # SciPy's has fewer digits where three large logarithms nearly cancel.
    tolerance = 1e-14 * (abs(math.lgamma(a)) + abs(math.lgamma(b)) + abs(math.lgamma(a + b)))

    assert beta_below(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-8, abs=1e-250)
    assert log_betas(np.array([a]), b) == pytest.approx(special.betaln(a, b), abs=tolerance + 1e-12)


@given(k=st.integers(-1, 8), p=st.floats(1e-6, 1 - 1e-6))
def test_the_binomial_distribution_is_scipy_s(k: int, p: float) -> None:
    assert binomial_above(k, 8, p) == pytest.approx(special.bdtrc(k, 8, p), rel=1e-9, abs=1e-300)


@given(freedom=st.floats(1e-3, 0.25), p=PROBABILITIES)
def test_quantiles_of_a_small_part_of_a_degree_of_freedom_are_finite(
    freedom: float, p: float
) -> None:
    t, chi_squared = student_quantile(freedom, p), chi_squared_upper_quantile(freedom, p)

    assert math.isfinite(t)
    assert chi_squared > 0
    if 1e-140 < abs(t) < 1e140:
        assert student_below(freedom, -abs(t)) == pytest.approx(min(p, 1 - p), rel=1e-9)


@pytest.mark.parametrize("quantile", [student_quantile, chi_squared_upper_quantile])
@pytest.mark.parametrize(("freedom", "p"), [(0, 0.5), (-1, 0.5), (math.nan, 0.5), (3, 0), (3, 1)])
def test_a_quantile_outside_its_range_is_refused(
    quantile: Callable[[float, float], float], freedom: float, p: float
) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        quantile(freedom, p)


@given(seed=st.integers(0, 2**32), m=st.integers(1, 400), n=st.integers(1, 400), ties=st.booleans())
def test_the_difference_of_any_rank_matches_a_full_sort(
    seed: int, m: int, n: int, ties: bool
) -> None:
    rng = np.random.default_rng(seed)
    left, right = rng.standard_cauchy(m), rng.standard_cauchy(n)
    if ties:
        left, right = np.rint(left), np.rint(right)
    every = np.sort((right[:, np.newaxis] - left[np.newaxis, :]).ravel())
    ranks = rng.integers(0, m * n, size=3)

    found = ranked_differences(left, right, ranks.tolist())

    assert found == pytest.approx(every[ranks].tolist(), rel=1e-15, abs=1e-15)


_SIDES = hnp.arrays(np.float64, st.integers(2, 20), elements=st.integers(-9, 9))


@given(left=_SIDES, right=_SIDES, least=st.integers(1, 9))
def test_a_shift_is_compared_with_a_threshold_without_computing_it(
    left: np.ndarray, right: np.ndarray, least: int
) -> None:
    assert shift_at_least(np.sort(left), right, least) == (
        abs(hodges_lehmann_shift(left, right)) >= least
    )
