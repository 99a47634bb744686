"""The results of a run: what `corebound run` and `show` print, its time, and a notebook's table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from corebound.analysis import wording
from corebound.analysis.duplicate_names import short_names
from corebound.analysis.launch_counts import launch_counts
from corebound.analysis.launch_modes import mode_notes
from corebound.analysis.noise_floor import calibration_for, noise_floor_note
from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.time_spent import TimeSpent, between_launches, time_spent
from corebound.analysis.unconfirmed import unconfirmed
from corebound.planning.models import UNKNOWN
from corebound.present import sections
from corebound.records.calibration import Calibration
from corebound.records.launch_record import Launch
from corebound.scenario.metrics import PEAK_MEMORY
from corebound.stats.launch_summary import CellSummary
from corebound.units import percent


def run_sections(
    results: Sequence[ScenarioResult],
    launches: Sequence[Launch],
    calibrations: Sequence[Calibration],
) -> Iterator[sections.Section]:
    """One table for each scenario that was launched, then what is said of the whole run.

    Args:
        results: The scenarios, with what is decided in all of them together.
    """
    compared = sum(cell.comparison is not None for result in results for cell in result.cells)
    is_calibrated = True
    for result in filter(is_launched, results):
        calibration = calibration_for(calibrations, result.run, result.source)
        is_time = not any(cell.cell.metric == PEAK_MEMORY for cell in result.cells)
        is_calibrated &= calibration is not None or not result.ranked or not is_time
        fewest = min((len(pair.cell.summary.launches) for pair in result.ranked), default=0)
        seen, floor = unconfirmed(result), noise_floor_note(calibration, launches=fewest)
        is_unknown = any(cell.placement and cell.placement.is_unknown for cell in result.cells)
        placed = UNKNOWN if is_unknown else ""
        notes = (seen.text if seen else "", *mode_notes(result), floor, placed)
        table = scenario_table(result, compared=compared)
        yield replace(table, notes=tuple(filter(None, notes)))
    if not is_calibrated:
        yield sections.Sentence(
            "Run `corebound calibrate` to see the smallest difference this host can detect."
        )
    yield sections.Sentence(f"{wording.capital(launch_counts(launches).says)}.")
    spent = time_spent(launches, results)
    yield time_sentence(spent, between_launches(launches, spent.values()))


def is_launched(result: ScenarioResult) -> bool:
    """Whether the run did not end before the first launch of a scenario."""
    return result.incomplete is None or result.incomplete.never < result.incomplete.of


def scenario_table(result: ScenarioResult, *, compared: int = 0) -> sections.Table:
    """A row for each configuration, in the order of the file, compared with its baseline.

    Args:
        compared: The number of comparisons that `result.decided` is corrected for; 0 if it is not.
    """
    metrics = [metric.name for metric in result.cells[0].cell.metrics] if result.cells else []
    axes = ", ".join(axis for axis, _ in result.cells[0].cell.visible_axes) if result.cells else ""
    return sections.Table(
        title=result.scenario.title,
        columns=(
            sections.Column(axes or "configuration", "long"),
            *(sections.Column(name, "number") for name in metrics or ("median",)),
            sections.Column("interval plot", "effects"),
            sections.Column("against the baseline", "number"),
            sections.Column("verdict", "long"),
        ),
        rows=tuple(_row(cell, result, compared) for cell in result.cells),
    )


def _row(cell: CellResult, result: ScenarioResult, compared: int) -> tuple[sections.Value, ...]:
    summary, comparison = cell.summary, cell.comparison
    ratio: sections.Value = ""
    if comparison is not None:
        ratio = sections.Ratio(
            wording.relative_speed(comparison.speedup_ratio, words=cell.cell.words),
            wording.compared_bounds(comparison),
        )
    elif cell.bound:
        ratio = cell.bound.removesuffix(" than the baseline")
    return (
        short_names((cell.cell, *cell.duplicates)) if cell.duplicates else cell.cell.label,
        sections.Duration(summary.median_ns, summary.interval, cell.cell),
        *map(_reported, cell.reported[1:]),
        sections.Change(comparison, cell.cell.words, result.measure.margin),
        ratio,
        sections.Marked(
            word=_word(cell), notes=tuple(filter(None, _notes(cell, result, compared)))
        ),
    )


def _reported(other: CellSummary) -> str:
    """A metric that does not decide, with its interval."""
    value = wording.value_text(other.median_ns, other.cell)
    bounds = wording.value_bounds(other.interval, other.cell, other.median_ns)
    return f"{value} ({bounds})" if bounds else value


def _word(cell: CellResult) -> wording.VerdictWord:
    if cell.summary.median_ns is None:
        return wording.NOT_MEASURED
    if cell.comparison is not None:
        return wording.verdict_word(cell.comparison.verdict, cell.cell.words)
    return wording.REFERENCE if cell.baseline is None else wording.NO_BASELINE


def _notes(cell: CellResult, result: ScenarioResult, compared: int) -> Iterable[str]:
    """What is said beside a verdict: how launches failed, and why not to rely on it."""
    if cell.summary.median_ns is None:
        return (
            "too slow for this budget" if status == "dropped" else status
            for status, _ in cell.summary.counts
        )
    verdict = cell.comparison.verdict if cell.comparison else None
    is_doubtful = verdict in {"faster", "slower"} and cell.cell.id not in result.decided
    return (
        wording.open_note(cell.comparison, result.open_reason(cell)),
        f"not significant among {compared} comparisons" if compared and is_doubtful else "",
        launch_counts(cell.launches).note,
    )


_NAMES = {
    "start_up": "start-up",
    "warm_up": "warm-up",
    "measuring": "measuring",
    "discarded": "discarded launches",
    "profiling": "profiling",
    "between": "between launches",
}


def time_sentence(spent: Mapping[str, TimeSpent], between: TimeSpent) -> sections.Sentence:
    """The parts of the whole run: `Time: 61 % start-up, 8 % warm-up, 31 % measuring.`"""
    whole = sum(spent.values(), between)
    parts = (f"{_share(part, whole)} {name}" for part, name in _NAMES.items() if whole[part])
    return sections.Sentence(f"Time: {', '.join(parts) or 'none'}.")


def time_table(spent: Mapping[str, TimeSpent], between: TimeSpent) -> sections.Table:
    """The parts of each scenario's time and of the whole run's, where there are any."""
    whole = sum(spent.values(), between)
    rows = {**spent, "the run": whole} if len(spent) > 1 or between.total() else spent
    shown = [part for part in _NAMES if whole[part]]
    return sections.Table(
        title="Where the time went",
        columns=(
            sections.Column("scenario"),
            sections.Column("total", "number"),
            *(sections.Column(_NAMES[part], "number") for part in shown),
        ),
        rows=tuple(
            (name, wording.total_time(own.total()), *(_share(part, own) for part in shown))
            for name, own in rows.items()
        ),
    )


def _share(part: str, whole: TimeSpent) -> str:
    return percent(whole[part] / whole.total(), 0) if whole[part] else "–"
