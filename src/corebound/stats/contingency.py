"""Test whether two properties are independent, by a table of counts."""

from __future__ import annotations

import math


def fisher_p_value(table: tuple[tuple[int, int], tuple[int, int]]) -> float:
    """The probability of a table as unlikely as this one, if rows and columns are independent.

    Args:
        table: Counts from 0 up, 2 x 2.

    Source: Fisher's exact test, "The Design of Experiments" (1935), section 11, two-sided by the
    probability of the table.

    >>> round(fisher_p_value(((3, 1), (1, 3))), 3)  # (16 + 1 + 16 + 1) / 70
    0.486
    """
    (a, b), (c, d) = table
    row, column, total = a + b, a + c, a + b + c + d
    # Whole numbers, so that equally likely tables are equal.
    ways = [
        math.comb(row, first) * math.comb(total - row, column - first)
        for first in range(max(0, column - (c + d)), min(row, column) + 1)
    ]
    seen = math.comb(row, a) * math.comb(total - row, c)
    return sum(number for number in ways if number <= seen) / math.comb(total, column)
