"""Series in which no step could be found whatever happened: they have too few figures."""

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

# A step that is a hundred times as large as it need be, among nights that are hardly noisy.
_PLAIN = 100 * THRESHOLD
_NOISE = 1e-3
# Nights that do not go with one another: multiples of the golden ratio, less what is whole.
_GOLDEN = 0.6180339887


@cache
def least_figures() -> int:
    """How many figures under the same circumstances the search takes to find the plainest step.

    The search itself is asked: its detectors and its rule about spikes each need some.
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
    """Those of these series that cannot tell a change yet, in their order.

    Figures count that were measured under the latest circumstances: what differs from those
    before is no commit's doing. A series without any figure failed, and is none of them.
    """
    return tuple(one for one in suite if 0 < _figures(one) < least_figures())


def _figures(series: Series) -> int:
    course = course_of(series)
    return int(np.count_nonzero(~np.isnan(course.logs[course.latest])))
