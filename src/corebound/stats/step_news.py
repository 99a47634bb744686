"""Is there anything new at the end of a series? Cheap to say, and mostly there is not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corebound.stats.step_jury import LEAST_NIGHTS
from corebound.stats.step_tests import median, ranks, spread_of
from corebound.stats.step_votes import Sides

Array = NDArray[np.float64]

# After a step, so many nights are few: whatever they are, all detectors are asked.
_FEW = 16
# In standard errors of the rank test, for independent nights: the level at which it votes is 2.58,
# and of two hundred cuts of a series without a step the clearest one is rarely at more.
_CLEAR = 3.0
# In standard deviations: nights that go with no other are rarely both so far off.
_FAR = 2.0


def may_have_news(values: Array, *, first: int, threshold: float) -> bool:
    """Whether the last level of a series may end in another, so that detectors are to be asked.

    Args:
        values: What is of one level as far as is known, in time order.
        first: The first index where a step would be news.
        threshold: Least shift that matters, as a logarithm.

    Returns:
        False where neither the last two nights stand out, nor does any cut by ranks, nor
        does the likelihood speak for the clearest one.
    """
    n = values.size
    if n < _FEW:
        return True
    off = values - median(values)
    spread = spread_of(off)
    latest = off[-LEAST_NIGHTS:]
    if max(float(latest.min()), float(-latest.max())) >= max(_FAR * spread, threshold):
        return True
    left = np.arange(1.0, n)
    excess = np.abs(np.cumsum(ranks(values) - (n + 1) / 2)[:-1])
    clear = excess / np.sqrt(left * (n - left) * (n + 1) / 12)
    begin = max(first, LEAST_NIGHTS)
    near = clear[begin - 1 : n - LEAST_NIGHTS]
    if not near.size:
        return True
    at = begin + int(near.argmax())
    sides = Sides(values[:at], values[at:])
    return float(near.max()) >= _CLEAR or (sides.is_large(threshold, 0.0) and sides.may_pass())
