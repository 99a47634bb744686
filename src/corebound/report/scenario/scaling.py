"""How a scenario's configurations scale with threads."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.wording import Label, axis_value, binding_name, mode_class, speedup
from corebound.report.charts.axis import Axis, linear_axis, log_axis, plain_tick, ratio_tick
from corebound.report.charts.lines import Curve, CurveChart, CurvePoint
from corebound.report.elements import Content
from corebound.units import percent

# Fewer points are only a comparison, which the interval table shows.
_MIN_POINTS = 3
_AXIS = "threads"
# From this ratio of thread counts on, a linear axis would squeeze the small ones together.
_LINEAR_SPAN = 8


def scaling(result: ScenarioResult) -> Content | None:
    """The speed-up of each configuration with threads; None with fewer than three thread counts.

    Configurations that differ only in the number of threads form one curve. Gains are relative to
    the value with the fewest threads. Their intervals are those of the values, and treat that
    reference as exact.
    """
    groups: dict[tuple[tuple[str, str], ...], list[tuple[int, CellResult]]] = {}
    for cell in _cells_and_duplicates(result):
        threads = dict(cell.cell.axes).get(_AXIS, "")
        if cell.is_measured and threads.isdigit() and int(threads) > 0:
            rest = tuple(pair for pair in cell.cell.axes if pair[0] != _AXIS)
            groups.setdefault(rest, []).append((int(threads), cell))
    configurations = [
        sorted(group, key=lambda pair: pair[0])
        for group in groups.values()
        # A curve of duplicates only would be drawn twice.
        if len(group) >= _MIN_POINTS and any(cell.cell.key in result.by_key for _, cell in group)
    ]
    fewest = {group[0][0] for group in configurations}
    if not configurations or len(fewest) > 1:
        return None
    curves = tuple(_curve(group, index % 4) for index, group in enumerate(configurations))
    across, up = _axes(curves)
    return Content(
        chart=CurveChart(
            curves=curves,
            across=across,
            up=up,
            texts=(plain_tick, ratio_tick),
            alt_text=f"Speed against threads, beside the ideal. {'; '.join(map(_end, curves))}.",
            has_ideal=True,
        ),
        cells=tuple(cell.cell for group in configurations for _, cell in group),
    )


def _cells_and_duplicates(result: ScenarioResult) -> Iterator[CellResult]:
    """The cells, and each duplicate with the result of the cell that was measured."""
    for cell in result.cells:
        yield cell
        yield from (replace(cell, cell=duplicate) for duplicate in cell.duplicates)


def _end(curve: Curve) -> str:
    """Where a configuration's curve ends, in words."""
    first, last = curve.points[0], curve.points[-1]
    reached = f"{speedup(last.y)} with {last.x:g} threads"
    return f"{curve.label.whole}: {reached}, {percent(last.y / (last.x / first.x), 0)} of the ideal"


def _label(cell: CellResult) -> Label:
    others = [axis for axis, _ in cell.cell.visible_axes if axis not in {"binding", _AXIS}]
    return Label(
        mode=mode_class(cell.cell.binding.mode),
        name=binding_name(cell.cell),
        more=", ".join(axis_value(cell.cell, axis) for axis in others),
    )


def _curve(group: Sequence[tuple[int, CellResult]], dash: int) -> Curve:
    first = group[0][1]
    first_ns = first.summary.median_ns or 1.0
    points = []
    for threads, cell in group:
        interval = cell.summary.interval
        points.append(
            CurvePoint(
                x=threads,
                y=first_ns / (cell.summary.median_ns or first_ns),
                y_ends=(first_ns / interval.high, first_ns / interval.low)
                if interval and interval.low > 0
                else None,
            )
        )
    return Curve(label=_label(first), dash=dash, points=tuple(points))


def _axes(curves: Sequence[Curve]) -> tuple[Axis, Axis]:
    points = [point for curve in curves for point in curve.points]
    threads = sorted({point.x for point in points})
    ends = [end for point in points for end in (point.y, *(point.y_ends or ()))]
    span = threads[-1] / threads[0]
    low, high = min([*ends, 1.0]), min(max([*ends, 1.0]) * 1.1, max(span, 1.1) * 2)
    if span > _LINEAR_SPAN:
        return (
            log_axis(threads[0], threads[-1]),
            log_axis(max(low, high / 1e6) * 0.9, high, most_ticks=5),
        )
    return linear_axis(threads[0], threads[-1]), linear_axis(0.0, high, most_ticks=5)
