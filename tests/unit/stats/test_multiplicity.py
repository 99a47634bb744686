"""Specifies corrections for many comparisons, with their rates of false alarms."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control, ttest_1samp

from corebound.stats.multiplicity import benjamini_hochberg, holm

p_values = st.lists(st.none() | st.floats(0, 1), max_size=30)


@given(p_values)
def test_a_finding_after_correction_is_one_without_it(ps: list[float | None]) -> None:
    for p, found in zip(ps, holm(ps), strict=True):
        assert not found or (p is not None and p <= 0.05)


@given(p_values)
def test_findings_have_smaller_p_values_than_other_comparisons(
    ps: list[float | None],
) -> None:
    found = [p for p, is_found in zip(ps, holm(ps), strict=True) if is_found and p is not None]
    missed = [p for p, is_found in zip(ps, holm(ps), strict=True) if not is_found and p is not None]

    assert not found or not missed or max(found) <= min(missed)


def test_a_single_comparison_needs_no_correction() -> None:
    assert holm([0.049]) == (True,)
    assert holm([0.051]) == (False,)


@pytest.mark.parametrize(
    ("ps", "found"),
    [
        # Against 0.05 / 3, 0.05 / 2 and 0.05 / 1; Bonferroni asks 0.05 / 3 of all.
        ([0.01, 0.02, 0.04], (True, True, True)),
        ([0.04, 0.01, 0.02], (True, True, True)),
        # 0.03 is above 0.05 / 2, and 0.04 is no longer asked, though it is below 0.05 / 1.
        ([0.01, 0.03, 0.04], (True, False, False)),
        # Against 0.0125, 0.0167, 0.025, 0.05: the third stops it.
        ([0.03, 0.04, 0.005, 0.013], (False, False, True, True)),
    ],
)
def test_holm_relaxes_the_threshold_after_each_finding(
    ps: list[float | None], found: tuple[bool, ...]
) -> None:
    assert holm(ps) == found


def test_a_p_value_expected_once_in_eighteen_is_no_finding() -> None:
    assert holm([0.02, *[0.5] * 17]) == (False,) * 18
    assert holm([0.0027, *[0.5] * 17])[0]  # 0.05 / 18 = 0.00278


def test_a_family_without_differences_alarms_at_most_once_in_twenty() -> None:
    chance = random.Random(1)

    alarms = sum(any(holm([chance.random() for _ in range(18)])) for _ in range(4000))

    # Binomial(4000, 0.05): mean 200, three standard deviations are 41.
    assert 159 <= alarms <= 241


def test_alpha_lies_between_0_and_1() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5], alpha=1.0)


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


@given(p_values)
def test_benjamini_hochberg_includes_every_finding_of_holm(ps: list[float | None]) -> None:
    for strict, mild in zip(holm(ps), benjamini_hochberg(ps), strict=True):
        assert mild or not strict


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


def test_the_false_discovery_rate_lies_between_0_and_1() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        benjamini_hochberg([0.5], alpha=0.0)
