"""Every iteration of a launch as one line, or as an envelope if there are many."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.report.charts.alt_text import image
from corebound.report.charts.axis import Axis
from corebound.report.charts.viewbox import SIZE, levels

# More points than this are finer than a screen shows. The extremes of each column keep every peak.
MOST_POINTS = 1_600


class Trace(Struct, frozen=True, kw_only=True):
    """The content of a trace.

    Attributes:
        mode: CSS class of the colour.
        values: One per iteration, in the unit of `axis`.
        cut: The number of iterations from the start that no statistic uses.
        axis: Vertical; the line leaves the drawing at its top for values beyond the axis.
        says: Alternative text.
    """

    mode: str
    values: tuple[float, ...]
    cut: int
    axis: Axis
    says: str


def trace_svg(trace: Trace) -> str:
    """Draw a trace with its cut; the horizontal axis spans all iterations."""
    points = envelope(trace.values, most=MOST_POINTS)
    last = max(len(trace.values) - 1, 1)
    line = "".join(f"M{'L'.join(piece)}" for piece in _pieces(points, last, trace.axis))
    # The cut lies between the last discarded iteration and the first used one.
    edge = min(max(trace.cut - 0.5, 0) / last, 1) * SIZE if trace.cut else 0
    wash = f'<path class="wash" d="M0 0H{edge:.1f}V{SIZE}H0z"/>' if edge else ""
    rule = f'<path class="rule" d="M{edge:.1f} 0V{SIZE}"/>' if 0 < edge < SIZE else ""
    return (
        f'<svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none"{image(trace.says)}>'
        f'{wash}<path class="grid" d="{levels(trace.axis)}"/>{rule}'
        f'<path class="ln {trace.mode}" d="{line}"/></svg>'
    )


def _pieces(points: Sequence[tuple[int, float]], last: int, axis: Axis) -> list[list[str]]:
    """The coordinates of the visible parts of the line.

    A part ends where the line leaves the chart.
    """
    pieces: list[list[str]] = []
    before: tuple[float, float] | None = None
    for index, value in points:
        across, up = index / last, axis.share(value)
        if before is not None and (before[1] > 1) != (up > 1):
            part = (1 - before[1]) / (up - before[1])
            edge = _place(before[0] + (across - before[0]) * part, 1.0)
            if up > 1:
                pieces[-1].append(edge)
            else:
                pieces.append([edge])
        elif before is None and up <= 1:
            pieces.append([])
        if up <= 1:
            pieces[-1].append(_place(across, up))
        before = across, up
    return pieces


def _place(across: float, up: float) -> str:
    return f"{across * SIZE:.1f} {(1 - max(0.0, up)) * SIZE:.1f}"


def envelope(values: Sequence[float], *, most: int) -> tuple[tuple[int, float], ...]:
    """Thin a series to its extremes: each point is (index, value), in order.

    All points are kept if there are at most `most`. Otherwise the minimum and maximum of each of
    `most / 2` equal segments are kept.

    >>> envelope([1, 5, 2, 9, 3, 4], most=4)
    ((0, 1), (1, 5), (3, 9), (4, 3))
    """
    if len(values) <= most:
        return tuple(enumerate(values))
    columns = most // 2
    kept: list[tuple[int, float]] = []
    for column in range(columns):
        begin = column * len(values) // columns
        stretch = values[begin : (column + 1) * len(values) // columns]
        least = begin + stretch.index(min(stretch))
        greatest = begin + stretch.index(max(stretch))
        kept.extend((index, values[index]) for index in sorted({least, greatest}))
    return tuple(kept)
