"""Speed against threads: what each setting gains, beside what as many times the speed would be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from corebound.report.charts.axis import Axis

_SIZE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """A point: `threads`, the speed as a multiple of the curve's first, and its interval's ends."""

    threads: float
    speed: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GainCurve:
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
    levels = "".join(f"M0 {_y(up, tick)}H{_SIZE}" for tick in up.ticks)
    columns = "".join(f"M{_x(across, tick)} 0V{_SIZE}" for tick in across.ticks)
    ideal = _ideal(across, up)
    drawn = "".join(_curve(curve, across, up) for curve in curves)
    return (
        f'<svg viewBox="0 0 {_SIZE} {_SIZE}" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape(says)}"><path class="grid" d="{levels}{columns}"/>'
        f'<path class="rule" d="{ideal}"/>{drawn}</svg>'
    )


def _ideal(across: Axis, up: Axis) -> str:
    """From the fewest threads at 1 to where it leaves the chart, whatever the axes' scales."""
    fewest = across.low
    most = min(across.high, fewest * up.high)
    steps = 40
    places = [fewest * (most / fewest) ** (step / steps) for step in range(steps + 1)]
    return "M" + "L".join(f"{_x(across, at)} {_y(up, at / fewest)}" for at in places)


def _curve(curve: GainCurve, across: Axis, up: Axis) -> str:
    at = [(_x(across, one.threads), one) for one in curve.points]
    line = "L".join(f"{x} {_y(up, one.speed)}" for x, one in at)
    dots = "".join(f"M{x} {_y(up, one.speed)}h0" for x, one in at)
    whiskers = "".join(
        f"M{x} {_y(up, one.low)}V{_y(up, one.high)}"
        for x, one in at
        if one.low is not None and one.high is not None
    )
    bounds = f'<path class="whisker {curve.mode}" d="{whiskers}"/>' if whiskers else ""
    return (
        f'{bounds}<path class="ln {curve.mode} dash-{curve.dash}" d="M{line}"/>'
        f'<path class="spot {curve.mode}" d="{dots}"/>'
    )


def _x(axis: Axis, value: float) -> str:
    return f"{axis.clipped(value) * _SIZE:.1f}"


def _y(axis: Axis, value: float) -> str:
    return f"{(1 - axis.clipped(value)) * _SIZE:.1f}"
