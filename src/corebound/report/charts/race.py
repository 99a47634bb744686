"""A lane of a race: the blocks that a configuration took part in, and how it left."""

from __future__ import annotations

from msgspec import Struct

from corebound.analysis.wording import count
from corebound.report.charts.alt_text import img_attributes

_WIDTH = 1000


class Lane(Struct, frozen=True, kw_only=True):
    """A configuration's part of a race.

    Attributes:
        blocks: How many blocks of the race launched it.
        fresh: How many fresh launches it had after the race.
        dropped: Whether it left before the end.
        total: The blocks of the race and the fresh ones, over all lanes.
        race_blocks: The blocks of the race, over all lanes.
    """

    blocks: int
    fresh: int
    dropped: bool
    total: int
    race_blocks: int

    @property
    def says(self) -> str:
        """The lane in words."""
        left = ", then dropped" if self.dropped else ""
        confirmed = f"; {count(self.fresh, 'fresh launch', 'fresh launches')}" if self.fresh else ""
        return f"{count(self.blocks, 'block')}{left}{confirmed}"


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
        f"{img_attributes(lane.says)}>{''.join(parts)}</svg>"
    )
