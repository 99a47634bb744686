"""The tables behind the charts: all cells, every launch."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct

from corebound.analysis.commands import CommandLine, launch_command, row_command
from corebound.analysis.launch_metrics import (
    disturbed_words,
    evidence_of,
    figure_of,
    median_of,
    mend_of,
    migrations,
    reason_of,
    span_of,
    statuses,
    switches,
    threads,
    whole_ns,
)
from corebound.analysis.scenario_result import CellStudy, ScenarioResult
from corebound.analysis.throughput import peak_holds, peak_words, throughput, throughput_unit
from corebound.analysis.wording import (
    NO_BASELINE,
    NOT_MEASURED,
    REFERENCE,
    Tone,
    ValueWithBounds,
    VerdictWord,
    axis_value,
    compared_bounds,
    count,
    ends,
    full_name,
    mode_class,
    speedup,
    time_text,
    verdict_word,
    within,
)
from corebound.records.launch_record import Launch
from corebound.report.scenario.intervals import twin_note
from corebound.report.scenario.warmup import steady_words
from corebound.stats.intervals import Interval
from corebound.stats.launch_summary import LEAST_FOR_CPU_NS, is_too_short
from corebound.units import counted, duration, percent, significant, time_unit

# A page contains only the end of a log, where the cause is; the record has all of it.
_LOG_CHARACTERS = 2_000
_OK_LOG_CHARACTERS = 400

# Bounds this many units away come from two launches that determine almost nothing.
_MOST_SHOWN = 1e9

_LEFT_OUT = "Disturbed from outside, and left out of the cell's value."

_TONES: dict[str, Tone] = {"ok": "good", "skipped": "plain"}


class CellRow(Struct, frozen=True, kw_only=True):
    """One cell's values; missing ones are a dash."""

    mode: str
    axes: tuple[str, ...]
    median: str
    interval: str
    p99: ValueWithBounds
    cpu: ValueWithBounds
    spread: ValueWithBounds
    launches: str
    others: str
    whole: ValueWithBounds
    threads: ValueWithBounds
    switches: ValueWithBounds
    migrations: ValueWithBounds
    speedup: ValueWithBounds
    verdict: VerdictWord
    note: str
    baseline: bool
    command: CommandLine
    throughput: ValueWithBounds
    peak: str


class CellTable(Struct, frozen=True, kw_only=True):
    """All cells.

    Attributes:
        figure: The metric they are compared by; it and all other times are in `unit`.
        throughput: The heading of its column, with the unit if there is only one; empty if no cell
            has a throughput.
    """

    lead: str
    figure: str
    axes: tuple[str, ...]
    unit: str
    throughput: str
    rows: tuple[CellRow, ...]


class LaunchRow(Struct, frozen=True, kw_only=True):
    """One launch, whatever its status."""

    id: str
    cell: str
    tone: Tone
    status: str
    reason: str
    fix: str
    evidence: tuple[str, ...]
    median: str
    steady: str
    log: str
    command: CommandLine


def cell_table(study: ScenarioResult) -> CellTable:
    """Every cell's values, in the order of the file and in one unit of time."""
    axes = tuple(dict.fromkeys(axis for cell in study.cells for axis, _ in cell.cell.axes))
    baseline = study.baseline
    scale = baseline.summary.median_ns if baseline and baseline.summary.median_ns else None
    if scale is None:
        scale = next((one.summary.median_ns for one in study.cells if one.is_measured), None)
    length_ns, unit = time_unit(scale or 1e6)
    rate = throughput_unit(study.cells)
    of_peak = peak_holds(study)
    rows = tuple(
        _cell_row(study, cell, axes, length_ns, bare=bool(rate), of_peak=of_peak)
        for cell in study.cells
    )
    heading = f"Throughput, {rate}" if rate else "Throughput"
    return CellTable(
        lead=_cells_lead(study),
        figure=figure_of(study.cells).heading,
        axes=tuple(axis.removeprefix("parameters.").replace("_", " ") for axis in axes),
        unit=unit,
        throughput=heading if any(row.throughput.value for row in rows) else "",
        rows=rows,
    )


def _cells_lead(study: ScenarioResult) -> str:
    figure = figure_of(study.cells)
    unit = figure.unit
    return (
        f"{_cells_said(study)}. {figure.heading}: geometric mean over launches of each"
        f" launch's {figure.says}, with its 95 % interval. p99: the same of its 99th"
        f" percentile, from 100 {unit}s on, and with an interval from 500 independent ones."
        " Spread: standard deviation over launches as a share of their mean, with the 95 %"
        " interval that normal ones would have. CPU time: geometric mean over launches. The time"
        " of all iterations;"
        " threads in its processes; context switches; migrations: median over launches, and"
        " beneath it the least and the most of any launch, which bound it with 95 % from six"
        " launches on. Where all launches have the same, that stands alone."
        f"{_left_out(study)}"
    )


def _left_out(study: ScenarioResult) -> str:
    left = (one.summary for one in study.cells if one.summary.cpu_median_ns is None)
    least = duration(LEAST_FOR_CPU_NS)
    said = f" An iteration below {least} is too short for the CPU clock."
    return said if any(map(is_too_short, left)) else ""


def _cells_said(study: ScenarioResult) -> str:
    left = study.incomplete
    if left is None or not left.never:
        return count(len(study.cells), "cell")
    whole = count(len(study.cells) + left.never, "cell")
    return f"{len(study.cells):,} of {whole}; the others were never launched"


def _cell_row(
    study: ScenarioResult,
    cell: CellStudy,
    axes: tuple[str, ...],
    length_ns: float,
    *,
    bare: bool,
    of_peak: bool,
) -> CellRow:
    summary = cell.summary
    cpu_ns = {one.launch: one.cpu_median_ns for one in summary.launches}

    def number(value_ns: float | None) -> str:
        return "–" if value_ns is None else significant(value_ns / length_ns)

    def between(interval: Interval | None) -> str:
        if interval is None:
            return ""
        return within(interval.low, interval.high, number)

    def over(
        of: Callable[[Launch], float | None],
        middle: float | None,
        write: Callable[[float | None], str] = _counted,
    ) -> ValueWithBounds:
        span = span_of(cell, of)
        return ValueWithBounds(value=write(middle), ends="" if span is None else ends(*span, write))

    others = [(status, n) for status, n in summary.counts if status != "ok" and n]
    return CellRow(
        mode=mode_class(cell.cell.binding.mode),
        axes=tuple(_bare_value(cell, axis) for axis in axes),
        median=number(summary.median_ns),
        interval=between(summary.interval),
        p99=ValueWithBounds(value=number(summary.p99_ns), ends=between(summary.p99_interval)),
        cpu=over(lambda launch: cpu_ns.get(launch.id), summary.cpu_median_ns, number),
        spread=_spread(cell),
        launches=f"{summary.count('ok')}",
        others=", ".join(f"{n} {status}" for status, n in others),
        whole=over(whole_ns, median_of(cell, whole_ns), time_text),
        threads=over(threads, median_of(cell, threads)),
        switches=over(switches, median_of(cell, switches)),
        migrations=over(migrations, median_of(cell, migrations)),
        speedup=ValueWithBounds(
            value=speedup(cell.comparison.speedup_ratio) if cell.comparison else "",
            ends=compared_bounds(cell.comparison),
        ),
        verdict=_cell_verdict(cell),
        note="; ".join(filter(None, (twin_note(cell), disturbed_words(summary)))),
        baseline=cell.baseline is None and cell.is_measured,
        command=row_command(study, cell),
        throughput=throughput(cell, bare=bare),
        peak=peak_words(cell, study.scenario, study.run.host) if of_peak else "",
    )


def _spread(cell: CellStudy) -> ValueWithBounds:
    """Standard deviation over launches, as a share of their mean."""
    ratio, interval = cell.summary.spread_ratio, cell.summary.spread_interval

    def share(value: float) -> str:
        return percent(value) if math.isfinite(value) else "∞"

    return ValueWithBounds(
        value="–" if ratio is None else percent(ratio),
        ends=within(interval.low, interval.high, share) if interval else "",
    )


def _counted(number: float | None) -> str:
    return "–" if number is None else counted(number)


def _bare_value(cell: CellStudy, axis: str) -> str:
    """The value below its column's heading, as commands write it; a binding in words."""
    value = dict(cell.cell.axes).get(axis, "–")
    if axis == "binding":
        return axis_value(cell.cell, axis)
    return value


def _cell_verdict(cell: CellStudy) -> VerdictWord:
    if not cell.is_measured:
        if cell.summary.count("skipped") == cell.summary.attempts:
            return VerdictWord(tone="plain", sign="–", word="skipped")
        return NOT_MEASURED
    if cell.baseline is None:
        return REFERENCE
    return verdict_word(cell.comparison.verdict) if cell.comparison else NO_BASELINE


def launch_rows(study: ScenarioResult) -> tuple[LaunchRow, ...]:
    """Every launch in the order they ran; those that are not `ok` with the end of their log."""
    summaries = {
        one.launch: one
        for cell in study.cells
        for one in (*cell.summary.launches, *cell.summary.left_out)
    }
    aside = {one.launch for cell in study.cells for one in cell.summary.left_out}
    rows = []
    for launch in study.launches:
        summary = summaries.get(launch.id)
        rows.append(
            LaunchRow(
                id=launch.id,
                cell=full_name(launch.cell),
                tone=status_tone(launch.status),
                status=launch.status,
                reason=_LEFT_OUT if launch.id in aside else reason_of(launch),
                fix=mend_of(launch, study.launches),
                evidence=launch.disturbance.evidence
                if launch.disturbance and (summary and summary.disturbed)
                else evidence_of(launch),
                median=duration(summary.median_ns) if summary else "–",
                steady=steady_words(summary) if summary else "",
                log=log_tail(launch),
                command=launch_command(study.run, launch),
            )
        )
    return tuple(rows)


def status_tone(status: str) -> Tone:
    """The tone of a launch's status."""
    return _TONES.get(status, "warn")


def log_tail(launch: Launch, *, even_ok: bool = False) -> str:
    """The end of the log of a launch that is not `ok`; else empty.

    With `even_ok` also that of an `ok` launch, but shorter, because it is rarely needed.
    """
    if launch.status == "skipped" or (launch.status == "ok" and not even_ok):
        return ""
    most = _OK_LOG_CHARACTERS if launch.status == "ok" else _LOG_CHARACTERS
    log = launch.log.strip()
    return log if len(log) <= most else f"…{log[-most:]}"


def launches_summary(study: ScenarioResult) -> str:
    """The number of launches per status: `88 ok, 1 invalid, 3 skipped`."""
    return ", ".join(statuses(study.launches))
