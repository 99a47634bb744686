"""Specifies corrections for many comparisons, with their rates of false alarms."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, ttest_1samp

from corebound.stats.multiplicity import benjamini_hochberg, holm
from support.known import known

p_values = st.lists(st.none() | st.floats(0, 1), max_size=30)


@given(p_values)
def test_findings_have_the_smallest_p_values_and_benjamini_hochberg_has_more_than_holm(
    ps: list[float | None],
) -> None:
    told = [*zip(ps, holm(ps), benjamini_hochberg(ps), strict=True)]
    found = [p for p, is_found, _ in told if is_found]
    missed = [p for p, is_found, _ in told if not is_found and p is not None]

    assert all(p is not None and p <= 0.05 for p in found)
    assert not found or not missed or max(map(known, found)) <= min(missed)
    assert all(mild or not strict for _, strict, mild in told)


@pytest.mark.parametrize(
    ("ps", "found"),
    [
        # A single comparison needs no correction.
        ([0.049], [True]),
        ([0.051], [False]),
        # Against 0.05 / 3, 0.05 / 2 and 0.05 / 1; Bonferroni asks 0.05 / 3 of all.
        ([0.01, 0.02, 0.04], [True] * 3),
        ([0.04, 0.01, 0.02], [True] * 3),
        # 0.03 is above 0.05 / 2, and 0.04 is no longer asked, though it is below 0.05 / 1.
        ([0.01, 0.03, 0.04], [True, False, False]),
        # Against 0.0125, 0.0167, 0.025, 0.05: the third stops it.
        ([0.03, 0.04, 0.005, 0.013], [False, False, True, True]),
        # 0.05 / 18 = 0.00278.
        ([0.02, *[0.5] * 17], [False] * 18),
        ([0.0027, *[0.5] * 17], [True, *[False] * 17]),
    ],
)
def test_holm_relaxes_the_threshold_after_each_finding(
    ps: list[float | None], found: list[bool]
) -> None:
    assert [*holm(ps)] == found


def test_a_family_without_differences_alarms_at_most_once_in_twenty() -> None:
    chance = random.Random(1)

    alarms = sum(any(holm([chance.random() for _ in range(18)])) for _ in range(4000))

    # Binomial(4000, 0.05): mean 200, three standard deviations are 41.
    assert 159 <= alarms <= 241


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_an_error_rate_lies_between_0_and_1(alpha: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5], alpha=alpha)


@given(p_values)
def test_benjamini_hochberg_findings_equal_scipy_s(ps: list[float | None]) -> None:
    found = benjamini_hochberg(ps)

    tested = [p for p in ps if p is not None]
    adjusted = iter(false_discovery_control(tested).tolist() if tested else [])
    for p, is_found in zip(ps, found, strict=True):
        if p is None:
            assert not is_found
            continue
        limit = float(next(adjusted))
        # On the very line, rounding decides.
        assert is_found == (limit <= 0.05) or limit == pytest.approx(0.05)


@given(p_values, st.randoms(use_true_random=False))
def test_the_order_of_a_suite_does_not_matter(
    ps: list[float | None], chance: random.Random
) -> None:
    order = list(range(len(ps)))
    chance.shuffle(order)

    shuffled = benjamini_hochberg([ps[i] for i in order])

    assert shuffled == tuple(benjamini_hochberg(ps)[i] for i in order)


def test_at_most_one_in_twenty_findings_of_a_suite_is_false() -> None:
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(500):
        # Of 100 tests ten have something to find: p-values of about 1e-6.
        ps = np.concatenate((rng.random(90), 2e-6 * rng.random(10)))
        found = benjamini_hochberg(ps.tolist())
        shares.append(sum(found[:90]) / max(sum(found), 1))

    # 90 of 100 are true nulls, so 4.5 % is expected; a standard error is about 0.3 %.
    assert 0.035 <= float(np.mean(shares)) <= 0.055


def test_findings_against_one_baseline_are_hardly_more_often_false() -> None:
    rng = np.random.default_rng(2)
    shares = []
    for _ in range(300):
        # A hundred cells, ten of them slower, and the baseline of all: ten launches of each.
        cells, baseline = rng.standard_normal((100, 10)), rng.standard_normal(10)
        cells[:10] += 4.0
        ps = np.asarray(ttest_1samp(cells - baseline, 0.0, axis=1).pvalue)
        found = benjamini_hochberg(ps.tolist())
        shares.append(sum(found[10:]) / max(sum(found), 1))

    # No theorem covers two-sided tests; a standard error is about 0.6 %.
    assert float(np.mean(shares)) <= 0.065
