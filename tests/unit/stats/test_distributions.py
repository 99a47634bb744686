"""Specifies distributions and pairwise differences, checked against SciPy and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import special

from corebound.stats.distributions import (
    binomial_above,
    normal_below,
    normal_quantile,
    student_below,
)
from corebound.stats.history.shift_tests import (
    hodges_lehmann_shift,
    ranked_differences,
    shift_at_least,
)


@given(st.floats(-30, 8))
def test_the_normal_distribution_is_scipy_s(x: float) -> None:
    assert normal_below(x) == pytest.approx(special.ndtr(x), rel=1e-12)


@given(st.floats(1e-9, 1 - 1e-9))
def test_the_normal_quantile_is_scipy_s(p: float) -> None:
    assert normal_quantile(p) == pytest.approx(special.ndtri(p), rel=1e-9, abs=1e-12)


@given(freedom=st.floats(0.5, 1e4), t=st.floats(-1e9, 0))
def test_student_s_distribution_is_scipy_s(freedom: float, t: float) -> None:
    expected = special.stdtr(freedom, t)

    assert student_below(freedom, t) == pytest.approx(expected, rel=1e-8, abs=1e-250)


def test_student_s_distribution_is_0_far_below_the_mean() -> None:
    assert student_below(3, -1e200) == 0.0


@given(k=st.integers(-1, 8), p=st.floats(1e-6, 1 - 1e-6))
def test_the_binomial_distribution_is_scipy_s(k: int, p: float) -> None:
    assert binomial_above(k, 8, p) == pytest.approx(special.bdtrc(k, 8, p), rel=1e-9, abs=1e-300)


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
