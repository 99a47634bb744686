"""What a cell's launches are judged by, in words."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from corebound.report.view.study import CellStudy
from corebound.stats.serving import BY_P90, BY_TAIL


class FigureName(Struct, frozen=True, kw_only=True):
    """A figure: as a heading, in a sentence after "each launch's", and what it is of.

    `each` is the last with its article.
    """

    heading: str
    says: str
    unit: str
    each: str


_ITERATION = FigureName(
    heading="Median", says="median iteration", unit="iteration", each="an iteration"
)
_REQUEST = FigureName(
    heading="Time a request", says="time for each good answer", unit="request", each="a request"
)
_P90 = FigureName(heading="p90", says="90th percentile", unit="request", each="a request")
_P99 = FigureName(heading="p99", says="99th percentile", unit="request", each="a request")
_SEVERAL = FigureName(
    heading="Figure", says="time a request or percentile", unit="request", each="a request"
)


def figure_of(cells: Iterable[CellStudy]) -> FigureName:
    """The figure of these cells; servers may have several kinds among them."""
    shapes = {
        launch.served.traffic.shape
        for cell in cells
        for launch in cell.launches
        if launch.served is not None
    }
    if not shapes:
        return _ITERATION
    names = {
        _P99 if shape in BY_TAIL else _P90 if shape in BY_P90 else _REQUEST for shape in shapes
    }
    return names.pop() if len(names) == 1 else _SEVERAL
