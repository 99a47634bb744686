"""Histories of a benchmark, point by point, for specifications of change-point detection."""

import math
import random
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from corebound.records.decisions import Decision
from corebound.records.history import ANCHOR_UNIT, ANCHORED, MACHINE_KEY, HistoryPoints, Series
from corebound.stats.history.change_point import ChangePoint, HistoryArrays
from corebound.stats.history.detection import THRESHOLD, change_points_of
from corebound.stats.history.regressions import Change, arrays_of
from corebound.stats.intervals import Interval
from support.build import a_point, a_series

EPYC, XEON = "EPYC 7763", "Xeon 8370C"


class Observation(Struct, frozen=True, kw_only=True):
    """One point of a history.

    Attributes:
        figure: A time above 0; None or NaN where the night has none.
        key: Host, kernel and environment in one.
        interval: Where the figure truly lies with 95 %, by the night's own launches.
    """

    figure: float | None
    key: str = ""
    interval: Interval | None = None


def history_arrays(nights: Sequence[Observation]) -> HistoryArrays:
    """The nights as a series' points are looked at."""
    points = HistoryPoints.of(
        a_point(
            night.figure,
            day=day,
            bounds=night.interval and (night.interval.low, night.interval.high),
            environment_key=(("key", night.key),),
        )
        for day, night in enumerate(nights)
    )
    return arrays_of(a_series([], points=points))


def find_change_points(
    nights: Sequence[Observation], *, threshold: float = THRESHOLD
) -> tuple[ChangePoint, ...]:
    """The steps of these nights."""
    return change_points_of(history_arrays(nights), threshold=threshold)


def a_stepped_series(
    scenario: str, ratio: float, *, at: int = 45, nights: int = 60, **changes: Any
) -> Series:
    """A benchmark of project `p` whose values are multiplied by `ratio` from one night on."""
    noise = random.Random(f"{scenario} {changes}")
    values = [1e6 * (ratio if day >= at else 1.0) * noise.gauss(1, 0.005) for day in range(nights)]
    return a_series(values, **{"scenario": scenario, "title": scenario, "project": "p"} | changes)


def anchored_nights(
    ratios: dict[str, float],
    *,
    at: int = 20,
    count: int = 40,
    levels: dict[str, float] | None = None,
    noisy: tuple[int, ...] = (),
) -> Series:
    """Nights on machines in random order, whose ratio changes from one night on."""
    rng = random.Random(3)
    points = []
    for day in range(count):
        model = rng.choice((EPYC, XEON))
        error = 0.03 if day in noisy else 0.003
        log = math.log((levels or {}).get(model, 1.0)) + rng.gauss(0, error)
        log += math.log(ratios.get(model, 1.0)) if day >= at else 0.0
        points.append(
            a_point(
                math.exp(log),
                day=day,
                bounds=(math.exp(log - 1.96 * error), math.exp(log + 1.96 * error)),
                environment_key=(("anchor", "a1"), (MACHINE_KEY, model)),
            )
        )
    return a_series([], host=ANCHORED, unit=ANCHOR_UNIT, points=HistoryPoints.of(points))


def accepted(change: Change, because: str = "why not") -> Decision:
    """The decision that a change is as it should be."""
    return Decision(
        id=change.id,
        state="accepted",
        because=because,
        at="2027-01-01T00:00:00Z",
        location=change.location,
    )
