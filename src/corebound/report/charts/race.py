"""A lane of a race: the blocks that a configuration took part in, and how it left."""

from __future__ import annotations

from corebound.present.sections import Lane
from corebound.report.charts.alt_text import img_attributes

_WIDTH = 1000


def lane_svg(lane: Lane) -> str:
    """Draw a lane: a line for its blocks, a bar where it left, a thick line for fresh launches."""
    scale = _WIDTH / max(lane.total, 1)
    end = lane.blocks * scale
    parts = [f'<path class="ran" d="M0 10H{end:.0f}"/>']
    if lane.dropped:
        parts.append(f'<path class="left" d="M{end:.0f} 4V16"/>')
    if lane.fresh:
        begin = lane.race_blocks * scale
        parts.append(f'<path class="fresh" d="M{begin:.0f} 10H{begin + lane.fresh * scale:.0f}"/>')
    return (
        f'<svg class="spark lane" viewBox="0 0 {_WIDTH} 20" preserveAspectRatio="none"'
        f"{img_attributes(lane.text)}>{''.join(parts)}</svg>"
    )
