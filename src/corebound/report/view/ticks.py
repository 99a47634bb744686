"""The labels beside an axis, in per cent of the drawing."""

from __future__ import annotations

from collections.abc import Callable

from corebound.report.charts.axis import Axis, plain_tick
from corebound.report.view.page import Tick


def levels_of(up: Axis, text: Callable[[float], str] = plain_tick) -> tuple[Tick, ...]:
    """Of an axis that goes upwards: places from the top."""
    return tuple(Tick(at=round((1 - up.share(at)) * 100, 2), text=text(at)) for at in up.ticks)


def along(across: Axis, text: Callable[[float], str] = plain_tick) -> tuple[Tick, ...]:
    """Of an axis that goes to the right: places from the left."""
    return tuple(Tick(at=round(across.share(at) * 100, 2), text=text(at)) for at in across.ticks)
