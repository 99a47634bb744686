"""Warm-up: every iteration of a launch, and which of them no statistic uses."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from corebound.analysis.commands import CommandLine, reproduce_command
from corebound.analysis.scenario_result import CellStudy, ScenarioResult, typical_launch
from corebound.analysis.wording import Label, count, full_name, label, mode_class
from corebound.records.launch_record import Launch
from corebound.report.charts.axis import Axis, linear_axis
from corebound.report.charts.lines import Trace
from corebound.report.elements import Tick, vertical_ticks
from corebound.report.scenario.thread_activity import shown_cells
from corebound.scenario.models import WarmupIterations, WarmupSeconds
from corebound.stats.launch_summary import LaunchSummary
from corebound.stats.warmup import steady_state
from corebound.units import duration, significant, time_unit

# Iterations this far above the steady ones are clipped, so that one cold start does not flatten the
# rest of the chart.
_HEADROOM = 1.15
_STRETCHES = 10


class TracePanel(Struct, frozen=True, kw_only=True):
    """Every iteration of one launch; `stretches` is the same as a table, in its unit.

    A stretch is a tenth of the launch, as (iterations, minimum, median, maximum). `command`
    launches the cell again. `cut_place` is the position of the note about the cut, as a CSS style.
    """

    label: Label
    caption: str
    trace: Trace
    levels: tuple[Tick, ...]
    iterations: tuple[Tick, ...]
    cut_place: str
    cut_note: str
    clipped_note: str
    unit: str
    stretches: tuple[tuple[str, str, str, str], ...]
    command: CommandLine


class Warmup(Struct, frozen=True, kw_only=True):
    """How launches reached steady state."""

    title: str
    lead: str
    panels: tuple[TracePanel, ...]


def warmup(study: ScenarioResult) -> Warmup | None:
    """The traces of the most interesting cells; None if nothing was measured."""
    panels = []
    for cell in shown_cells(study):
        found = typical_launch(cell)
        if found is not None and len(found[0].workers[0].wall_ns) > 1:
            panels.append(_panel(cell, *found, reproduce_command(study, (cell.cell,))))
    if not panels:
        return None
    return Warmup(title=_title(study), lead=_lead(study), panels=tuple(panels))


def steady_words(launch: LaunchSummary) -> str:
    """How a launch reached steady state, in words."""
    if launch.steady.kind == "warm-up then steady":
        return f"steady from iteration {launch.steady.start + 1}"
    return launch.steady.kind


def _title(study: ScenarioResult) -> str:
    launches = [launch for cell in study.cells for launch in cell.summary.launches]
    unsettled = sum(cell.summary.unsettled for cell in study.cells)
    if not unsettled:
        return f"Warm-up: all {count(len(launches), 'launch', 'launches')} settle"
    return (
        f"Warm-up: {len(launches) - unsettled} of {count(len(launches), 'launch', 'launches')}"
        " settle"
    )


def _lead(study: ScenarioResult) -> str:
    chosen = study.measure.warmup
    if isinstance(chosen, WarmupIterations):
        rule = f"The scenario drops the first {count(chosen.iterations, 'iteration')}."
    elif isinstance(chosen, WarmupSeconds):
        rule = f"The scenario drops the first {chosen.seconds:g} s."
    else:
        rule = "The cut is found afterwards, for each launch by itself."
    return (
        "Every iteration of one launch, that nearest to the cell's median, with the least and the"
        f" most of each stretch beneath. The shaded part enters no statistic. {rule}"
    )


def _panel(
    cell: CellStudy, launch: Launch, summary: LaunchSummary, command: CommandLine
) -> TracePanel:
    worker = launch.workers[0]
    length_ns, unit = time_unit(summary.median_ns)
    values = tuple(sample / length_ns for sample in worker.wall_ns)
    cut = _cut(launch, summary)
    axis = _axis(values, cut)
    peak = max(values)
    at = values.index(peak) + 1
    figures = f"median {duration(summary.median_ns)}"
    if summary.p99_ns is not None:
        figures += f", p99 {duration(summary.p99_ns)}"
    words = steady_words(summary)
    return TracePanel(
        label=label(cell.cell),
        caption=f"{unit} per iteration, {figures}",
        trace=Trace(
            mode=mode_class(cell.cell.binding.mode),
            values=values,
            cut=cut,
            axis=axis,
            says=f"Iteration times, {full_name(cell.cell)}, launch {launch.id}: {words}, {figures}",
        ),
        levels=vertical_ticks(axis),
        iterations=_iterations(len(values)),
        cut_place=_place(cut / (len(values) - 1) if cut else 0.0),
        cut_note=words,
        clipped_note=(
            f"highest {significant(peak)} {unit}, iteration {at:,}" if peak > axis.high else ""
        ),
        unit=unit,
        stretches=_stretches(values),
        command=command,
    )


def _stretches(values: Sequence[float]) -> tuple[tuple[str, str, str, str], ...]:
    """Ten segments of equal length, or one per iteration if there are fewer."""
    number = min(_STRETCHES, len(values))
    ends = [round(len(values) * place / number) for place in range(number + 1)]
    return tuple(
        (
            f"{begin + 1:,} to {end:,}" if end > begin + 1 else f"{end:,}",
            significant(min(values[begin:end])),
            significant(statistics.median(values[begin:end])),
            significant(max(values[begin:end])),
        )
        for begin, end in pairwise(ends)
    )


def _place(share: float) -> str:
    """The note's position: right of the cut, or left of it if the cut is in the second half.

    In the second half, a phone has no room for text right of the cut.

    >>> _place(0.25), _place(0.75)
    ('left:25.0%', 'right:25.0%')
    """
    side, away = ("right", 1 - share) if share > 0.5 else ("left", share)
    return f"{side}:{round(away * 100, 2)}%"


def _cut(launch: Launch, summary: LaunchSummary) -> int:
    """How many iterations of the first worker were discarded."""
    wall_ns = launch.workers[0].wall_ns
    if len(launch.workers) == 1:
        return len(wall_ns) - summary.used
    return steady_state(wall_ns).start


def _axis(values: Sequence[float], cut: int) -> Axis:
    """A vertical axis over the iterations that are used, and as many others as fit."""
    used = values[cut:] or values
    low, high = min(values), max(used)
    top = min(max(values), low + (high - low) * 2) if high > low else high
    room = max(top - low, high * 0.1) or 1.0
    return linear_axis(max(low - room * 0.1, 0.0), low + room * _HEADROOM, most_ticks=4)


def _iterations(number: int) -> tuple[Tick, ...]:
    axis = linear_axis(0.0, float(number), most_ticks=4)
    counted = [max(int(tick), 1) for tick in axis.ticks if tick == int(tick)]
    return tuple(
        Tick(at=round((at - 1) / (number - 1) * 100, 2), text=f"{at:,}")
        for at in dict.fromkeys(counted)
    )
