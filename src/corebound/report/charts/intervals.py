"""Interval tables: their axis, and the chart of each row with its estimate, interval and pairs."""

import math
from collections.abc import Sequence

from corebound.analysis.host_comparison import ClassResult
from corebound.analysis.wording import VerdictWord, verdict_word
from corebound.present.sections import Change, Table
from corebound.report.charts.axis import (
    Axis,
    Tick,
    effect_scale,
    effect_tick,
    ratio_axis,
    x_of,
)
from corebound.report.charts.svg import describe_interval, path, svg
from corebound.stats.comparison import Comparison
from corebound.stats.intervals import Interval

# Explains the number below an inconclusive verdict.
LAUNCHES_NEEDED_NOTE = "Inconclusive rows show the launches needed if the difference is as seen."

# Between the labels of 1 and of another tick, as a share of the axis, so that they do not touch.
_LEAST_LABEL_DISTANCE = 0.2
# In a narrow column, where a label with its direction takes half of it.
NARROW_COLUMN = 0.5
# In a column of a table, which is some 110 px wide.
_LEAST_IN_TABLE = 0.24

# More dots of hosts would hide each other.
_MOST_DOTS = 100

_WIDTH = 1000
_HEIGHT, _SPARK_HEIGHT = 40, 20
# The estimate is drawn above and the dots below, in five repeating rows so that neighbours do not
# hide each other.
_ESTIMATE_Y = 15
_DOT_YS = (27, 34, 32, 30, 28, 35, 33, 31, 29)


def comparison_axis(
    comparisons: Sequence[Comparison], *, margin: float, with_pairs: bool = False
) -> Axis:
    """One axis for several comparisons, with ticks as `effect_ticks` labels them.

    Args:
        margin: The share on either side of 1 that must be on the axis.
        with_pairs: Whether the pairs behind them are drawn too.
    """
    return ratio_axis(
        [comparison.speedup_ratio for comparison in comparisons],
        _intervals(comparisons),
        margin=margin,
        dots=[[ratio for _, ratio in comparison.per_block] for comparison in comparisons]
        if with_pairs
        else (),
    )


def effect_axis(comparisons: Sequence[Comparison], *, margin: float) -> Axis:
    """One axis for the largest effects of several scenarios; `margin` as in `comparison_axis`."""
    ratios = [comparison.speedup_ratio for comparison in comparisons]
    return effect_scale(ratios, _intervals(comparisons), margin=margin)


def _intervals(comparisons: Sequence[Comparison]) -> list[tuple[float, float]]:
    return [each.interval.ends for each in comparisons if each.interval]


def interval_svg(
    comparison: Comparison | None,
    axis: Axis,
    margin: float,
    *,
    verdict: VerdictWord | None = None,
    is_reference: bool = False,
) -> str:
    """Draw one row; values beyond the axis end in an arrow at its edge.

    Args:
        comparison: None if nothing is compared.
        axis: From `comparison_axis`.
        margin: Half-width of the grey band around 1.
        verdict: The verdict shown beside it; None: that of the comparison itself.
        is_reference: Whether the others are compared with it: it is a dot at 1.
    """
    ratios = tuple(ratio for _, ratio in comparison.per_block) if comparison else ()
    return svg(
        _WIDTH,
        _HEIGHT,
        describe_interval(comparison.interval if comparison else None, ratios),
        _ground(axis, margin),
        _pairs(ratios, axis, _tone(comparison, verdict)),
        _compared(comparison, axis, _ESTIMATE_Y, verdict),
        _estimate(axis, _ESTIMATE_Y, "plain", 1.0) if is_reference else "",
    )


def spark_svg(comparison: Comparison | None, axis: Axis, verdict: VerdictWord | None = None) -> str:
    """Draw only the interval against 1, small enough for a table row; `verdict` as above."""
    return svg(
        _WIDTH,
        _SPARK_HEIGHT,
        describe_interval(comparison.interval if comparison else None),
        path("one", f"M{x_of(axis, 1)} 0V{_SPARK_HEIGHT}"),
        _compared(comparison, axis, 10, verdict),
        kind="spark",
    )


def table_axis(table: Table) -> Axis | None:
    """The axis that the comparisons which a table draws share; None without any."""
    comparisons = [change.comparison for change in table.effects if change.comparison is not None]
    margin = max((change.margin for change in table.effects), default=0.0)
    return comparison_axis(comparisons, margin=margin) if comparisons else None


def table_ticks(table: Table, axis: Axis | None) -> tuple[Tick, ...]:
    """The labels of that axis; where some values are no times, they have no direction."""
    if axis is None:
        return ()
    are_times = all(change.words == ("faster", "slower") for change in table.effects)
    return effect_ticks(axis, NARROW_COLUMN if are_times else math.inf, _LEAST_IN_TABLE)


def change_svg(change: Change, axis: Axis) -> str:
    """Draw a comparison of a table: its interval against 1."""
    return spark_svg(change.comparison, axis, change.verdict)


def effect_ticks(
    axis: Axis,
    direction_distance: float = _LEAST_LABEL_DISTANCE,
    least_distance: float = _LEAST_LABEL_DISTANCE,
) -> tuple[Tick, ...]:
    """The labels of an axis of effects; only the outermost say the direction.

    One that would touch the label of 1 is left out.

    Args:
        axis: Of speed-up ratios.
        direction_distance: Between the labels of 1 and of one with its direction, as a share of
            the axis, so that they do not touch.
        least_distance: Between the labels of 1 and of any other, likewise.
    """
    last = len(axis.ticks) - 1
    labels = []
    for index, tick in enumerate(axis.ticks):
        distance = abs(axis.share(tick) - axis.share(1))
        if tick != 1 and distance < least_distance:
            continue
        is_outermost = index in {0, last}
        text = effect_tick(tick)
        if not is_outermost or distance < direction_distance:
            text = text.split()[0]
        labels.append(
            Tick(
                at=round(axis.share(tick) * 100, 2),
                text=text,
                minor=tick != 1 and not is_outermost,
            )
        )
    return tuple(labels)


def effect_svg(shown: Comparison, others: Sequence[Comparison], axis: Axis) -> str:
    """Draw one effect with its interval, and the other comparisons of its scenario as ticks.

    Args:
        shown: The effect. If it is inconclusive, its dot is hollow.
        others: The other comparisons, drawn under it in the colour of their verdicts.
        axis: From `effect_axis`; what is beyond it ends in an arrow.
    """
    places: dict[str, str] = {"good": "", "bad": "", "plain": ""}
    for other in others:
        place = f"M{x_of(axis, other.speedup_ratio)} 5V15"
        tone = verdict_word(other.verdict).tone
        places[tone] += "" if place in places[tone] else place
    return svg(
        _WIDTH,
        _SPARK_HEIGHT,
        describe_interval(shown.interval),
        path("one", f"M{x_of(axis, 1)} -2V22"),
        *(path(f"tick {tone}", drawn) for tone, drawn in places.items()),
        _compared(shown, axis, 10),
        kind="spark",
    )


def class_axis(results: Sequence[ClassResult]) -> Axis:
    """The axis that the speed-ups of classes of hosts share."""
    return effect_scale(
        [
            value
            for result in results
            if result.value is not None
            for value in (result.value, *_host_values(result), *_host_values(result, outliers=True))
        ],
        [
            result.interval.ends
            for result in results
            if result.value is not None and result.interval is not None
        ],
        margin=0.02,
    )


def class_svg(result: ClassResult, axis: Axis, says: str) -> str:
    """Draw a class of hosts: its value with its interval, a dot for each host, rings for outliers.

    Args:
        axis: From `class_axis`; hosts beyond it are drawn at its edge.
    """
    dots, rings = (
        "".join(f"M{x_of(axis, value)} 17h0" for value in _host_values(result, outliers=outliers))
        for outliers in (False, True)
    )
    verdict = result.verdict or "inconclusive"
    tone = verdict_word(verdict).tone
    return svg(
        _WIDTH,
        _SPARK_HEIGHT,
        says,
        path("one", f"M{x_of(axis, 1)} -2V22"),
        _estimate(
            axis, 8, tone, result.value, result.interval, is_hollow=verdict == "inconclusive"
        ),
        path(f"run {tone}", dots),
        path("ring", rings),
        path("hole", rings),
        kind="spark",
    )


def _host_values(result: ClassResult, *, outliers: bool = False) -> tuple[float, ...]:
    """The speed-ups of the hosts; of very many, evenly chosen ones, with both ends."""
    values = sorted(
        member.cell.speedup
        for member in result.members
        if member.deviation.is_outlier is outliers and member.cell.speedup is not None
    )
    if len(values) <= _MOST_DOTS:
        return tuple(values)
    last = len(values) - 1
    return tuple(values[round(at * last / (_MOST_DOTS - 1))] for at in range(_MOST_DOTS))


def _ground(axis: Axis, margin: float) -> str:
    left, right = x_of(axis, 1 - margin), x_of(axis, 1 + margin)
    grid = "".join(f"M{x_of(axis, tick)} 0V{_HEIGHT}" for tick in axis.ticks if tick != 1)
    return (
        path("noise", f"M{left} 0H{right}V{_HEIGHT}H{left}z")
        + path("grid", grid)
        + path("one", f"M{x_of(axis, 1)} 0V{_HEIGHT}")
    )


def _pairs(ratios: Sequence[float], axis: Axis, tone: str) -> str:
    """A dot for each pair of launches behind a comparison that is on the axis."""
    inside = sorted(filter(axis.holds, ratios))
    places = (
        f"M{x_of(axis, dot)} {_DOT_YS[index % len(_DOT_YS)]}h0" for index, dot in enumerate(inside)
    )
    return path(f"run {tone}", "".join(places))


def _tone(comparison: Comparison | None, verdict: VerdictWord | None) -> str:
    if verdict is None and comparison is not None:
        verdict = verdict_word(comparison.verdict)
    return verdict.tone if verdict else "plain"


def _compared(
    comparison: Comparison | None, axis: Axis, y: int, verdict: VerdictWord | None = None
) -> str:
    """The ratio of a comparison with its interval; an inconclusive one is a hollow dot."""
    if comparison is None:
        return ""
    is_hollow = comparison.verdict == "inconclusive"
    ratio, interval = comparison.speedup_ratio, comparison.interval
    return _estimate(axis, y, _tone(comparison, verdict), ratio, interval, is_hollow=is_hollow)


def _estimate(
    axis: Axis,
    y: int,
    tone: str,
    ratio: float | None,
    interval: Interval | None = None,
    *,
    is_hollow: bool = False,
) -> str:
    """The interval, as far as it is on the axis, and the dot or the arrow of the estimate."""
    drawn = _interval(interval, axis, tone, y) if interval else ""
    if ratio is None:
        return drawn
    share = axis.share(ratio)
    if share < 0:
        return drawn + path(f"ci {tone}", f"M0 {y}H24M8 {y - 6}L0 {y}L8 {y + 6}")
    if share > 1:
        edge = f"M{_WIDTH} {y}h-24M{_WIDTH - 8} {y - 6}L{_WIDTH} {y}L{_WIDTH - 8} {y + 6}"
        return drawn + path(f"ci {tone}", edge)
    place = f"M{x_of(axis, ratio)} {y}h0"
    return drawn + path(f"est {tone}", place) + (path("hole", place) if is_hollow else "")


def _interval(interval: Interval, axis: Axis, tone: str, y: int) -> str:
    low, high = interval.ends
    if axis.share(high) < 0 or axis.share(low) > 1:
        return ""
    ends = ""
    if axis.share(low) < 0:
        ends += f"M8 {y - 5}L0 {y}L8 {y + 5}"
    if axis.share(high) > 1:
        ends += f"M{_WIDTH - 8} {y - 5}L{_WIDTH} {y}L{_WIDTH - 8} {y + 5}"
    return path(f"ci {tone}", f"M{x_of(axis, low)} {y}H{x_of(axis, high)}{ends}")
