"""All differences between two stretches of values, which are too many to have in hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# So many are had in hand, and looked through; to narrow down further takes longer.
_IN_HAND = 20_000
# A float has 52 bits: halved so often, what is between two bounds is one value.
_MOST_HALVINGS = 60


def ranked_differences(left: Array, right: Array, ranks: Sequence[int]) -> tuple[float, ...]:
    """The differences `right` less `left` of these ranks, the least of which is 0.

    Args:
        left: m finite numbers.
        right: n finite numbers.
        ranks: Each at least 0 and less than m times n.
    """
    if left.size * right.size <= _IN_HAND:
        every = (right[:, np.newaxis] - left[np.newaxis, :]).ravel()
        every.partition(sorted(set(ranks)))
        return tuple(float(every[rank]) for rank in ranks)
    lower, upper = np.sort(left), np.sort(right)
    return tuple(_ranked(lower, upper, rank) for rank in ranks)


def _ranked(left: Array, right: Array, rank: int) -> float:
    """The difference of one rank, of sorted values: found between two bounds that close in.

    How many differences lie below a bound is told by where each value of the right less the
    bound falls among those of the left.
    """
    low, high = float(right[0] - left[-1]), float(right[-1] - left[0])
    # Of the right's values: how many of the left's lie too far above to be counted.
    first, last = np.zeros(right.size, dtype=np.int64), np.full(right.size, left.size)
    below = 0
    for _ in range(_MOST_HALVINGS):
        if int((last - first).sum()) <= _IN_HAND:
            break
        middle = low + (high - low) / 2
        # Those of the left from here on are so near, or above, that the difference is less.
        at = left.searchsorted(right - middle, side="right")
        less = left.size * right.size - int(at.sum())
        if less <= rank:
            low, below, last = middle, less, at
        else:
            high, first = middle, at
    counts = last - first
    starts = np.repeat(first - np.concatenate(([0], counts.cumsum()[:-1])), counts)
    between = np.repeat(right, counts) - left[starts + np.arange(starts.size)]
    return float(np.partition(between, rank - below)[rank - below])
