"""How a scenario's configurations scale with threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.commands import CommandLine, reproduce_command
from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.wording import Label, axis_value, binding_name, mode_class, speedup
from corebound.report.charts.axis import Axis, linear_axis, log_axis, ratio_tick
from corebound.report.charts.lines import ScalingCurve, ScalingPoint
from corebound.report.elements import Tick, horizontal_ticks, vertical_ticks
from corebound.units import percent

# Fewer points are only a comparison, which the interval table shows.
_MIN_POINTS = 3
_AXIS = "threads"
# From this ratio of thread counts on, a linear axis would squeeze the small ones together.
_LINEAR_SPAN = 8


class ScalingRow(Struct, frozen=True, kw_only=True):
    """One point of a curve; its values are relative to those with the fewest threads.

    Attributes:
        point: Its threads, and its speed with an interval.
        ideal: The speed if it grew as much as the threads.
    """

    label: Label
    point: ScalingPoint
    ideal: float

    @property
    def efficiency(self) -> float:
        """Its speed as a share of the ideal."""
        return self.point.speed / self.ideal

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval of its speed."""
        low, high = self.point.low, self.point.high
        return None if low is None or high is None else (low, high)


class Scaling(Struct, frozen=True, kw_only=True):
    """The section: a chart and the table behind it; `command` measures all of it again."""

    curves: tuple[ScalingCurve, ...]
    key: tuple[tuple[Label, int], ...]
    across: Axis
    up: Axis
    levels: tuple[Tick, ...]
    along: tuple[Tick, ...]
    says: str
    rows: tuple[ScalingRow, ...]
    command: CommandLine


def scaling(result: ScenarioResult) -> Scaling | None:
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
    curves = tuple(_curve(group, dash) for dash, group in enumerate(configurations))
    labels = tuple(_label(group[0][1]) for group in configurations)
    across, up = _axes(curves)
    rows = tuple(
        ScalingRow(
            label=label,
            point=point,
            ideal=point.threads / curve.points[0].threads,
        )
        for label, curve in zip(labels, curves, strict=True)
        for point in curve.points
    )
    return Scaling(
        curves=curves,
        key=tuple((label, dash) for dash, label in enumerate(labels)),
        across=across,
        up=up,
        levels=vertical_ticks(up, ratio_tick),
        along=horizontal_ticks(across),
        says="Speed against threads, beside the ideal. " + "; ".join(_curve_ends(rows)) + ".",
        rows=rows,
        command=reproduce_command(
            result, [cell.cell for group in configurations for _, cell in group]
        ),
    )


def _cells_and_duplicates(result: ScenarioResult) -> Iterator[CellResult]:
    """The cells, and each duplicate with the result of the cell that was measured."""
    for cell in result.cells:
        yield cell
        yield from (replace(cell, cell=duplicate) for duplicate in cell.duplicates)


def _curve_ends(rows: Sequence[ScalingRow]) -> Iterator[str]:
    """Where each configuration's curve ends, in words."""
    for row in {row.label: row for row in rows}.values():
        gain, efficiency = speedup(row.point.speed), percent(row.efficiency, 0)
        reached = f"{gain} with {row.point.threads:g} threads, {efficiency} of the ideal"
        yield f"{row.label.whole}: {reached}"


def _label(cell: CellResult) -> Label:
    others = [axis for axis, _ in cell.cell.visible_axes if axis not in {"binding", _AXIS}]
    return Label(
        mode=mode_class(cell.cell.binding.mode),
        name=binding_name(cell.cell),
        more=", ".join(axis_value(cell.cell, axis) for axis in others),
    )


def _curve(group: list[tuple[int, CellResult]], dash: int) -> ScalingCurve:
    first_ns = group[0][1].summary.median_ns or 1.0
    points = []
    for threads, cell in group:
        interval = cell.summary.interval
        median_ns = cell.summary.median_ns or first_ns
        points.append(
            ScalingPoint(
                threads=threads,
                speed=first_ns / median_ns,
                low=first_ns / interval.high if interval else None,
                high=first_ns / interval.low if interval and interval.low > 0 else None,
            )
        )
    return ScalingCurve(
        mode=mode_class(group[0][1].cell.binding.mode), dash=dash % 4, points=tuple(points)
    )


def _axes(curves: tuple[ScalingCurve, ...]) -> tuple[Axis, Axis]:
    threads = sorted({point.threads for curve in curves for point in curve.points})
    ends = [
        end
        for curve in curves
        for point in curve.points
        for end in (point.speed, point.low, point.high)
        if end is not None
    ]
    span = threads[-1] / threads[0]
    low, high = min([*ends, 1.0]), min(max([*ends, 1.0]) * 1.1, max(span, 1.1) * 2)
    if span > _LINEAR_SPAN:
        return (
            log_axis(threads[0], threads[-1]),
            log_axis(max(low, high / 1e6) * 0.9, high, most_ticks=5),
        )
    return linear_axis(threads[0], threads[-1]), linear_axis(0.0, high, most_ticks=5)
