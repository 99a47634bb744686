"""How much of the variation of values their groups explain."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def share_explained(groups: Sequence[Sequence[float]]) -> float:
    """The share of the variance of all values that lies between groups, not within them.

    It is adjusted for the number of groups: random groups explain 0 on average, however many there
    are.

    Args:
        groups: The values of each group; none is empty.

    Returns:
        At most 1, which groups of one value each reach; below 0 for groups that explain less than
        random ones do. 0 if all values are equal.

    Raises:
        ValueError: a group is empty, or there is no group.

    Source: Kelley, An Unbiased Correlation Ratio Measure (1935): ε² = 1 − MS_within / MS_total.

    >>> share_explained([[1, 3], [5, 7]])
    0.7
    """
    if not groups or not all(groups):
        raise ValueError("there is at least one group, and none is empty")
    values = [value for group in groups for value in group]
    total = _sum_of_squares(values)
    if total == 0:
        return 0.0
    freedom = len(values) - len(groups)
    if freedom == 0:
        return 1.0
    within = sum(map(_sum_of_squares, groups))
    return 1 - (within / freedom) / (total / (len(values) - 1))


def _sum_of_squares(values: Sequence[float]) -> float:
    """The sum of squared deviations from the mean."""
    mean = statistics.fmean(values)
    return sum((value - mean) ** 2 for value in values)
