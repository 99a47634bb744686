"""`corebound calibrate` without a terminal: a scenario's baseline measured against itself.

A calibration yields the noise floor: the smallest difference that this host can detect.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from corebound.analysis.noise_floor import noise_floor_notes
from corebound.errors import NO_ANSWER
from corebound.planning.plan import PlannedCell
from corebound.records import documents, jsonl
from corebound.records.calibration import Calibration
from corebound.records.run_record import EnvironmentLock, Run, ScenarioSource
from corebound.runner import Task
from corebound.scenario.cell import PROJECT, Cell, cell_identity, is_project
from corebound.scenario.matrix import baseline_of
from corebound.stats.noise_floor import COPIES, COPY_AXIS, LEAST_PAIRS, calibrated
from corebound.workflow.execute import Reporter, RunResult, execute_run, hold_host_for
from corebound.workflow.forecast import announced
from corebound.workflow.host_checks import preflight
from corebound.workflow.plan import plan_suite
from corebound.workflow.prepare import PreparedRun, RunRequest, plan_run
from corebound.workflow.scenarios import LoadedScenario, load_scenarios


class CalibrateRequest(RunRequest, frozen=True, kw_only=True):
    """What `corebound calibrate` measures."""

    options: ClassVar = ("files", "profile", "budget_s", "seed", "wait_s", "records")


class CalibrateResult(Struct, frozen=True, kw_only=True):
    """The noise of each scenario's baseline on this host.

    Attributes:
        calibrations: One for each scenario with enough launches.
        run: The launches of both copies of each baseline.
    """

    calibrations: tuple[Calibration, ...]
    run: RunResult

    @property
    def exit_code(self) -> int:
        """What the command exits with: as the run; without a calibration there is no answer."""
        return self.run.exit_code or (0 if self.calibrations else NO_ANSWER)

    @property
    def document(self) -> list[dict[str, Any]]:
        """The calibrations as plain data, as `corebound calibrate --json` prints them."""
        return [
            {**cell_identity(each.scenario, each.cell), **to_builtins(each)}
            for each in self.calibrations
        ]


def calibrate_scenarios(request: CalibrateRequest, reporter: Reporter) -> CalibrateResult:
    """Measure each scenario's baseline against itself, and store the calibrations.

    Args:
        request: The scenarios; all their cells are loaded.
        reporter: Shows the progress, and scenarios with too few launches.
    """
    with hold_host_for(request, reporter.notify, lambda: plan_suite(request)) as budget:
        prepared = announced(_prepare(request, reporter), request, reporter.notify)
        result = execute_run(preflight(prepared, reporter), budget, reporter)
    calibrations = []
    for source in result.run.scenarios:
        name = source.document["name"]
        launches = [launch for launch in result.launches if launch.cell.scenario == name]
        calibration = calibrated(result.run, source, launches)
        if calibration is None:
            reporter.notify(f"{name}: fewer than {LEAST_PAIRS} pairs of launches succeeded.")
        else:
            documents.CALIBRATIONS.keep(calibration, request.records)
            calibrations.append(calibration)
    return CalibrateResult(calibrations=tuple(calibrations), run=result)


def _prepare(request: RunRequest, reporter: Reporter) -> PreparedRun:
    """Prepare a run with two copies of each baseline, in a folder beside the nightly runs."""
    loaded = load_scenarios(request.files, request.only, request.profile)
    baselines = tuple(replace(scenario, cells=(_baseline(scenario),)) for scenario in loaded)
    run, tasks = plan_run(baselines, request, reporter.notify)
    return PreparedRun(
        run=run,
        file=jsonl.file_of(run, documents.CALIBRATIONS.folder(request.records)),
        tasks=tuple(_duplicate_cells(task) for task in tasks),
    )


def _baseline(loaded: LoadedScenario) -> Cell:
    """The cell to calibrate a scenario with: the baseline of its first cell, or that cell."""
    return baseline_of(loaded.cells[0], loaded.cells, loaded.scenario) or loaded.cells[0]


def _duplicate_cells(task: Task) -> Task:
    """Duplicate every cell, with the largest number of launches that its profile allows.

    The copies differ only in name: they are placed, launched and compared like any two cells.
    """
    return Task(
        # Without an explicit baseline, the first cell is the baseline.
        scenario=task.scenario.model_copy(update={"baseline": None}),
        planned=tuple(_copy(planned, name) for planned in task.planned for name in COPIES),
    )


def _copy(planned: PlannedCell, name: str) -> PlannedCell:
    launches = planned.measure.launches
    maximum = launches.model_copy(update={"min": launches.max})
    return replace(
        planned,
        cell=replace(planned.cell, axes=(*planned.cell.axes, (COPY_AXIS, name))),
        measure=planned.measure.model_copy(update={"launches": maximum}),
    )


def noise_notes(
    records: Path,
    run: Run,
    sources: Iterable[ScenarioSource],
    *,
    launches: int,
    own_margin: bool = True,
) -> tuple[str, ...]:
    """The noise floor of each calibrated scenario: `parsing: Noise floor …`.

    Empty without launches, because there are no verdicts then.

    Args:
        sources: Its scenarios without the two sides, which is the form that was calibrated.
        launches: The smallest number of launches of a side behind the verdicts.
        own_margin: Whether the verdicts use the same margin as the calibration.
    """
    if not launches:
        return ()
    as_calibrated = replace(
        run, scenarios=tuple(sources), environments=_plain_environments(run.environments)
    )
    calibrations, _ = documents.CALIBRATIONS.read(records)
    notes = noise_floor_notes(calibrations, as_calibrated, launches=launches)
    suffix = "" if own_margin else " This uses the scenario's own margin."
    return tuple(f"{note}{suffix}" for note in notes)


def _plain_environments(locks: Sequence[EnvironmentLock]) -> tuple[EnvironmentLock, ...]:
    """Replace the names of commits' environments with the project's; the base's packages count."""
    return tuple(replace(lock, name=PROJECT) if is_project(lock.name) else lock for lock in locks)
