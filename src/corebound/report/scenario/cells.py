"""The comparison of configurations with their baseline, and the table of all cells."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.commands import CommandLine, cell_command, reproduce_command
from corebound.analysis.launch_metrics import (
    context_switches,
    disturbed_note,
    fix_of,
    median_of,
    metric_of,
    migrations,
    span_of,
    threads,
    total_wall_ns,
)
from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.throughput import (
    is_peak_plausible,
    peak_share_text,
    throughput,
    throughput_unit,
)
from corebound.analysis.wording import (
    NO_BASELINE,
    NOT_MEASURED,
    REFERENCE,
    Label,
    ValueWithBounds,
    VerdictWord,
    axis_value,
    binding_name,
    compared_with,
    count,
    full_name,
    label,
    mode_class,
    speedup,
    verdict_word,
)
from corebound.records.launch_record import Launch
from corebound.report.charts.axis import Axis
from corebound.report.charts.intervals import (
    LAUNCHES_NEEDED_NOTE,
    IntervalPlot,
    comparison_axis,
    comparison_plot,
    ratio_ticks,
)
from corebound.report.elements import Tick
from corebound.scenario.cell import Cell
from corebound.stats.launch_summary import LEAST_FOR_CPU_NS, is_too_short
from corebound.units import duration, percent, time_unit


class ComparisonRow(Struct, frozen=True, kw_only=True):
    """One cell against its baseline, with a chart in the row.

    `command` measures both again.
    """

    cell: CellResult
    plot: IntervalPlot
    verdict: VerdictWord
    note: str
    is_best: bool
    command: CommandLine


class UnmeasuredCells(Struct, frozen=True, kw_only=True):
    """A cell without a result, and why; `command` launches it again."""

    label: Label
    status: str
    reason: str
    fix: str
    command: CommandLine


class ComparisonTable(Struct, frozen=True, kw_only=True):
    """How each configuration compares; `unmeasured` are listed below."""

    title: str
    lead: str
    axis: Axis
    ticks: tuple[Tick, ...]
    rows: tuple[ComparisonRow, ...]
    unmeasured: tuple[UnmeasuredCells, ...]
    absent: str


def comparison_table(result: ScenarioResult) -> ComparisonTable | None:
    """Build the table of a scenario's comparisons, fastest first; None if nothing was measured.

    Without comparisons it has no rows, and only lists what was not measured.
    """
    measured = [cell for cell in result.cells if cell.is_measured]
    if not measured:
        return None
    margin = result.measure.margin
    axis = comparison_axis(
        [alternative.comparison for alternative in result.ranked], margin=margin, with_pairs=True
    )
    winner = result.winner
    rows = sorted(measured, key=_by_speed) if result.ranked else []
    unmeasured, absent = _unmeasured_cells(result), _not_launched_text(result)
    if not (rows or unmeasured or absent):
        return None
    heading = f"How each setting compares with {_baseline_name(result)}"
    return ComparisonTable(
        title=heading if rows else "Nothing to compare",
        lead=_comparison_lead(result, axis),
        axis=axis,
        ticks=ratio_ticks(axis),
        rows=tuple(
            _comparison_row(result, cell, axis, is_best=winner is not None and cell is winner.cell)
            for cell in rows
        ),
        unmeasured=unmeasured,
        absent=absent,
    )


def _baseline_name(result: ScenarioResult) -> str:
    """The baseline's name on the page: one cell, or a rule if there are several baselines."""
    if len(result.baselines) == 1:
        return full_name(result.baselines[0])
    return "its baseline"


def cell_plot(cell: CellResult, *, margin: float) -> IntervalPlot:
    """The chart in a cell's row; the baseline is a dot at 1."""
    plot = comparison_plot(cell.comparison, mode=mode_class(cell.cell.binding.mode), margin=margin)
    return plot if cell.comparison or cell.baseline else replace(plot, estimate=1.0)


def _by_speed(cell: CellResult) -> tuple[float, bool]:
    """The sort key: fastest first; of equal displayed values, equivalent cells come last."""
    speed = 1.0 if cell.baseline is None else 0.0
    if cell.comparison is not None:
        speed = cell.comparison.speedup_ratio
    return -round(speed, 2), cell.equivalent_cell is not None


def _comparison_lead(result: ScenarioResult, axis: Axis) -> str:
    margin = percent(result.measure.margin, 0)
    parts = [
        "Large dot and bar: estimate and 95 % interval.",
        "Small dots: the pairs of launches behind it.",
        f"Grey band: within ±{margin}, which counts as equivalent.",
        "Right of 1× is faster.",
    ]
    if axis.scale == "log":
        parts.append("The scale is logarithmic.")
    off = sum(
        not 0 <= axis.share(alternative.comparison.speedup_ratio) <= 1
        for alternative in result.ranked
    )
    if off:
        parts.append("An arrow at the edge is a setting too far off to draw; its figure stands.")
    if any(_beyond_axis_note(alternative.cell, axis) for alternative in result.ranked):
        parts.append("How many pairs lie beyond the axis stands under a setting's name.")
    if any(alternative.comparison.launches_needed for alternative in result.ranked):
        parts.append(LAUNCHES_NEEDED_NOTE)
    return " ".join(parts)


def _beyond_axis_note(cell: CellResult, axis: Axis) -> str:
    """How many of a row's pairs are beyond the axis, and the range of all; empty if none are."""
    if cell.comparison is None or not 0 <= axis.share(cell.comparison.speedup_ratio) <= 1:
        # The row is an arrow, which the introduction explains.
        return ""
    ratios = [ratio for _, ratio in cell.comparison.per_block]
    off = sum(not 0 <= axis.share(ratio) <= 1 for ratio in ratios)
    if not off:
        return ""
    text = f"{off} of {count(len(ratios), 'pair')} beyond the axis"
    return f"{text}: {speedup(min(ratios))} to {speedup(max(ratios))}"


def _comparison_row(
    result: ScenarioResult, cell: CellResult, axis: Axis, *, is_best: bool
) -> ComparisonRow:
    verdict = verdict_word(cell.comparison.verdict) if cell.comparison else NO_BASELINE
    caveat = _repeats_baseline_note(result, cell)
    notes = (
        equivalent_cell_note(cell),
        caveat,
        disturbed_note(cell.summary),
        _beyond_axis_note(cell, axis),
    )
    if cell.baseline is None:
        verdict = REFERENCE
    elif caveat:
        verdict = replace(verdict, tone="plain")
    return ComparisonRow(
        cell=cell,
        plot=cell_plot(cell, margin=result.measure.margin),
        verdict=verdict,
        note="; ".join(filter(None, notes)),
        is_best=is_best,
        command=cell_command(result, cell),
    )


def _repeats_baseline_note(result: ScenarioResult, cell: CellResult) -> str:
    """A caveat for a verdict on a cell that repeats its baseline; empty for any other."""
    repeats = any(
        alternative.cell is cell
        and alternative.is_itself
        and alternative.comparison.verdict in {"faster", "slower"}
        for alternative in result.ranked
    )
    return "the difference is noise, or the variable itself" if repeats else ""


def equivalent_cell_note(cell: CellResult) -> str:
    """The earlier cell with the same CPUs and threads on this host; empty if there is none."""
    if cell.equivalent_cell is None:
        return ""
    name = compared_with(cell.cell, cell.equivalent_cell)
    same_binding = binding_name(cell.cell) == binding_name(cell.equivalent_cell)
    return f"same CPUs and threads as {'with ' if same_binding else ''}{name}"


def _unmeasured_cells(result: ScenarioResult) -> tuple[UnmeasuredCells, ...]:
    """The cells without a result, grouped by name and reason."""
    groups: dict[tuple[str, str, str, str], list[Cell]] = {}
    for cell in result.cells:
        if cell.is_measured:
            continue
        launch = cell.launches[-1]
        reason = launch.reason or "; ".join(launch.evidence) or "no reason was recorded."
        cell_label = label(cell.cell)
        key = (cell_label.name, launch.status, reason, fix_of(launch, cell.launches))
        groups.setdefault(key, []).append(cell.cell)
    return tuple(
        UnmeasuredCells(
            label=replace(
                labels[0],
                more="; ".join(each_label.more for each_label in labels if each_label.more),
            ),
            status=status,
            reason=reason,
            fix=fix,
            command=reproduce_command(result, cells),
        )
        for (_, status, reason, fix), cells in groups.items()
        for labels in [[label(cell) for cell in cells]]
    )


def _not_launched_text(result: ScenarioResult) -> str:
    launched = {cell.cell.key for cell in result.cells}
    missing = sum(1 for cell in result.planned if cell.key not in launched)
    if not missing:
        return ""
    selection = f" (--only {' '.join(result.run.only)})" if result.run.only else ""
    return f"{count(missing, 'cell')} of the scenario had no launch in this run{selection}."


# Bounds this many units away come from two launches that determine almost nothing.
_MAX_SHOWN = 1e9


class MedianAndRange(Struct, frozen=True, kw_only=True):
    """A median over launches, and their minimum and maximum: None if all are equal."""

    median: float | None
    range: tuple[float, float] | None


class CellRow(Struct, frozen=True, kw_only=True):
    """One cell's values.

    Attributes:
        axes: Its values on the table's axes, as text.
        verdict: Of its comparison with the baseline.
        command: Measures it again, with its baseline.
        cpu_ns: CPU time of an iteration.
        total_ns: The time of all iterations of a launch.
        threads, switches, migrations: Of its processes.
        throughput: Its work per second, if the workload counts it.
        peak: The share of the host's peak that it reached; empty if unknown.
    """

    cell: CellResult
    axes: tuple[str, ...]
    verdict: VerdictWord
    command: CommandLine
    cpu_ns: MedianAndRange
    total_ns: MedianAndRange
    threads: MedianAndRange
    switches: MedianAndRange
    migrations: MedianAndRange
    throughput: ValueWithBounds
    peak: str

    @property
    def other_launches(self) -> str:
        """How many of its launches have no result, by status: `1 invalid, 2 failed`."""
        counts = self.cell.summary.counts
        return ", ".join(
            f"{number} {status}" for status, number in counts if status != "ok" and number
        )


class CellTable(Struct, frozen=True, kw_only=True):
    """All cells.

    Attributes:
        metric: The metric they are compared by.
        unit, unit_ns: The unit of all times, and its length.
        throughput: The heading of its column, with the unit if there is only one; empty if no cell
            has a throughput.
    """

    lead: str
    metric: str
    axes: tuple[str, ...]
    unit: str
    unit_ns: float
    throughput: str
    rows: tuple[CellRow, ...]


def cell_table(result: ScenarioResult) -> CellTable:
    """Every cell's values, in the order of the file and in one unit of time."""
    axes = tuple(dict.fromkeys(axis for cell in result.cells for axis, _ in cell.cell.axes))
    baseline = result.baseline
    scale_ns = baseline.summary.median_ns if baseline and baseline.summary.median_ns else None
    if scale_ns is None:
        scale_ns = next((cell.summary.median_ns for cell in result.cells if cell.is_measured), None)
    unit_ns, unit = time_unit(scale_ns or 1e6)
    rate = throughput_unit(result.cells)
    show_peak = is_peak_plausible(result)
    rows = tuple(
        _cell_row(result, cell, axes, with_unit=not rate, show_peak=show_peak)
        for cell in result.cells
    )
    heading = f"Throughput, {rate}" if rate else "Throughput"
    return CellTable(
        lead=_cells_lead(result),
        metric=metric_of(result.cells).heading,
        axes=tuple(axis.removeprefix("parameters.").replace("_", " ") for axis in axes),
        unit=unit,
        unit_ns=unit_ns,
        throughput=heading if any(row.throughput.value for row in rows) else "",
        rows=rows,
    )


def _cells_lead(result: ScenarioResult) -> str:
    metric = metric_of(result.cells)
    unit = metric.unit
    return (
        f"{_cell_count(result)}. {metric.heading}: geometric mean over launches of each"
        f" launch's {metric.says}, with its 95 % interval. p99: the same of its 99th"
        f" percentile, from 100 {unit}s on, and with an interval from 500 independent ones."
        " Spread: standard deviation over launches as a share of their mean, with the 95 %"
        " interval that normal ones would have. CPU time: geometric mean over launches. The time"
        " of all iterations;"
        " threads in its processes; context switches; migrations: median over launches, and"
        " beneath it the least and the most of any launch, which bound it with 95 % from six"
        " launches on. Where all launches have the same, that stands alone."
        f"{_too_short_note(result)}"
    )


def _too_short_note(result: ScenarioResult) -> str:
    summaries = (cell.summary for cell in result.cells if cell.summary.cpu_median_ns is None)
    shortest = duration(LEAST_FOR_CPU_NS)
    note = f" An iteration below {shortest} is too short for the CPU clock."
    return note if any(map(is_too_short, summaries)) else ""


def _cell_count(result: ScenarioResult) -> str:
    incomplete = result.incomplete
    if incomplete is None or not incomplete.never:
        return count(len(result.cells), "cell")
    total = count(len(result.cells) + incomplete.never, "cell")
    return f"{len(result.cells):,} of {total}; the others were never launched"


def _cell_row(
    result: ScenarioResult,
    cell: CellResult,
    axes: tuple[str, ...],
    *,
    with_unit: bool,
    show_peak: bool,
) -> CellRow:
    cpu_ns = {launch.launch: launch.cpu_median_ns for launch in cell.summary.launches}

    def over_launches(count: Callable[[Launch], int | None]) -> MedianAndRange:
        return MedianAndRange(median=median_of(cell, count), range=span_of(cell, count))

    return CellRow(
        cell=cell,
        axes=tuple(_axis_text(cell, axis) for axis in axes),
        verdict=_cell_verdict(cell),
        command=cell_command(result, cell),
        cpu_ns=MedianAndRange(
            median=cell.summary.cpu_median_ns,
            range=span_of(cell, lambda launch: cpu_ns.get(launch.id)),
        ),
        total_ns=over_launches(total_wall_ns),
        threads=over_launches(threads),
        switches=over_launches(context_switches),
        migrations=over_launches(migrations),
        throughput=throughput(cell, bare=not with_unit),
        peak=peak_share_text(cell, result.scenario, result.run.host) if show_peak else "",
    )


def _axis_text(cell: CellResult, axis: str) -> str:
    """The value below its column's heading, as commands write it; a binding in words."""
    value = dict(cell.cell.axes).get(axis, "–")
    if axis == "binding":
        return axis_value(cell.cell, axis)
    return value


def _cell_verdict(cell: CellResult) -> VerdictWord:
    if not cell.is_measured:
        if cell.summary.count("skipped") == cell.summary.attempts:
            return VerdictWord(tone="plain", sign="–", word="skipped")
        return NOT_MEASURED
    if cell.baseline is None:
        return REFERENCE
    return verdict_word(cell.comparison.verdict) if cell.comparison else NO_BASELINE
