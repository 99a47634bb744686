"""Launches: their variation, how they warmed up, and the table of all of them."""

import statistics
from collections.abc import Sequence

from corebound.analysis.launch_counts import discarded_launches, evidence_of
from corebound.analysis.scenario_result import (
    CellResult,
    ScenarioResult,
    TypicalLaunch,
    typical_launch,
)
from corebound.analysis.wording import Tone, capital, full_name, mode_class
from corebound.records.launch_record import Launch
from corebound.report.charts.axis import Axis, Tick, linear_axis
from corebound.report.charts.lines import Trace
from corebound.report.elements import Content
from corebound.scenario.models import Warmup
from corebound.stats.launch_summary import LaunchSummary
from corebound.stats.warmup import first_used_iteration, reported_times
from corebound.units import duration, significant, time_unit


def typical_launches(result: ScenarioResult) -> tuple[TypicalLaunch, ...]:
    """The typical launch of each of the most interesting cells."""
    typical = map(typical_launch, _interesting_cells(result))
    return tuple(each for each in typical if each and each.launch.workers)


def _interesting_cells(result: ScenarioResult) -> tuple[CellResult, ...]:
    """The most interesting cells: baseline, fastest, and a much slower one."""
    cells = [result.baseline] if result.baseline and result.baseline.is_measured else []
    if result.leader:
        cells.append(result.leader.cell)
    if result.trap:
        cells.append(result.trap.cell)
    unique = {cell.cell.key: cell for cell in cells}
    return tuple(unique.values())


# Iterations this far above the steady ones are clipped, so that one cold start does not flatten the
# rest of the chart.
_HEADROOM = 1.15


def _cut_place(cut: int, last: int) -> str:
    """The position of a note as a CSS style: right of the cut, or left of a late one.

    In the second half, a phone has no room for text right of the cut.
    """
    side, share = ("right", 1 - cut / last) if cut > last / 2 else ("left", cut / last)
    return f"{side}:{round(share * 100, 2)}%"


def _iteration_ticks(number: int) -> tuple[Tick, ...]:
    """The labels of an axis of so many iterations."""
    ticks = linear_axis(0.0, float(number), most_ticks=4).ticks
    iterations = dict.fromkeys(max(int(tick), 1) for tick in ticks if tick == int(tick))
    return tuple(
        Tick(at=round((iteration - 1) / (number - 1) * 100, 2), text=f"{iteration:,}")
        for iteration in iterations
    )


def trace_panels(shown: Sequence[TypicalLaunch], rule: Warmup) -> tuple[Content, ...]:
    """The traces of the launches with several iterations, under `Measure.warmup`."""
    return tuple(
        _trace_panel(typical, rule)
        for typical in shown
        if len(typical.launch.workers[0].wall_ns) > 1
    )


def steady_state_text(launch: LaunchSummary) -> str:
    """How a launch reached steady state, in words."""
    if launch.steady.kind == "warm-up then steady":
        return f"steady from iteration {launch.steady.start + 1}"
    return launch.steady.kind


def settled_text(result: ScenarioResult) -> str:
    """How many launches reached steady state, in words."""
    total = sum(len(cell.summary.launches) for cell in result.cells)
    settled = total - sum(cell.summary.unsettled for cell in result.cells)
    number = f"All {total:,}" if settled == total else f"{settled:,} of {total:,}"
    return f"{number} {'launch' if total == 1 else 'launches'} reached steady state."


def _trace_panel(typical: TypicalLaunch, rule: Warmup) -> Content:
    cell, launch, summary = typical.cell, typical.launch, typical.summary
    is_alone = len(launch.workers) == 1
    cuts = [
        first_used_iteration(
            worker, rule, is_alone=is_alone, reported=reported_times(launch.cell, worker)
        )
        for worker in launch.workers
    ]
    worker, cut = min(
        zip(launch.workers, cuts, strict=True),
        key=lambda pair: abs(
            statistics.median(pair[0].wall_ns[pair[1] :]) - summary.wall_median_ns
        ),
    )
    length_ns, unit = time_unit(summary.wall_median_ns)
    values = tuple(sample / length_ns for sample in worker.wall_ns)
    axis = _trace_axis(values, cut)
    peak = max(values)
    of_all = "" if is_alone else f" of all {len(launch.workers)} workers"
    values_text = f"median{of_all} {duration(summary.wall_median_ns)}"
    if summary.p99_ns is not None:
        values_text += f", p99 {duration(summary.p99_ns)}"
    steady_state = steady_state_text(summary) if is_alone else f"steady from iteration {cut + 1}"
    caption = (
        f"{unit} per iteration{'' if is_alone else f' of worker {worker.slot}'}, {values_text}"
    )
    if peak > axis.high:
        caption += f"; highest {significant(peak)} {unit}, iteration {values.index(peak) + 1:,}"
    return Content(
        cell=cell.cell,
        caption=caption,
        trace=Trace(
            mode=mode_class(cell.cell.binding.mode),
            values=values,
            cut=cut,
            axis=axis,
            alt_text=f"Iteration times, {full_name(cell.cell)}, launch {launch.id}:"
            f" {steady_state}, {values_text}",
        ),
        cut_note=steady_state,
        cut_place=_cut_place(cut, len(values) - 1),
        iterations=_iteration_ticks(len(values)),
    )


def _trace_axis(values: Sequence[float], cut: int) -> Axis:
    """A vertical axis over the iterations that are used, and as many others as fit."""
    used = values[cut:] or values
    low, high = min(values), max(used)
    top = min(max(values), low + (high - low) * 2) if high > low else high
    height = max(top - low, high * 0.1) or 1.0
    return linear_axis(max(low - height * 0.1, 0.0), low + height * _HEADROOM, most_ticks=4)


# A page contains only the end of a log, where the cause is; the record has all of it.
_LOG_CHARACTERS, _OK_LOG_CHARACTERS = 2_000, 400
_TONES: dict[str, Tone] = {"ok": "good", "skipped": "plain"}


def launch_rows(result: ScenarioResult) -> tuple[Content, ...]:
    """The launches that are discarded or not steady, in the order they ran.

    Those that were skipped are among the configurations.
    """
    discarded = {launch.id: reason for launch, reason in discarded_launches(result.launches)}
    summaries = {
        summary.launch: summary
        for cell in result.cells
        for summary in (*cell.summary.launches, *cell.summary.left_out)
    }
    return tuple(
        Content(
            launch=launch,
            summary=summary,
            reason=capital(launch.reason or discarded.get(launch.id, "")),
            evidence=launch.disturbance.evidence
            if launch.disturbance and summary and summary.disturbed
            else evidence_of(launch),
        )
        for launch in result.launches
        for summary in [summaries.get(launch.id)]
        if launch.id in discarded
        or launch.status not in {"ok", "skipped"}
        or (summary and (summary.disturbed or not summary.settled))
    )


def status_tone(status: str) -> Tone:
    """The tone of a launch's status."""
    return _TONES.get(status, "warn")


def log_tail(launch: Launch, *, even_ok: bool = False) -> str:
    """The end of the log of a launch that is not `ok`; else empty.

    With `even_ok` also that of an `ok` launch, but shorter, because it is rarely needed.
    """
    if launch.status == "skipped" or (launch.status == "ok" and not even_ok):
        return ""
    max_characters = _OK_LOG_CHARACTERS if launch.status == "ok" else _LOG_CHARACTERS
    log = launch.log.strip()
    return log if len(log) <= max_characters else f"…{log[-max_characters:]}"
