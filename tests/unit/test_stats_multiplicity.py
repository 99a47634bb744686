"""Many comparisons: the whole family alarms no more often than one may."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.stats.multiplicity import holm

p_values = st.lists(st.none() | st.floats(0, 1), max_size=30)


@given(p_values)
def test_a_finding_of_the_family_is_one_by_itself_too(ps: list[float | None]) -> None:
    for p, found in zip(ps, holm(ps), strict=True):
        assert not found or (p is not None and p <= 0.05)


@given(p_values)
def test_what_is_likelier_by_chance_is_no_finding_before_what_is_less_so(
    ps: list[float | None],
) -> None:
    found = [p for p, is_found in zip(ps, holm(ps), strict=True) if is_found and p is not None]
    missed = [p for p, is_found in zip(ps, holm(ps), strict=True) if not is_found and p is not None]

    assert not found or not missed or max(found) <= min(missed)


def test_one_comparison_is_judged_as_ever() -> None:
    assert holm([0.049]) == (True,)
    assert holm([0.051]) == (False,)


def test_a_p_value_that_one_of_eighteen_has_by_chance_is_no_finding() -> None:
    assert holm([0.02, *[0.5] * 17]) == (False,) * 18
    assert holm([0.0027, *[0.5] * 17])[0]  # 0.05 / 18 = 0.00278


def test_a_family_without_a_difference_alarms_in_one_of_twenty_at_most() -> None:
    chance = random.Random(1)

    alarms = sum(any(holm([chance.random() for _ in range(18)])) for _ in range(4000))

    # Binomial(4000, 0.05): mean 200, three standard deviations are 41.
    assert 159 <= alarms <= 241


def test_alpha_is_a_chance() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([0.5], alpha=1.0)
