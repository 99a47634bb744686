"""Launches of a configuration beside its baseline: a row for each block; and its lane in a race."""

import math
import statistics
from collections.abc import Sequence

from msgspec import Struct

from corebound.analysis.wording import Tone, count
from corebound.present.sections import Lane
from corebound.report.charts.axis import SIZE, Axis, Tick, horizontal_ticks, x_of
from corebound.report.charts.svg import path, svg
from corebound.units import significant

# In pixels: a row is lower where there are many, so that all of them are in view at once.
_ROW, _MOST_ROWS_HEIGHT, _LEAST_HEIGHT = 13, 150, 36
_SHAPE = 38
# With fewer launches a shape is that of chance.
LEAST_FOR_SHAPE = 8
# A third of Silverman's bandwidth, which would hide modes; and the least, as a share of the axis.
_SMOOTHING, _LEAST_BANDWIDTH = 0.3, 0.008
_STEPS = 50


class LaunchPoint(Struct, frozen=True, kw_only=True):
    """A launch's value in the unit of its chart, and whether it is of the slow of two modes."""

    block: int
    value: float
    is_slow: bool = False


class LaunchChart(Struct, frozen=True, kw_only=True):
    """The content of a chart of launches; its axis holds all of them.

    Attributes:
        across: In `unit`.
        own: The launches of the configuration, at least two.
        baseline: Those of its baseline, called `baseline_name`; may be empty.
        pairs: The blocks in which the two are compared.
        tone: Of the configuration's verdict.
    """

    across: Axis
    unit: str
    own: tuple[LaunchPoint, ...]
    baseline: tuple[LaunchPoint, ...]
    baseline_name: str
    pairs: frozenset[int]
    tone: Tone

    @property
    def blocks(self) -> list[int]:
        """The blocks with a launch, in the order they ran."""
        return sorted({point.block for point in (*self.own, *self.baseline)})

    @property
    def has_shape(self) -> bool:
        """Whether there are enough launches for a shape."""
        return len(self.own) >= LEAST_FOR_SHAPE

    @property
    def height(self) -> int:
        """In pixels."""
        rows = min(max(len(self.blocks) * _ROW, _LEAST_HEIGHT), _MOST_ROWS_HEIGHT)
        return rows + self._top

    @property
    def _top(self) -> int:
        return _SHAPE if self.has_shape else 0

    @property
    def places(self) -> dict[int, float]:
        """The vertical place of each block's row, in pixels."""
        pitch = (self.height - self._top) / len(self.blocks)
        return {block: self._top + (at + 0.5) * pitch for at, block in enumerate(self.blocks)}

    @property
    def levels(self) -> tuple[Tick, ...]:
        """The labels of the rows."""
        ends = [*self.places.values()]
        labels = (("first", ends[0]), ("last", ends[-1]))
        return tuple(Tick(at=round(y / self.height * 100, 1), text=text) for text, y in labels)

    @property
    def along(self) -> tuple[Tick, ...]:
        """The labels of the horizontal axis."""
        return horizontal_ticks(self.across)

    @property
    def says(self) -> str:
        """The alternative text."""
        parts = [_told(self.own, self.unit)]
        if self.baseline:
            parts.append(f"{self.baseline_name} {_told(self.baseline, self.unit)}")
        pairs = self.paired
        if pairs:
            faster = sum(own < base for base, own in pairs.values())
            parts.append(f"faster in {faster} of {count(len(pairs), 'pair')}")
        return "; ".join(parts)

    @property
    def paired(self) -> dict[int, tuple[float, float]]:
        """By block, the values of the baseline's and of the configuration's launch."""
        own = {point.block: point.value for point in self.own}
        return {
            point.block: (point.value, own[point.block])
            for point in self.baseline
            if point.block in self.pairs and point.block in own
        }


def _told(points: Sequence[LaunchPoint], unit: str) -> str:
    """How many launches, their range, and how many are of the slow mode."""
    values = [point.value for point in points]
    slow = sum(point.is_slow for point in points)
    return (
        f"{count(len(points), 'launch', 'launches')}, {significant(min(values))} to "
        f"{significant(max(values))} {unit}{f', {slow} in the slow mode' if slow else ''}"
    )


def launches_svg(chart: LaunchChart) -> str:
    """Draw launches: a row for each block, the first on top, with a line between a pair's two.

    From `LEAST_FOR_SHAPE` launches on, the shapes of both samples are above the rows, one over the
    other. A launch of the slow mode is a ring.
    """
    height, places = chart.height, chart.places
    tone = "" if chart.tone == "plain" else f" {chart.tone}"
    links = "".join(
        f"M{x_of(chart.across, base)} {places[block]:.0f}H{x_of(chart.across, own)}"
        for block, (base, own) in chart.paired.items()
    )
    return svg(
        SIZE,
        height,
        chart.says,
        path("grid", "".join(f"M{x_of(chart.across, at)} 0V{height}" for at in chart.across.ticks)),
        *(
            path(f"shape{kind}", _shape(points, chart.across))
            for kind, points in ((" base", chart.baseline), (tone, chart.own))
            if chart.has_shape and len(points) >= LEAST_FOR_SHAPE
        ),
        path("link", links),
        *(
            _dots(f"dot{kind}", points, chart)
            for kind, points in ((" base", chart.baseline), (tone, chart.own))
        ),
    )  # fmt: skip


def _dots(kind: str, points: Sequence[LaunchPoint], chart: LaunchChart) -> str:
    places = chart.places
    drawn = [f"M{x_of(chart.across, point.value)} {places[point.block]:.0f}h0" for point in points]
    rings = "".join(dot for dot, point in zip(drawn, points, strict=True) if point.is_slow)
    return path(kind, "".join(drawn)) + path("hole", rings)


def _shape(points: Sequence[LaunchPoint], across: Axis) -> str:
    """The density of launches along the axis, as high as there is room."""
    shares = [across.share(point.value) for point in points]
    spread = statistics.stdev(shares)
    low, _, high = statistics.quantiles(shares)
    if high > low:
        spread = min(spread, (high - low) / 1.34)
    width = max(_SMOOTHING * spread * len(shares) ** -0.2, _LEAST_BANDWIDTH)
    begin, end = max(min(shares) - 3 * width, 0.0), min(max(shares) + 3 * width, 1.0)
    steps = [begin + (end - begin) * step / _STEPS for step in range(_STEPS + 1)]
    heights = [
        sum(math.exp(-0.5 * ((step - share) / width) ** 2) for share in shares) for step in steps
    ]
    line = "L".join(
        f"{step * SIZE:.0f} {(1 - height / max(heights)) * (_SHAPE - 6) + 2:.0f}"
        for step, height in zip(steps, heights, strict=True)
    )
    return f"M{begin * SIZE:.0f} {_SHAPE - 4}L{line}V{_SHAPE - 4}z"


def lane_svg(lane: Lane) -> str:
    """Draw a lane: a line for its blocks, a bar where it left, a thick line for fresh launches."""
    scale = SIZE / max(lane.total, 1)
    end = lane.blocks * scale
    begin = lane.race_blocks * scale
    return svg(
        SIZE,
        20,
        lane.text,
        path("ran", f"M0 10H{end:.0f}"),
        path("left", f"M{end:.0f} 4V16") if lane.dropped else "",
        path("fresh", f"M{begin:.0f} 10H{begin + lane.fresh * scale:.0f}") if lane.fresh else "",
        kind="spark lane",
    )
