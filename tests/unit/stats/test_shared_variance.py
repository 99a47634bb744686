"""Sharing variances: narrower intervals for few launches, which still hold the truth."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from corebound.stats.shared_variance import SharedErrors, mixture_reach, share_variances

Array = NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, ...]], Array]


def half_width(shared: SharedErrors) -> Array:
    width: Array = shared.errors * np.asarray(stats.t.ppf(0.975, shared.freedoms))
    return width


def shared(*errors: float, freedom: float = 2) -> SharedErrors:
    values = np.array(errors)
    return share_variances(values, np.full_like(values, freedom))


def test_one_alone_without_spread_or_with_more_of_it_keeps_its_own_error() -> None:
    alone, more = shared(0.05), shared(0.01, 0.01, 0.01, 0.05)
    quiet, noisy = half_width(shared(0.01, 0.01, 0.01, 0.2))[[0, 3]]

    assert (alone.errors[0], alone.freedoms[0]) == pytest.approx((0.05, 2))
    assert shared(0.0, 0.0).errors == pytest.approx([0, 0])
    assert (more.errors[3], more.freedoms[3]) == (0.05, 2)
    assert noisy > 3 * quiet


def test_many_comparisons_of_one_variance_are_as_good_as_a_known_variance() -> None:
    errors = np.sqrt(stats.chi2.ppf((np.arange(200) + 0.5) / 200, 2) / 2)

    result = share_variances(errors, np.full(200, 2.0))

    # The normal quantile of a known variance is 1.96; Student's for 2 degrees of freedom is 4.30.
    assert np.median(half_width(result)) == pytest.approx(1.96, rel=0.08)


def test_comparisons_of_about_the_same_spread_gain_from_each_other() -> None:
    result = shared(0.010, 0.009, 0.011, 0.0105)

    alone = stats.t.ppf(0.975, 2) * np.array([0.010, 0.009, 0.011, 0.0105])
    assert (half_width(result) < 0.8 * alone).all()


@given(
    errors=st.lists(st.floats(1e-4, 1.0) | st.just(0.0), min_size=2, max_size=6),
    factor=st.floats(1e-3, 1e3),
)
def test_every_interval_is_finite_scales_and_a_larger_error_never_gets_a_narrower_one(
    errors: list[float], factor: float
) -> None:
    widths = half_width(shared(*errors))

    assert np.isfinite(widths).all()
    ranked = widths[np.argsort(errors)]
    assert (np.diff(ranked) >= -1e-3 * ranked[-1]).all()
    if min(errors) > 0:
        scaled = half_width(shared(*(factor * error for error in errors)))
        assert scaled == pytest.approx(factor * widths, rel=1e-3)


@given(
    members=st.lists(
        st.tuples(st.floats(1e-6, 1e3), st.floats(0.5, 100), st.floats(1e-6, 1.0)), min_size=1
    ),
    alpha=st.sampled_from([0.5, 0.05, 0.001, 1e-6]),
    guess=st.floats(1e-9, 1e9),
)
def test_a_mixture_lies_beyond_its_reach_with_just_the_probability_asked_for(
    members: list[tuple[float, float, float]], alpha: float, guess: float
) -> None:
    errors, freedoms, weights = np.array(members).T
    weights /= weights.sum()

    reach = mixture_reach(errors, freedoms, weights, alpha, start=np.array(guess))

    beyond = 2 * weights @ stats.t.cdf(-reach / errors, freedoms)
    assert beyond == pytest.approx(alpha, rel=1e-6)


NOISES: dict[str, Noise] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy tails": lambda rng, shape: rng.standard_t(3, size=shape),
    "skewed": lambda rng, shape: rng.lognormal(0, 1, size=shape) - np.exp(0.5),
    "one launch in three in another mode": lambda rng, shape: (
        3.0 * (rng.random(shape) < 1 / 3) + 0.3 * rng.normal(size=shape)
    ),
    "one cell ten times noisier": lambda rng, shape: (
        rng.normal(size=shape) * np.where(np.arange(shape[-2]) == 0, 10.0, 1.0)[:, None]
    ),
    "every cell with a spread of its own": lambda rng, shape: (
        rng.normal(size=shape) * np.exp(0.7 * rng.normal(size=(*shape[:-1], 1)))
    ),
}


@pytest.mark.parametrize("noise", NOISES)
def test_at_least_94_percent_of_intervals_of_three_launches_hold_the_truth(noise: str) -> None:
    launches = 3
    rng = np.random.default_rng([launches, *noise.encode()])
    repeats, cells = 200, 4
    # Each cell's launches are paired with those of one baseline, which has noise of the same kind.
    draw = NOISES[noise]
    baseline = draw(rng, (repeats, 1, launches))
    if noise == "one cell ten times noisier":
        baseline = rng.normal(size=(repeats, 1, launches))
    logs = draw(rng, (repeats, cells, launches)) - baseline

    errors = logs.std(axis=-1, ddof=1) / np.sqrt(launches)
    result = share_variances(errors, np.full_like(errors, launches - 1))

    is_inside = np.abs(logs.mean(axis=-1)) <= half_width(result)
    # 800 intervals of 200 simulated runs: the share itself is uncertain by 1 %.
    assert is_inside.mean() >= 0.94 - 0.01
