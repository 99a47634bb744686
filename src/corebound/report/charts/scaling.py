"""Speed against threads: what each setting gains, beside what as many times the speed would be."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from corebound.report.charts.alt_text import image
from corebound.report.charts.axis import Axis
from corebound.report.charts.viewbox import SIZE, columns, levels, x_of, y_of


class Gain(Struct, frozen=True, kw_only=True):
    """A point: `threads`, the speed as a multiple of the curve's first, and its interval's ends."""

    threads: float
    speed: float
    low: float | None
    high: float | None


class GainCurve(Struct, frozen=True, kw_only=True):
    """One setting; `dash` is the style of its line, so that colour is not alone."""

    mode: str
    dash: int
    points: tuple[Gain, ...]


def scaling_svg(curves: Sequence[GainCurve], across: Axis, up: Axis, says: str) -> str:
    """Draw curves with the ideal, on which the speed grows as the threads do.

    Args:
        curves: Each begins at a speed of 1.
        across: Of threads; begins at the fewest.
        up: Of the speed.
        says: What the drawing shows, for those who do not see it.
    """
    ideal = _ideal(across, up)
    drawn = "".join(_curve(curve, across, up) for curve in curves)
    return (
        f'<svg viewBox="0 0 {SIZE} {SIZE}" preserveAspectRatio="none"{image(says)}>'
        f'<path class="grid" d="{levels(up)}{columns(across)}"/>'
        f'<path class="rule" d="{ideal}"/>{drawn}</svg>'
    )


def _ideal(across: Axis, up: Axis) -> str:
    """From the fewest threads at 1 to where it leaves the chart, whatever the axes' scales."""
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
