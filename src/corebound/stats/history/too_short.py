"""Find series with too few values for any change to be detected."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from functools import cache

import numpy as np

from corebound.records.history import Series
from corebound.stats.history.cut_evaluator import LEAST_NIGHTS
from corebound.stats.history.detection import THRESHOLD
from corebound.stats.history.regressions import course_of
from corebound.stats.history.search import search

# A change a hundred times the threshold, with little noise.
_PLAIN = 100 * THRESHOLD
_NOISE = 1e-3
# Uncorrelated noise: fractional parts of multiples of the golden ratio.
_GOLDEN = 0.6180339887


@cache
def least_figures() -> int:
    """How many values in one environment the search needs to find the clearest change.

    The result comes from the search itself: its detectors and its spike rule each need some values.
    """
    return next(
        nights
        for nights in itertools.count(2 * LEAST_NIGHTS)
        if any(_is_found(at, nights) for at in range(LEAST_NIGHTS, nights - LEAST_NIGHTS + 1))
    )


def _is_found(at: int, nights: int) -> bool:
    noise = _NOISE * (np.arange(nights) * _GOLDEN % 1)
    plain = np.repeat([0.0, _PLAIN], [at, nights - at])
    return bool(search(plain + noise, np.zeros(nights), threshold=THRESHOLD, seed=0))


def too_short(suite: Iterable[Series]) -> tuple[Series, ...]:
    """The series that cannot show a change yet, in their order.

    Only values from the latest environment count, because no commit accounts for differences
    from earlier ones. A series without any value failed, and is not included.
    """
    return tuple(one for one in suite if 0 < _figures(one) < least_figures())


def _figures(series: Series) -> int:
    course = course_of(series)
    return int(np.count_nonzero(~np.isnan(course.logs[course.latest])))
