"""The frame of every drawing, and alternative texts of small ones.

These describe the content, not the appearance.
"""

import math
from collections.abc import Sequence
from html import escape

from corebound.stats.intervals import Interval
from corebound.units import percent, ratio

# From here on a percentage has more digits than a multiple.
_MULTIPLE = 2.0


def img_attributes(says: str) -> str:
    """The attributes that present an element as one image with this name to screen readers."""
    return f' role="img" aria-label="{escape(says)}"'


def svg(width: int, height: int, says: str, *parts: str, kind: str = "") -> str:
    """A drawing that fills its place, whose parts have coordinates within this size.

    `says` is its name for screen readers, `kind` its CSS classes.
    """
    classes = f' class="{kind}"' if kind else ""
    return (
        f'<svg{classes} viewBox="0 0 {width} {height}" preserveAspectRatio="none"'
        f"{img_attributes(says)}>{''.join(parts)}</svg>"
    )


def path(kind: str, drawn: str) -> str:
    """A path of these CSS classes; nothing if it draws nothing."""
    return f'<path class="{kind}" d="{drawn}"/>' if drawn else ""


def describe_interval(interval: Interval | None, dots: Sequence[float] = ()) -> str:
    """Describe an interval of a ratio, and the range of the pairs behind it.

    >>> describe_interval(Interval(low=1.4, high=1.54, confidence=0.95), (1.38, 1.56))
    'interval above 1; 2 pairs, 1.38× to 1.56×'
    """
    if interval is None:
        location = "no interval"
    elif interval.low > 1:
        location = "interval above 1"
    elif interval.high < 1:
        location = "interval below 1"
    else:
        location = "interval on both sides of 1"
    if not dots:
        return location
    pairs = "1 pair" if len(dots) == 1 else f"{len(dots):,} pairs"
    least, most = ratio(min(dots)), ratio(max(dots))
    return f"{location}; {pairs}, {least}{f' to {most}' if most != least else ''}"


def describe_series(values: Sequence[float]) -> str:
    """Describe a series: its number of values without NaN, and the last relative to the first.

    >>> describe_series((2.0, math.nan, 3.0)), describe_series((2.0,))
    ('2 values, the last 50.0 % above the first', '1 value')
    """
    finite_values = [value for value in values if not math.isnan(value)]
    if len(finite_values) == 1:
        return "1 value"
    change = _relative(finite_values[-1] / finite_values[0])
    return f"{len(finite_values):,} values, the last {change} the first"


def _relative(share: float) -> str:
    """A value relative to another, which the caller names next.

    Examples: `6.0 % above`, `2.40×`, `equal to`.
    """
    if share >= _MULTIPLE or share <= 1 / _MULTIPLE:
        return ratio(share) if share >= 1 else f"{percent(share)} of"
    if percent(abs(share - 1)) == percent(0):
        return "equal to"
    return f"{percent(abs(share - 1))} {'above' if share > 1 else 'below'}"
