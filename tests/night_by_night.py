"""Histories night by night, as the specifications of steps tell them."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from build import a_point, a_series
from corebound.model.points import Points
from corebound.stats.change_points import THRESHOLD, steps_of
from corebound.stats.course import Course
from corebound.stats.interval import Interval
from corebound.stats.regressions import course_of
from corebound.stats.step import Step


class Night(Struct, frozen=True, kw_only=True):
    """One point of a history.

    Attributes:
        figure: A time above 0; None or NaN where the night has none.
        key: Host, kernel and environment in one.
        interval: Where the figure truly lies with 95 %, by the night's own launches.
    """

    figure: float | None
    key: str = ""
    interval: Interval | None = None


def course(nights: Sequence[Night]) -> Course:
    """The nights as a series' points are looked at."""
    points = Points.of(
        a_point(
            night.figure,
            day=day,
            bounds=night.interval and (night.interval.low, night.interval.high),
            circumstances=(("key", night.key),),
        )
        for day, night in enumerate(nights)
    )
    return course_of(a_series([], points=points))


def find_steps(nights: Sequence[Night], *, threshold: float = THRESHOLD) -> tuple[Step, ...]:
    """The steps of these nights."""
    return steps_of(course(nights), threshold=threshold)
