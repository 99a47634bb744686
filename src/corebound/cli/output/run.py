"""The output of `corebound run`: tables and JSON, and the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins
from rich.table import Table
from rich.text import Text

from corebound import units
from corebound.analysis.launch_metrics import disturbed_words
from corebound.analysis.noise_floor import calibration_for, noise_at, noise_words
from corebound.analysis.scenario_result import CellStudy, ScenarioResult, findings, study
from corebound.analysis.serialize import cell_document, findings_document
from corebound.analysis.wording import NO_BASELINE, compared_bounds
from corebound.cli.output.json import indented
from corebound.cli.output.terminal import Console
from corebound.errors import NO_ANSWER, HostError, LaunchError
from corebound.planning.models import CannotRun
from corebound.records import documents
from corebound.records.calibration import Calibration, Noise
from corebound.records.launch_record import Kind, Launch
from corebound.records.run_record import Run
from corebound.runner import Ending
from corebound.stats.comparison import Comparison, Verdict
from corebound.stats.interference import is_refused
from corebound.stats.multiplicity import suite_findings

# The sign in front of each verdict on a terminal.
SIGNS: dict[Verdict, str] = {"faster": "▲", "slower": "▼", "equivalent": "=", "undecided": "?"}


class RunResult(Struct, frozen=True, kw_only=True):
    """A finished or interrupted run, and the reasons why cells were not launched."""

    run: Run
    file: Path
    launches: tuple[Launch, ...]
    ending: Ending
    unfit: tuple[CannotRun, ...] = ()


def exit_code(told: RunResult) -> int:
    """The exit code of a run; launches refused because of a disturbance do not count.

    4 if a launch failed, timed out or was discarded, or an environment could not be built; else 3
    if the host can hold no cell or an environment does not exist; else 5 if the time ran out
    before anything was measured; else 0.
    """
    statuses = {launch.status for launch in told.launches if not is_refused(launch)}
    causes = {one.cause for one in told.unfit}
    if statuses & {"failed", "timed-out", "invalid"} or "build" in causes:
        return LaunchError.exit_code
    holds_none = statuses == {"skipped"} and told.ending == "complete"
    if holds_none or "environment" in causes:
        return HostError.exit_code
    is_too_short = told.ending == "out of time" and "ok" not in statuses
    return NO_ANSWER if is_too_short else 0


def studies(told: RunResult) -> Iterator[ScenarioResult]:
    """The result of each scenario of the run."""
    for source in told.run.scenarios:
        yield study(told.run, source, told.launches)


def show(told: RunResult, console: Console) -> None:
    """Print one table for each scenario, then the locations of files."""
    every = tuple(studies(told))
    differing = _differing(every)
    known = _calibrations(told)
    for one in every:
        console.print(_table(one, differing))
        own = calibration_for(known, one.run, one.source)
        if floor := noise_words(own, launches=_fewest(one)):
            console.print(Text(floor))
    if any(one.ranked and not calibration_for(known, one.run, one.source) for one in every):
        console.print(Text("How much of a difference is noise here, `corebound calibrate` says."))
    if alone := sum(
        _is_telling(cell) and cell.cell.id not in differing for one in every for cell in one.cells
    ):
        compared = sum(cell.comparison is not None for one in every for cell in one.cells)
        rows = "One row" if alone == 1 else f"{alone} rows"
        said = f"{rows} in brackets: so by itself; of {compared} comparisons some are by chance."
        console.print(Text(said))
    counts = _counts(told, "measure")
    said = ", ".join(f"{number} {status}" for status, number in counts.items())
    if profiled := _counts(told, "profile"):
        said += "; operators: "
        said += ", ".join(f"{number} {status}" for status, number in profiled.items())
    console.print(Text(said))
    if (snapshot := told.run.snapshot_in(_environments(told))) is not None:
        console.print(
            Text(f"Measured with uncommitted changes, {snapshot.name}: not part of the history."),
            soft_wrap=True,
        )
    if told.ending == "out of time":
        console.print(Text("The budget ran out. Go on with `corebound run --resume`."))
    console.print(Text(f"Records: {told.file}"), soft_wrap=True)


def verdict_of(compared: Comparison) -> str:
    """A verdict for a table; an inconclusive one includes the launches needed."""
    needed = compared.launches_needed if compared.verdict == "undecided" else None
    said = f"{SIGNS[compared.verdict]} {compared.verdict}"
    return said if needed is None else f"{said}, ~{needed} launches"


def _environments(told: RunResult) -> set[str]:
    return {one.cell.environment for one in told.launches}


def _calibrations(told: RunResult) -> tuple[Calibration, ...]:
    """The calibrations in the records that hold the run."""
    return documents.read_calibrations(told.file.parent.parent)[0]


def _fewest(one: ScenarioResult) -> int:
    """The smallest number of launches behind a verdict of the scenario."""
    return min((len(duel.cell.summary.launches) for duel in one.ranked), default=0)


def _counts(told: RunResult, kind: Kind) -> dict[str, int]:
    return dict(Counter(launch.status for launch in told.launches if launch.kind == kind))


def _differing(every: Iterable[ScenarioResult]) -> frozenset[str]:
    """The ids of cells that differ from their baseline, after correction across the whole run."""
    cells = [cell for one in every for cell in one.cells]
    found = suite_findings([cell.comparison for cell in cells])
    return frozenset(cell.cell.id for cell, is_one in zip(cells, found, strict=True) if is_one)


def _is_telling(cell: CellStudy) -> bool:
    return cell.comparison is not None and cell.comparison.verdict in {"faster", "slower"}


def _table(one: ScenarioResult, differing: frozenset[str]) -> Table:
    table = Table(title=one.scenario.title, title_justify="left", box=None, padding=(0, 1))
    axes = ", ".join(axis for axis, _ in one.cells[0].cell.visible_axes) if one.cells else ""
    table.add_column(axes or "cell", overflow="fold")
    for heading in ("median", "speed-up"):
        table.add_column(heading, justify="right", no_wrap=True)
    # Long remarks wrap here, so that names, values and plain verdicts stay on one line.
    table.add_column("95 %", justify="right", min_width=len("[0.85, 1.15]"))
    table.add_column("verdict", min_width=len("= equivalent"))
    for cell in one.cells:
        table.add_row(*_row(cell, differing))
    return table


def _row(cell: CellStudy, differing: frozenset[str]) -> tuple[str, str, str, str, str]:
    median_ns, compared, label = cell.summary.median_ns, cell.comparison, cell.cell.label
    if median_ns is None:
        return label, "–", "–", "–", ", ".join(status for status, _ in cell.summary.counts)
    hit = disturbed_words(cell.summary)
    if compared is None:
        word = "baseline" if cell.baseline is None else NO_BASELINE.word
        return label, units.duration(median_ns), "", "", "; ".join(filter(None, (word, hit)))
    word = "; ".join(filter(None, (verdict_of(compared), hit)))
    return (
        label,
        units.duration(median_ns),
        units.ratio(compared.speedup_ratio),
        compared_bounds(compared) or "–",
        f"({word})" if _is_telling(cell) and cell.cell.id not in differing else word,
    )


def as_json(told: RunResult) -> str:
    """Render everything that `show` prints as JSON."""
    every = tuple(studies(told))
    differing, known = _differing(every), _calibrations(told)
    snapshot = told.run.snapshot_in(_environments(told))
    document: dict[str, Any] = {
        "run": told.run.id,
        "records": str(told.file),
        "ending": told.ending,
        "commit": to_builtins(told.run.commit),
        "snapshot": snapshot.name if snapshot is not None else None,
        "launches": _counts(told, "measure"),
        "profiles": _counts(told, "profile"),
        "cells": [
            cell_document(
                cell,
                told.run.host,
                is_finding=cell.cell.id in differing,
                noise=_noise(cell, calibration_for(known, one.run, one.source)),
            )
            for one in every
            for cell in one.cells
        ],
        "findings": [
            {"scenario": one.scenario.name, **finding}
            for one in every
            for finding in findings_document(findings(one))
        ],
    }
    return indented(document)


def _noise(cell: CellStudy, calibration: Calibration | None) -> Noise | None:
    if calibration is None or cell.comparison is None:
        return None
    return noise_at(calibration, len(cell.summary.launches))
