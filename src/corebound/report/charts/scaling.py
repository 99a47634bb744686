"""Speed against threads: the gain of each configuration, compared with ideal scaling."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.report.charts.alt_text import image
from corebound.report.charts.axis import Axis
from corebound.report.charts.viewbox import SIZE, columns, levels, x_of, y_of


class Gain(Struct, frozen=True, kw_only=True):
    """A point of a curve.

    It has `threads`, the speed relative to the curve's first point, and its interval's ends.
    """

    threads: float
    speed: float
    low: float | None
    high: float | None


class GainCurve(Struct, frozen=True, kw_only=True):
    """One configuration; `dash` is its line style, so that colour is not the only difference."""

    mode: str
    dash: int
    points: tuple[Gain, ...]


def scaling_svg(curves: Sequence[GainCurve], across: Axis, up: Axis, says: str) -> str:
    """Draw curves with the ideal, on which the speed grows in proportion to the threads.

    Args:
        curves: Each begins at a speed of 1.
        across: The axis of threads; begins at the fewest.
        up: The axis of speed.
        says: Alternative text.
    """
    ideal = _ideal(across, up)
    drawn = "".join(_curve(curve, across, up) for curve in curves)
    return (
        f'<svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none"{image(says)}>'
        f'<path class="grid" d="{levels(up)}{columns(across)}"/>'
        f'<path class="rule" d="{ideal}"/>{drawn}</svg>'
    )


def _ideal(across: Axis, up: Axis) -> str:
    """The line from the fewest threads at 1 to the chart's edge, whatever the axes' scales."""
    fewest = across.low
    most = min(across.high, fewest * up.high)
    steps = 40
    places = [fewest * (most / fewest) ** (step / steps) for step in range(steps + 1)]
    return "M" + "L".join(f"{x_of(across, at)} {y_of(up, at / fewest)}" for at in places)


def _curve(curve: GainCurve, across: Axis, up: Axis) -> str:
    at = [(x_of(across, one.threads), one) for one in curve.points]
    line = "L".join(f"{x} {y_of(up, one.speed)}" for x, one in at)
    dots = "".join(f"M{x} {y_of(up, one.speed)}h0" for x, one in at)
    whiskers = "".join(
        f"M{x} {y_of(up, one.low)}V{y_of(up, one.high)}"
        for x, one in at
        if one.low is not None and one.high is not None
    )
    bounds = f'<path class="whisker {curve.mode}" d="{whiskers}"/>' if whiskers else ""
    return (
        f'{bounds}<path class="ln {curve.mode} dash-{curve.dash}" d="M{line}"/>'
        f'<path class="spot {curve.mode}" d="{dots}"/>'
    )
