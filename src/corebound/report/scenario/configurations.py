"""The table of configurations: each has one row, with its chart and with its details folded."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from corebound.analysis import wording
from corebound.analysis.launch_counts import fix_of, launch_counts
from corebound.analysis.launch_metrics import (
    context_switches,
    median_of,
    migrations,
    span_of,
    threads,
    total_wall_ns,
)
from corebound.analysis.launch_modes import mode_notes, modes_by_launch
from corebound.analysis.scenario_result import (
    CellResult,
    ScenarioResult,
    same_configurations,
)
from corebound.diagnosis.evidence import wait_share
from corebound.records.launch_record import Launch
from corebound.report.charts.axis import Axis
from corebound.report.charts.history import value_axis
from corebound.report.charts.intervals import comparison_axis
from corebound.report.charts.launches import LaunchChart, LaunchPoint
from corebound.report.elements import Content
from corebound.scenario.cell import Cell
from corebound.stats.launch_summary import LEAST_FOR_CPU_NS, is_too_short
from corebound.stats.modes import Mode
from corebound.units import duration, time_unit


def configurations(result: ScenarioResult) -> Content:
    """Build the table of a scenario's configurations, whether or not they can be compared."""
    unmeasured = unmeasured_cells(
        (
            replace(
                last := cell.launches[-1],
                cell=cell.cell,
                reason=f"{cell.bound}; {last.reason}" if cell.bound else last.reason,
            )
            for cell in result.cells
            if not cell.is_measured
        ),
        result.launches,
    )
    axis = _comparison_axis(result)
    modes = modes_by_launch(result)
    measured = [cell for cell in result.cells if cell.is_measured]
    rows = tuple(
        _row(result, cell, axis, modes)
        for cell in (sorted(measured, key=_by_speed) if result.ranked else measured)
    )
    ratios = [cell.comparison.speedup_ratio for cell in measured if cell.comparison]
    return Content(
        lead=_lead(result),
        axis=axis,
        # Whether the ratio of any row is drawn as an arrow.
        is_beyond_axis=axis is not None and not all(map(axis.holds, ratios)),
        rows=tuple(within(_MOST_POINTS, rows)),
        unmeasured=unmeasured,
        absent=_not_launched_text(result),
        notes=tuple(map(wording.capital, mode_notes(result))),
        # The id of the row that shows a configuration, by key.
        anchors=_anchors(result, unmeasured),
    )


_NOT_IN_AN_ID = re.compile(r"[^a-z0-9]+")


def _anchors(result: ScenarioResult, unmeasured: tuple[Content, ...]) -> dict[str, str]:
    """The id of the row of each configuration, by key; configurations in one row share it."""
    anchors: dict[str, str] = {}
    taken: set[str] = set()

    def anchor_of(cells: tuple[Cell, ...]) -> None:
        name = "c-" + _NOT_IN_AN_ID.sub("-", cells[0].key.lower()).strip("-")
        while name in taken:
            name += "-"
        taken.add(name)
        anchors.update({cell.key: name for cell in cells})

    for cell in result.cells:
        if cell.is_measured:
            anchor_of((cell.cell, *cell.duplicates))
    for group in unmeasured:
        anchor_of(group.cells)
    return anchors


def _comparison_axis(result: ScenarioResult) -> Axis | None:
    if not result.ranked:
        return None
    return comparison_axis(
        [alternative.comparison for alternative in result.ranked],
        margin=result.measure.margin,
        with_pairs=True,
    )


def _lead(result: ScenarioResult) -> str:
    parts = [_number_text(result)]
    if result.ranked:
        order = "best first" if result.scenario.metrics else "fastest first"
        parts.append(f"compared with {_baseline_name(result)}, {order}")
    return f"{', '.join(parts)}."


def _number_text(result: ScenarioResult) -> str:
    number = len(result.cells)
    incomplete = result.incomplete
    if incomplete is not None and incomplete.never:
        total = wording.count(number + incomplete.never, "configuration")
        others = "was" if incomplete.never == 1 else "were"
        return f"{number:,} of {total}; {incomplete.never:,} {others} not launched"
    same = same_configurations(result)
    every = number + sum(len(cell.duplicates) for cell in result.cells)
    if same:
        return f"{wording.count(every, 'configuration')}, {every - same:,} distinct on this host"
    return wording.count(number, "configuration")


def _baseline_name(result: ScenarioResult) -> str:
    """The baseline's name on the page: one cell, or a rule if there are several baselines."""
    if len(result.baselines) == 1:
        return wording.full_name(result.baselines[0])
    return "their baselines"


def _by_speed(cell: CellResult) -> tuple[float, bool]:
    """The sort key: fastest first; of equal displayed values, equivalent cells come last."""
    speed = 1.0 if cell.baseline is None else 0.0
    if cell.comparison is not None:
        speed = cell.comparison.speedup_ratio
    return -round(speed, 2), cell.equivalent_cell is not None


def _beyond_axis_note(cell: CellResult, axis: Axis) -> str:
    """How many of a row's pairs are beyond the axis, and the range of all; empty if none are."""
    if cell.comparison is None or not axis.holds(cell.comparison.speedup_ratio):
        # The row is an arrow, which the introduction explains.
        return ""
    ratios = [ratio for _, ratio in cell.comparison.per_block]
    off = sum(not axis.holds(ratio) for ratio in ratios)
    if not off:
        return ""
    text = f"{off} of {wording.count(len(ratios), 'pair')} off the axis"
    ends = (
        wording.relative_speed(ratio, words=cell.cell.words) for ratio in (min(ratios), max(ratios))
    )
    return f"{text}; all pairs: {' to '.join(ends)}"


def _row(
    result: ScenarioResult,
    cell: CellResult,
    axis: Axis | None,
    modes: Mapping[str, Mode],
) -> Content:
    caveat = _repeats_baseline_note(result, cell)
    notes = (
        _equivalent_cell_note(cell),
        caveat,
        _same_mode_note(cell),
        launch_counts(cell.launches).note,
        _beyond_axis_note(cell, axis) if axis else "",
    )
    verdict = _cell_verdict(cell)
    return Content(
        cell=cell,
        notes=tuple(filter(None, notes)),
        verdict=replace(verdict, tone="plain") if caveat else verdict,
        launches=_launch_chart(result, cell, verdict.tone, modes),
    )


def _cell_verdict(cell: CellResult) -> wording.VerdictWord:
    """The verdict of a measured cell, with its ratio if it is decided: `▼ 1.30× slower`."""
    if cell.baseline is None:
        return wording.REFERENCE
    if cell.comparison is None:
        return wording.NO_BASELINE
    verdict = wording.verdict_word(cell.comparison.verdict)
    if cell.comparison.verdict in {"faster", "slower"}:
        ratio = wording.relative_speed(cell.comparison.speedup_ratio, words=cell.cell.words)
        return replace(verdict, word=ratio)
    return verdict


# The launches in the charts of a page together, so that a page of many configurations stays small.
_MOST_POINTS = 90


def within(most: int, rows: Iterable[Content]) -> Iterator[Content]:
    """The rows, of which baselines and the first keep their charts, up to so many launches."""
    drawn = 0
    for row in rows:
        drawn += len(row.launches.own) + len(row.launches.baseline) if row.launches else 0
        is_kept = drawn <= most or row.cell.baseline is None
        yield row if is_kept else Content(**{**vars(row), "launches": None})


def _launch_chart(
    result: ScenarioResult, cell: CellResult, tone: wording.Tone, modes: Mapping[str, Mode]
) -> LaunchChart | None:
    """The launches of a configuration beside those that they are compared with."""
    launches = cell.summary.launches
    if len(launches) < 2:
        return None
    compared, comparison = cell.baseline, cell.comparison
    baseline = next(
        (own for own in result.cells if compared and own.cell.key == compared.key), None
    )
    others = baseline.summary.launches if baseline and comparison else ()
    metric = cell.cell.metric
    length_ns, unit = (1.0, metric.unit) if metric else time_unit(launches[0].median_ns)
    own, base = (
        tuple(
            LaunchPoint(
                block=launch.block,
                value=metric.from_time_ns(launch.median_ns)
                if metric
                else launch.median_ns / length_ns,
                is_slow=modes.get(launch.launch) == "slow",
            )
            for launch in each
        )
        for each in (launches, others)
    )
    return LaunchChart(
        across=value_axis([point.value for point in (*own, *base)], margin=result.measure.margin),
        unit=unit,
        own=own,
        baseline=base,
        baseline_name=wording.full_name(baseline.cell) if baseline else "",
        pairs=frozenset(block for block, _ in comparison.per_block) if comparison else frozenset(),
        tone=tone,
    )


def launches_text(cell: CellResult) -> str:
    """How many launches count, and how many do not: `5, and 1 discarded: failed`."""
    counts = launch_counts(cell.launches)
    number = f"{counts.counted:,}"
    if not counts.discarded:
        return number
    return f"{number}, and {counts.total_discarded:,} discarded: {counts.reasons}"


def over_launches(
    cell: CellResult,
) -> Iterator[tuple[str, str, float, tuple[float, float] | None]]:
    """Values of launches: name, format, median, and minimum with maximum.

    Unknown ones are left out, and ends that are equal.
    """
    cpu_ns = {launch.launch: launch.cpu_median_ns for launch in cell.summary.launches}
    metrics: tuple[tuple[str, str, Callable[[Launch], float | None]], ...] = (
        ("CPU time", "duration", lambda launch: cpu_ns.get(launch.id)),
        ("All iterations", "duration", total_wall_ns),
        ("Peak RSS", "bytes", lambda launch: launch.peak_rss_bytes),
        ("Run-queue wait", "percent", wait_share),
        ("Threads", "quantity", threads),
        ("Context switches", "quantity", context_switches),
        ("Migrations", "quantity", migrations),
    )
    for name, kind, metric in metrics:
        middle = cell.summary.cpu_median_ns if name == "CPU time" else median_of(cell, metric)
        if middle is not None:
            yield name, kind, middle, span_of(cell, metric)


def _repeats_baseline_note(result: ScenarioResult, cell: CellResult) -> str:
    """A caveat for a verdict on a cell that repeats its baseline; empty for any other."""
    repeats = any(
        alternative.cell is cell
        and alternative.is_itself
        and alternative.comparison.verdict in {"faster", "slower"}
        for alternative in result.ranked
    )
    return "the difference is noise, or the variable itself" if repeats else ""


def _same_mode_note(cell: CellResult) -> str:
    """That only launches of the same mode are compared; empty if all are."""
    by_mode = cell.comparison.by_mode if cell.comparison else None
    return "launches of the same mode compared" if by_mode and by_mode.is_same_mode else ""


def _equivalent_cell_note(cell: CellResult) -> str:
    """The earlier cell with the same CPUs and threads on this host; empty if there is none."""
    if cell.equivalent_cell is None:
        return ""
    name = wording.compared_with(cell.cell, cell.equivalent_cell)
    same_binding = wording.binding_name(cell.cell) == wording.binding_name(cell.equivalent_cell)
    return f"same CPUs and threads as {'with ' if same_binding else ''}{name}"


def unmeasured_cells(latest: Iterable[Launch], launches: Sequence[Launch]) -> tuple[Content, ...]:
    """The cells whose latest launch, of all these, has no result, grouped by name and reason."""
    groups: dict[tuple[str, str, str, str], list[Cell]] = {}
    for launch in latest:
        reason = launch.reason or "; ".join(launch.evidence) or "no reason was recorded."
        key = (wording.label(launch.cell).name, launch.status, reason, fix_of(launch, launches))
        groups.setdefault(key, []).append(launch.cell)
    return tuple(
        Content(
            label=replace(
                labels[0],
                more="; ".join(each_label.more for each_label in labels if each_label.more),
            ),
            status=status,
            reason=reason,
            fix=fix,
            cells=tuple(cells),
        )
        for (_, status, reason, fix), cells in groups.items()
        for labels in [[wording.label(cell) for cell in cells]]
    )


def _not_launched_text(result: ScenarioResult) -> str:
    launched = {cell.cell.key for cell in result.cells}
    missing = sum(result.run.measured_key(cell) not in launched for cell in result.planned)
    if not missing:
        return ""
    selection = f" (--only {' '.join(result.run.only)})" if result.run.only else ""
    missing_text = wording.count(missing, "configuration")
    return f"{missing_text} of the scenario had no launch in this run{selection}."


def too_short_note(result: ScenarioResult) -> str:
    """Why CPU times are missing, if their iterations are too short; else empty."""
    summaries = (cell.summary for cell in result.cells if cell.summary.cpu_median_ns is None)
    shortest = duration(LEAST_FOR_CPU_NS)
    note = f"An iteration below {shortest} is too short for the CPU clock."
    return note if any(map(is_too_short, summaries)) else ""
