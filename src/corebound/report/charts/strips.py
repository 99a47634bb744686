"""Strips: launches beside their summary value, and lanes of a race."""

from __future__ import annotations

from collections.abc import Sequence

from corebound.present.sections import Lane
from corebound.report.charts.axis import Axis
from corebound.report.charts.svg import describe_spread, path, svg

_WIDTH, _HEIGHT = 1000, 24
# Three alternating heights, so that neighbours do not hide each other.
_YS = (7, 12, 17)


def dots_svg(values: Sequence[float], axis: Axis, slow: Sequence[bool] = ()) -> str:
    """Draw one row.

    Args:
        values: One value per launch relative to their summary value, in the order they ran.
        axis: Horizontal; values beyond it are drawn at its edge.
        slow: For each value, whether its launch is of the slow mode, which is drawn as a ring;
            empty if launches have one mode.
    """
    dots = [f"M{_x(axis, value)} {_YS[index % len(_YS)]}h0" for index, value in enumerate(values)]
    return svg(
        _WIDTH,
        _HEIGHT,
        describe_spread(values, slow=sum(slow)),
        path("level plain", f"M{_x(axis, 1.0)} 0V{_HEIGHT}"),
        path("spot plain", "".join(dots)),
        path("hole", "".join(dot for dot, is_slow in zip(dots, slow, strict=False) if is_slow)),
        kind="spark",
    )


def lane_svg(lane: Lane) -> str:
    """Draw a lane: a line for its blocks, a bar where it left, a thick line for fresh launches."""
    scale = _WIDTH / max(lane.total, 1)
    end = lane.blocks * scale
    begin = lane.race_blocks * scale
    return svg(
        _WIDTH,
        20,
        lane.text,
        path("ran", f"M0 10H{end:.0f}"),
        path("left", f"M{end:.0f} 4V16") if lane.dropped else "",
        path("fresh", f"M{begin:.0f} 10H{begin + lane.fresh * scale:.0f}") if lane.fresh else "",
        kind="spark lane",
    )


def _x(axis: Axis, value: float) -> int:
    return round(axis.clipped(value) * _WIDTH)
