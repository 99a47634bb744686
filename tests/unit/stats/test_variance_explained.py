"""How much of the variation of values their groups explain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.stats.variance_explained import share_explained

VALUES = st.lists(st.floats(-100, 100), min_size=2, max_size=5)


def test_the_share_is_one_minus_the_ratio_of_mean_squares() -> None:
    # Within: 1 + 1 + 1 + 1 over 4 - 2; in total: 9 + 1 + 1 + 9 over 4 - 1. 1 - 2/(20/3) = 0.7.
    assert share_explained([[1, 3], [5, 7]]) == pytest.approx(0.7)


def test_groups_with_equal_means_explain_less_than_nothing() -> None:
    # 1 - (16/2)/(16/3), as many groups fit by chance what these do not.
    assert share_explained([[1, 5], [1, 5]]) == pytest.approx(-0.5)


def test_groups_of_one_value_each_explain_everything() -> None:
    assert share_explained([[1], [2], [4]]) == 1


def test_equal_values_leave_nothing_to_explain() -> None:
    assert share_explained([[2, 2], [2, 2]]) == 0


@pytest.mark.parametrize("groups", [[], [[1.0], []]])
def test_an_empty_group_is_an_error(groups: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="at least one group"):
        share_explained(groups)


@given(groups=st.lists(VALUES, min_size=1, max_size=4), shift=st.floats(-100, 100))
def test_the_share_is_at_most_one_and_does_not_depend_on_the_origin(
    groups: list[list[float]], shift: float
) -> None:
    share = share_explained(groups)

    assert share <= 1
    values = [value for group in groups for value in group]
    if max(values) - min(values) > 0.01:
        shifted = [[value + shift for value in group] for group in groups]
        assert share_explained(shifted) == pytest.approx(share, abs=1e-6)
