"""Small charts about commits: bars of what each changed, a change in a series, missing values."""

import math
from collections.abc import Sequence
from html import escape

from msgspec import Struct

from corebound.report.charts.axis import limited
from corebound.report.charts.svg import img_attributes, path, svg

# The view box of the bars, and the part of it on either side of the middle.
_BARS_WIDTH, _BARS_HEIGHT = 600, 100
_SIDE = 46.0
_BAR_SHARE = 0.7
# The view box of a change.
_STEP_WIDTH, _STEP_HEIGHT = 300, 40
# Noise of a series that hardly changes fills only a part of the height.
_LEAST_SPAN = math.log(1.06)


class CommitBar(Struct, frozen=True, kw_only=True):
    """The number of series that one commit changed.

    Attributes:
        name: The commit, or the date of the nightly run.
        link: The fragment of its entry; empty if nothing changed.
        faster, slower: The numbers of primary and of secondary series.
    """

    name: str
    link: str = ""
    faster: tuple[int, int] = (0, 0)
    slower: tuple[int, int] = (0, 0)

    @property
    def says(self) -> str:
        """The numbers in words."""
        return f"{self.name}: {sum(self.faster)} series better, {sum(self.slower)} worse"


def commit_bars_svg(bars: Sequence[CommitBar], borders: Sequence[float], says: str) -> str:
    """Draw one bar a commit: better series upwards, worse ones downwards, on a square-root scale.

    Args:
        bars: One for each commit, the oldest first.
        borders: Where the environment changed, as shares of the width.
    """
    most = max((sum(numbers) for bar in bars for numbers in (bar.faster, bar.slower)), default=0)
    pace = _BARS_WIDTH / max(len(bars), 1)
    parts = [
        f'<path class="rule" d="M{_BARS_WIDTH * border:.0f} 0V{_BARS_HEIGHT}"/>'
        for border in borders
    ]
    parts.append(f'<path class="zero" d="M0 {_BARS_HEIGHT // 2}H{_BARS_WIDTH}"/>')
    for number, bar in enumerate(bars):
        if bar.link:
            left = (number + (1 - _BAR_SHARE) / 2) * pace
            drawn = _bar(bar.faster, left, pace * _BAR_SHARE, most, kind="good", sign=-1)
            drawn += _bar(bar.slower, left, pace * _BAR_SHARE, most, kind="bad", sign=1)
            name = escape(bar.says)
            parts.append(
                f'<a href="#{escape(bar.link)}" aria-label="{name}">'
                f"<title>{name}</title>{drawn}</a>"
            )
    return (
        f'<svg viewBox="0 0 {_BARS_WIDTH} {_BARS_HEIGHT}" preserveAspectRatio="none"'
        f' role="group" aria-label="{escape(says)}">{"".join(parts)}</svg>'
    )


def _bar(
    numbers: tuple[int, int], left: float, width: float, most: int, *, kind: str, sign: int
) -> str:
    """The primary and the secondary part of a bar; `sign` is 1 for downwards."""
    middle = _BARS_HEIGHT / 2
    primary = bar_height(numbers[0], most) * _SIDE
    whole = bar_height(sum(numbers), most) * _SIDE
    drawn = ""
    for name, near, far in ((kind, 0.0, primary), (f"{kind} secondary", primary, whole)):
        if far > near:
            top = middle + near if sign > 0 else middle - far
            drawn += (
                f'<rect class="{name}" x="{left:.1f}" y="{top:.1f}" width="{width:.1f}"'
                f' height="{far - near:.1f}"/>'
            )
    return drawn


def bar_height(number: int, most: int) -> float:
    """The height of a bar for this number of series, as a share of the highest one.

    >>> bar_height(25, 100), bar_height(0, 0)
    (0.5, 0.0)
    """
    return math.sqrt(number / most) if most else 0.0


def step_svg(
    values: Sequence[float], at: int, levels: tuple[float, float], *, tone: str, says: str
) -> str:
    """Draw a series with a change in it: the points, the level before and after, and where it was.

    Args:
        values: Values above 0 in order, at least one; NaN for a missing value.
        at: The index of the first value after the change.
        levels: The level before and after it.
    """
    logs = [math.nan if math.isnan(value) else math.log(limited(value)) for value in values]
    before, after = (math.log(limited(level)) for level in levels)
    known = sorted(value for value in logs if not math.isnan(value))
    # Spikes leave the chart, so that the change fills it.
    spare = len(known) // 20
    inner = known[spare : len(known) - spare] or known
    low, high = min(before, after, *inner), max(before, after, *inner)
    pad = max((_LEAST_SPAN - (high - low)) / 2, 0.0)
    low, high = low - pad, high + pad
    pace = _STEP_WIDTH / max(len(values) - 1, 1)

    def y(value: float) -> float:
        share = (min(max(value, low), high) - low) / (high - low)
        return round(2 + (1 - share) * (_STEP_HEIGHT - 4), 1)

    line, pen = "", "M"
    for index, value in enumerate(logs):
        if math.isnan(value):
            pen = "M"
            continue
        line += f"{pen}{index * pace:.0f} {y(value):g}"
        pen = "L"
    middle = f"{max(at - 0.5, 0) * pace:.0f}"
    return svg(
        _STEP_WIDTH,
        _STEP_HEIGHT,
        says,
        path("course", line),
        path("before", f"M0 {y(before):g}H{middle}"),
        path("after", f"M{middle} {y(after):g}H{_STEP_WIDTH}"),
        path("cut", f"M{middle} 0V{_STEP_HEIGHT}"),
        kind=f"spark step {tone}",
    )


def presence_svg(present: Sequence[bool]) -> str:
    """Draw one box for each nightly run: full if it has a value, else hollow."""
    full = "".join(f"M{number * 8 + 1} 1h6v10h-6z" for number, has in enumerate(present) if has)
    hollow = "".join(
        f"M{number * 8 + 1.5:g} 1.5h5v9h-5z" for number, has in enumerate(present) if not has
    )
    says = f"{sum(present)} of the last {len(present)} have a value"
    return (
        f'<svg class="spark boxes" viewBox="0 0 {len(present) * 8} 12"{img_attributes(says)}>'
        f'<path class="full" d="{full}"/><path class="hollow" d="{hollow}"/></svg>'
    )
