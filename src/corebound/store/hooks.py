"""What msgspec is told of points, whose columns it knows nothing about."""

from __future__ import annotations

from typing import Any

import msgspec

from corebound.model.points import Point, Points


def plain(value: Any) -> list[Point]:
    """What points are written as.

    Raises:
        TypeError: it is something else, as msgspec has it of what it cannot write.
    """
    if isinstance(value, Points):
        return [*value]
    raise TypeError(f"a {type(value).__name__} is nothing that a file has")


def typed(kind: type, value: Any) -> Points:
    """Points again of what was read.

    Raises:
        TypeError: something else is wanted, as msgspec has it of what it cannot read.
        msgspec.ValidationError: it is no points.
    """
    if kind is Points:
        return Points.of(msgspec.convert(value, list[Point]))
    raise TypeError(f"a {kind.__name__} is nothing that a file has")
