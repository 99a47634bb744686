"""The interval table: each configuration against its baseline, with a chart in each row."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.commands import CommandLine, reproduce_command, row_command
from corebound.analysis.launch_metrics import disturbed_words, mend_of
from corebound.analysis.scenario_result import CellStudy, ScenarioResult
from corebound.analysis.wording import (
    NO_BASELINE,
    REFERENCE,
    Label,
    VerdictWord,
    binding_name,
    compared_bounds,
    compared_with,
    count,
    label,
    mode_class,
    speedup,
    to_decide,
    verdict_word,
)
from corebound.report.charts.axis import Axis, ratio_axis, ratio_tick
from corebound.report.charts.intervals import IntervalPlot
from corebound.report.elements import Tick
from corebound.report.scenario.verdict import baseline_name
from corebound.scenario.cell import Cell
from corebound.stats.comparison import Comparison
from corebound.units import percent

# Explains the number below an inconclusive verdict.
DECIDES = "Under what is undecided: how many launches of each would decide it at this noise."


class IntervalRow(Struct, frozen=True, kw_only=True):
    """One cell against its baseline, with a chart in the row.

    `command` measures both again.
    """

    label: Label
    plot: IntervalPlot
    speedup: str
    interval: str
    verdict: VerdictWord
    needed: str
    note: str
    best: bool
    baseline: bool
    command: CommandLine


class Unmeasured(Struct, frozen=True, kw_only=True):
    """A cell without a result, and why; `command` launches it again."""

    label: Label
    status: str
    reason: str
    fix: str
    command: CommandLine


class IntervalTable(Struct, frozen=True, kw_only=True):
    """How each configuration compares; `unmeasured` are listed below."""

    title: str
    lead: str
    axis: Axis
    ticks: tuple[Tick, ...]
    rows: tuple[IntervalRow, ...]
    unmeasured: tuple[Unmeasured, ...]
    absent: str


def interval_table(study: ScenarioResult) -> IntervalTable | None:
    """Build the table of a scenario's comparisons, fastest first; None if nothing was measured.

    Without comparisons it has no rows, and only lists what was not measured.
    """
    measured = [cell for cell in study.cells if cell.is_measured]
    if not measured:
        return None
    margin = study.measure.margin
    axis = axis_over([duel.comparison for duel in study.ranked], margin=margin, whole=True)
    winner = study.winner
    rows = sorted(measured, key=_place) if study.ranked else []
    unmeasured, absent = _unmeasured(study), _absent(study)
    if not (rows or unmeasured or absent):
        return None
    with_what = f"How each setting compares with {baseline_name(study)}"
    return IntervalTable(
        title=with_what if rows else "Nothing to compare",
        lead=_lead(study, axis),
        axis=axis,
        ticks=ratio_ticks(axis),
        rows=tuple(
            _row(study, cell, axis, best=winner is not None and cell is winner.cell)
            for cell in rows
        ),
        unmeasured=unmeasured,
        absent=absent,
    )


def axis_over(comparisons: Sequence[Comparison], *, margin: float, whole: bool = False) -> Axis:
    """One axis for several comparisons.

    Args:
        comparisons: The comparisons to draw.
        margin: The share on either side of 1 that must be on the axis.
        whole: Whether the pairs behind them are drawn too.
    """
    return ratio_axis(
        [comparison.speedup_ratio for comparison in comparisons],
        [
            (comparison.interval.low, comparison.interval.high)
            for comparison in comparisons
            if comparison.interval
        ],
        margin=margin,
        dots=[[ratio for _, ratio in one.per_block] for one in comparisons] if whole else (),
    )


def plot_of(cell: CellStudy, *, margin: float) -> IntervalPlot:
    """The chart in a cell's row; the baseline is a dot at 1."""
    found = ratio_plot(cell.comparison, mode=mode_class(cell.cell.binding.mode), margin=margin)
    return found if cell.comparison or cell.baseline else replace(found, estimate=1.0)


def ratio_plot(comparison: Comparison | None, *, mode: str, margin: float) -> IntervalPlot:
    """The chart of a comparison, if there is one; `mode` is the CSS class of its colour."""
    interval = comparison.interval if comparison else None
    return IntervalPlot(
        mode=mode,
        estimate=comparison.speedup_ratio if comparison else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        dots=tuple(ratio for _, ratio in comparison.per_block) if comparison else (),
        margin=margin,
    )


def ratio_ticks(axis: Axis) -> tuple[Tick, ...]:
    """The labels of a ratio axis; where space is short every other one is hidden, but never 1."""
    texts = [(tick, ratio_tick(tick)) for tick in axis.ticks]
    one = axis.ticks.index(1.0) if 1.0 in axis.ticks else 0
    return tuple(
        Tick(at=round(axis.share(tick) * 100, 2), text=text, minor=(index - one) % 2 == 1)
        for index, (tick, text) in enumerate(texts)
    )


def _place(cell: CellStudy) -> tuple[float, bool]:
    """The sort key: fastest first; of equal displayed values, equivalent cells come last."""
    speed = 1.0 if cell.baseline is None else 0.0
    if cell.comparison is not None:
        speed = cell.comparison.speedup_ratio
    return -round(speed, 2), cell.twin is not None


def _lead(study: ScenarioResult, axis: Axis) -> str:
    margin = percent(study.measure.margin, 0)
    parts = [
        "Large dot and bar: estimate and 95 % interval.",
        "Small dots: the pairs of launches behind it.",
        f"Grey band: within ±{margin}, which counts as equivalent.",
        "Right of 1× is faster.",
    ]
    if axis.scale == "log":
        parts.append("The scale is logarithmic.")
    off = sum(not 0 <= axis.share(duel.comparison.speedup_ratio) <= 1 for duel in study.ranked)
    if off:
        parts.append("An arrow at the edge is a setting too far off to draw; its figure stands.")
    if any(_beyond(duel.cell, axis) for duel in study.ranked):
        parts.append("How many pairs lie beyond the axis stands under a setting's name.")
    if any(duel.comparison.launches_needed for duel in study.ranked):
        parts.append(DECIDES)
    return " ".join(parts)


def _beyond(cell: CellStudy, axis: Axis) -> str:
    """How many of a row's pairs are beyond the axis, and the range of all; empty if none are."""
    if cell.comparison is None or not 0 <= axis.share(cell.comparison.speedup_ratio) <= 1:
        # The row is an arrow, which the introduction explains.
        return ""
    ratios = [ratio for _, ratio in cell.comparison.per_block]
    off = sum(not 0 <= axis.share(ratio) <= 1 for ratio in ratios)
    if not off:
        return ""
    said = f"{off} of {count(len(ratios), 'pair')} beyond the axis"
    return f"{said}: {speedup(min(ratios))} to {speedup(max(ratios))}"


def _row(study: ScenarioResult, cell: CellStudy, axis: Axis, *, best: bool) -> IntervalRow:
    comparison = cell.comparison
    reference = cell.baseline is None
    verdict = verdict_word(comparison.verdict) if comparison else NO_BASELINE
    doubt, hit = _doubt(study, cell), disturbed_words(cell.summary)
    return IntervalRow(
        label=label(cell.cell),
        plot=plot_of(cell, margin=study.measure.margin),
        speedup=speedup(comparison.speedup_ratio) if comparison else ("1×" if reference else "–"),
        interval=compared_bounds(comparison),
        verdict=REFERENCE if reference else replace(verdict, tone="plain") if doubt else verdict,
        needed=to_decide(comparison.launches_needed) if comparison else "",
        note="; ".join(note for note in (twin_note(cell), doubt, hit, _beyond(cell, axis)) if note),
        best=best,
        baseline=reference,
        command=row_command(study, cell),
    )


def _doubt(study: ScenarioResult, cell: CellStudy) -> str:
    """A caveat for a verdict on a cell that repeats its baseline; empty for any other."""
    duel = next((one for one in study.ranked if one.cell is cell and one.is_itself), None)
    if duel is None or duel.comparison.verdict not in {"faster", "slower"}:
        return ""
    return "the difference is noise, or the variable itself"


def twin_note(cell: CellStudy) -> str:
    """The earlier cell with the same CPUs and threads on this host; empty if there is none."""
    if cell.twin is None:
        return ""
    name = compared_with(cell.cell, cell.twin)
    same_binding = binding_name(cell.cell) == binding_name(cell.twin)
    return f"same CPUs and threads as {'with ' if same_binding else ''}{name}"


def _unmeasured(study: ScenarioResult) -> tuple[Unmeasured, ...]:
    """The cells without a result, grouped by name and reason."""
    groups: dict[tuple[str, str, str, str], list[Cell]] = {}
    for cell in study.cells:
        if cell.is_measured:
            continue
        launch = cell.launches[-1]
        reason = launch.reason or "; ".join(launch.evidence) or "no reason was recorded."
        named = label(cell.cell)
        key = (named.name, launch.status, reason, mend_of(launch, cell.launches))
        groups.setdefault(key, []).append(cell.cell)
    return tuple(
        Unmeasured(
            label=replace(labels[0], more="; ".join(one.more for one in labels if one.more)),
            status=status,
            reason=reason,
            fix=fix,
            command=reproduce_command(study, cells),
        )
        for (_, status, reason, fix), cells in groups.items()
        for labels in [[label(cell) for cell in cells]]
    )


def _absent(study: ScenarioResult) -> str:
    tried = {cell.cell.key for cell in study.cells}
    missing = sum(1 for cell in study.planned if cell.key not in tried)
    if not missing:
        return ""
    asked = f" (--only {' '.join(study.run.only)})" if study.run.only else ""
    return f"{count(missing, 'cell')} of the scenario had no launch in this run{asked}."
