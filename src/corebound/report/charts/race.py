"""The lane of a configuration in a race: its blocks, where it left, and its fresh launches."""

from __future__ import annotations

from corebound.present.sections import Lane
from corebound.report.charts.svg import path, svg

_WIDTH = 1000


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
