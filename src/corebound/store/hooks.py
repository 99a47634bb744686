"""What msgspec is told of points, whose columns it knows nothing about."""

from __future__ import annotations

from typing import Any

import msgspec

from corebound.model.points import Point, Points


def plain(value: Any) -> list[Point]:
    """What points are written as.

    Raises:
        NotImplementedError: it is something else, which is how msgspec is told.
    """
    if isinstance(value, Points):
        return [*value]
    raise NotImplementedError(type(value).__name__)


def typed(kind: type, value: Any) -> Points:
    """Points again of what was read.

    Raises:
        NotImplementedError: something else is wanted, which is how msgspec is told.
        msgspec.ValidationError: it is no points.
    """
    if kind is Points:
        return Points.of(msgspec.convert(value, list[Point]))
    raise NotImplementedError(kind.__name__)
