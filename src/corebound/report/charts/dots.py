"""A row of dots, one per launch, with a line at their summary value."""

from __future__ import annotations

from collections.abc import Sequence

from corebound.report.charts.alt_text import image, spread_words
from corebound.report.charts.axis import Axis

_WIDTH, _HEIGHT = 1000, 24
# Three alternating heights, so that neighbours do not hide each other.
_YS = (7, 12, 17)


def dots_svg(figures: Sequence[float], middle: float, axis: Axis, mode: str) -> str:
    """Draw one row.

    Args:
        figures: One value per launch, in the order they ran.
        middle: Their summary value.
        axis: Horizontal; values beyond it are drawn at its edge.
        mode: CSS class of the colour.
    """
    dots = "".join(
        f"M{_x(axis, figure)} {_YS[index % len(_YS)]}h0" for index, figure in enumerate(figures)
    )
    return (
        f'<svg class="spark" viewBox="0 0 {_WIDTH} {_HEIGHT}" preserveAspectRatio="none"'
        f"{image(spread_words(figures, middle))}>"
        f'<path class="level {mode}" d="M{_x(axis, middle)} 0V{_HEIGHT}"/>'
        f'<path class="spot {mode}" d="{dots}"/></svg>'
    )


def _x(axis: Axis, value: float) -> int:
    return round(axis.clipped(value) * _WIDTH)
