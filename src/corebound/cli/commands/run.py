"""`corebound run`: measure scenarios, or resume an interrupted run."""

import os
from collections.abc import Iterator, Sequence

from corebound.analysis.scenario_result import ScenarioResult
from corebound.cli.options import Output
from corebound.cli.output.console import Console
from corebound.cli.output.plan_notes import forecast_lines, plan_notes, variables_note
from corebound.cli.output.progress import TerminalReporter
from corebound.cli.output.sections import print_sections
from corebound.errors import InputError
from corebound.present.run import is_launched, run_sections
from corebound.workflow.execute import Reporter, RunResult
from corebound.workflow.host_checks import new_today
from corebound.workflow.prepare import PreparedRun
from corebound.workflow.run import SuiteRequest, decides_some, run_suite


def run(request: SuiteRequest, console: Console) -> Output:
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
    reporter = TerminalReporter(console, resume_command="corebound run --resume")
    result = run_suite(request, reporter, lambda prepared: _announce(prepared, request, reporter))
    judged = result.judged_by(request.metric)
    return Output(judged, lambda: print_run(judged, Console()), result.exit_code)


def _announce(prepared: PreparedRun, request: SuiteRequest, reporter: Reporter) -> None:
    """Print what a new run takes, and which variables it does not pass on."""
    for note in plan_notes([(task.scenario.name, task.planned) for task in prepared.tasks]):
        reporter.notify(note)
    if prepared.done:
        return
    for line in forecast_lines(
        prepared.forecasts,
        budget_s=request.budget_s,
        focuses=decides_some(prepared.run, request),
    ):
        reporter.notify(line)
    planned = [cell for task in prepared.tasks for cell in task.planned]
    dropped = variables_note(os.environ, planned)
    if dropped is not None and new_today({"variables": dropped}):
        reporter.notify(dropped)


def print_run(result: RunResult, console: Console) -> None:
    """Print one table for each scenario, then notes and the locations of files."""
    results = result.scenario_results()
    print_sections(run_sections(results, result.launches, result.calibrations()), console)
    if (snapshot := result.run.snapshot_in(result.environments)) is not None:
        what = f"Measured with uncommitted changes, {snapshot.name}: not part of the history."
        console.print_line(what)
    for line in _ending_lines(result, results):
        console.print_line(line)


def _ending_lines(result: RunResult, results: Sequence[ScenarioResult]) -> Iterator[str]:
    """What a run did not measure, and where its records are."""
    if not result.is_kept:
        yield "The budget ended before the first launch. Use a larger --budget."
        return
    unmeasured = [each.scenario.name for each in results if not is_launched(each)]
    if unmeasured:
        yield f"Not measured: {', '.join(unmeasured)}."
    if result.ending == "out of time":
        yield "The budget ran out. To continue: `corebound run --resume`."
    yield f"Records: {result.file}"
