"""`corebound run`: measure scenarios, or resume an interrupted run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import typer
from rich.table import Table
from rich.text import Text

from corebound import units
from corebound.analysis.duplicate_names import short_names
from corebound.analysis.launch_metrics import disturbed_note, launch_counts
from corebound.analysis.launch_modes import mode_notes
from corebound.analysis.noise_floor import calibration_for, noise_floor_note
from corebound.analysis.recommendation import unconfirmed
from corebound.analysis.scenario_result import CellResult, ScenarioResult
from corebound.analysis.time_spent import between_launches, time_spent
from corebound.analysis.wording import (
    NO_BASELINE,
    capital,
    compared_bounds,
    open_note,
    relative_speed,
    verdict_word,
)
from corebound.cli.options import Json, Quiet
from corebound.cli.output.console import Console, print_table
from corebound.cli.output.json import print_json
from corebound.cli.output.plan_notes import (
    forecast_lines,
    plan_notes,
    variables_note,
)
from corebound.cli.output.progress import TerminalReporter
from corebound.cli.output.sections import print_sections
from corebound.errors import InputError
from corebound.present.time_spent import time_sentence
from corebound.stats.comparison import Comparison
from corebound.workflow.execute import Reporter, RunResult
from corebound.workflow.host_checks import new_today
from corebound.workflow.prepare import PreparedRun
from corebound.workflow.run import SuiteRequest, run_suite


def run(request: SuiteRequest, *, quiet: Quiet = False, as_json: Json = False) -> None:
    """Measure every cell of the scenarios.

    Cells run in random order, block by block. Each launch is recorded as it ends.

    Examples:
        corebound run scenarios/
        corebound run hashing.yaml --profile quick --only threads=1
        corebound run --resume
    """
    if not request.files and not request.resume:
        raise InputError(
            what="no scenario named.",
            where="corebound run",
            fix="Name scenario files or folders, or pass --resume to continue the latest run.",
        )
    reporter = TerminalReporter(
        Console(stderr=True, quiet=quiet), resume_command="corebound run --resume"
    )
    result = run_suite(request, reporter, lambda prepared: _announce(prepared, request, reporter))
    if as_json:
        print_json(result.document)
    else:
        print_run(result, Console())
    raise typer.Exit(result.exit_code)


def _announce(prepared: PreparedRun, request: SuiteRequest, reporter: Reporter) -> None:
    """Print what a new run takes, and which variables it does not pass on."""
    for note in plan_notes([(task.scenario.name, task.planned) for task in prepared.tasks]):
        reporter.notify(note)
    if prepared.done:
        return
    for line in forecast_lines(prepared.forecasts, budget_s=request.budget_s):
        reporter.notify(line)
    planned = [cell for task in prepared.tasks for cell in task.planned]
    dropped = variables_note(os.environ, planned)
    if dropped is not None and new_today({"variables": dropped}):
        reporter.notify(dropped)


def print_run(result: RunResult, console: Console) -> None:
    """Print one table for each scenario, then notes and the locations of files."""
    results = result.scenario_results()
    calibrations = result.calibrations()
    for scenario_result in results:
        if _is_unmeasured(scenario_result):
            continue
        print_table(_table(scenario_result), console)
        calibration = calibration_for(calibrations, scenario_result.run, scenario_result.source)
        floor = noise_floor_note(calibration, launches=_fewest_launches(scenario_result))
        seen = unconfirmed(scenario_result)
        notes = (seen.text if seen else "", *mode_notes(scenario_result), floor)
        for note in filter(None, notes):
            # Not wrapped, so that a command can be copied.
            console.print(Text(note), soft_wrap=True)
    if any(
        scenario_result.ranked
        and not calibration_for(calibrations, scenario_result.run, scenario_result.source)
        for scenario_result in results
    ):
        console.print(
            Text("Run `corebound calibrate` to see the smallest difference this host can detect.")
        )
    cells = [cell for scenario_result in results for cell in scenario_result.cells]
    decided = {cell for scenario_result in results for cell in scenario_result.decided}
    if any(_differs_by_itself(cell) and cell.cell.id not in decided for cell in cells):
        compared = sum(cell.comparison is not None for cell in cells)
        console.print(
            Text(f"Brackets: not significant after correcting for {compared} comparisons.")
        )
    console.print(Text(f"{capital(launch_counts(result.launches).says)}."))
    spent = time_spent(result.launches, results)
    between = between_launches(result.launches, spent.values())
    print_sections([time_sentence(spent, between)], console)
    if (snapshot := result.run.snapshot_in(result.environments)) is not None:
        console.print(
            Text(f"Measured with uncommitted changes, {snapshot.name}: not part of the history."),
            soft_wrap=True,
        )
    for line in _ending_lines(
        result, [one.scenario.name for one in filter(_is_unmeasured, results)]
    ):
        console.print(Text(line), soft_wrap=True)


def _ending_lines(result: RunResult, unmeasured: Sequence[str]) -> Iterator[str]:
    """What a run did not measure, and where its records are."""
    if not result.is_kept:
        yield "The budget ended before the first launch. Use a larger --budget."
        return
    if unmeasured:
        yield f"Not measured: {', '.join(unmeasured)}."
    if result.ending == "out of time":
        yield "The budget ran out. To continue: `corebound run --resume`."
    yield f"Records: {result.file}"


def _is_unmeasured(result: ScenarioResult) -> bool:
    """Whether the run ended before the first launch of a scenario."""
    return result.incomplete is not None and result.incomplete.never == result.incomplete.of


def _fewest_launches(result: ScenarioResult) -> int:
    """The smallest number of launches behind a verdict of the scenario."""
    return min((len(pair.cell.summary.launches) for pair in result.ranked), default=0)


def _differs_by_itself(cell: CellResult) -> bool:
    return cell.comparison is not None and cell.comparison.verdict in {"faster", "slower"}


def _table(result: ScenarioResult) -> Table:
    table = Table(title=result.scenario.title, title_justify="left", box=None, padding=(0, 1))
    axes = ", ".join(axis for axis, _ in result.cells[0].cell.visible_axes) if result.cells else ""
    table.add_column(axes or "cell", overflow="fold")
    for heading in ("median", "vs. baseline"):
        table.add_column(heading, justify="right", no_wrap=True)
    # Long remarks wrap here, so that names, values and plain verdicts stay on one line.
    table.add_column("95 % CI", justify="right", min_width=len("−15 to +15 %"))
    table.add_column("verdict", min_width=len("? inconclusive"))
    for cell in result.cells:
        table.add_row(*_row(cell, result.decided))
    return table


def _verdict(comparison: Comparison) -> str:
    needed = open_note(comparison)
    return ", ".join(filter(None, (verdict_word(comparison.verdict).text, needed)))


def _row(cell: CellResult, decided: frozenset[str]) -> Sequence[str]:
    median_ns, comparison = cell.summary.median_ns, cell.comparison
    label = short_names((cell.cell, *cell.duplicates)) if cell.duplicates else cell.cell.label
    if median_ns is None:
        statuses = ", ".join(
            "too slow for this budget" if status == "dropped" else status
            for status, _ in cell.summary.counts
        )
        bound = cell.bound.removesuffix(" than the baseline")
        return label, "–", bound or "–", "–", statuses
    disturbed = disturbed_note(cell.summary)
    if comparison is None:
        word = "baseline" if cell.baseline is None else NO_BASELINE.word
        return label, units.duration(median_ns), "", "", "; ".join(filter(None, (word, disturbed)))
    verdict = "; ".join(filter(None, (_verdict(comparison), disturbed)))
    if _differs_by_itself(cell) and cell.cell.id not in decided:
        verdict = f"({verdict})"
    return (
        label,
        units.duration(median_ns),
        relative_speed(comparison.speedup_ratio),
        compared_bounds(comparison) or "–",
        verdict,
    )
