"""Plan and measure in Python: functions, scenarios, their noise, or a recorded result again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar

from msgspec.structs import asdict

from corebound.api import comparison as compared
from corebound.api.arguments import Budget
from corebound.api.comparison import Comparison
from corebound.api.reporter import CallReporter
from corebound.api.results import Results, RunReader, of_files
from corebound.errors import InputError
from corebound.present.shown import Shown
from corebound.records.calibration import Calibration
from corebound.records.jsonl import RECORDS, Stored
from corebound.scenario.models import ProfileName
from corebound.workflow.calibrate import CalibrateRequest, CalibrateResult, calibrate_scenarios
from corebound.workflow.execute import RunResult
from corebound.workflow.measure_functions import (
    FunctionRequest,
    describe_function,
    measure_functions,
)
from corebound.workflow.options import request_of
from corebound.workflow.plan import PlanRequest, RunPlan, plan_suite
from corebound.workflow.projects import CONFIG
from corebound.workflow.reproduce import ReproduceRequest, ReproduceResult, reproduce_result
from corebound.workflow.run import SuiteRequest, run_suite


class Measurement(Comparison, frozen=True, kw_only=True):
    """The comparison of functions or of commits, with its launches.

    Attributes:
        results: The run: `results.launches()`, `results.iterations()` and so on.
    """

    results: Results


def measure(
    *functions: Callable[[], object],
    names: Sequence[str] | None = None,
    setup: bool = False,
    budget_s: Budget = 30.0,
    margin: float = 0.02,
    launches: tuple[int, int] = (6, 30),
    settings: Mapping[str, Any] | None = None,
    records: str | PathLike[str] | None = None,
    wait_s: float = 60.0,
    notify: Callable[[str], object] | None = None,
) -> Measurement:
    """Compare functions with the first of them, in fresh processes that alternate.

    Each launch is a new process of this interpreter, with this `sys.path` and working directory.
    A function of a module is imported there, so that the file on disk is measured. A function of a
    notebook or of the script itself, a lambda and a `functools.partial` are sent by value, with
    cloudpickle.

    Args:
        functions: At least two, called without arguments; the first is the baseline. Each call is
            one iteration, and should take more than a few microseconds: timing a call costs 0.1.
        names: Their names in the results; by default those of the functions.
        setup: Whether each function is called once and returns the step to time, like the
            workload of a scenario: for models and data.
        budget_s: End after this many seconds.
        margin: The largest share that counts as equal: 0.02 is ±2 %.
        launches: The least and the most launches of each function.
        settings: Other keys of a scenario, such as
            `{"binding": "one-cpu", "threads": 1, "env": {"HF_HOME": "/data"}}`.
        records: A folder of records to keep the run in; by default it is not kept.
        wait_s: How long to wait for another run on this host, in seconds.
        notify: Called with each line about the progress; `print` shows them.

    Returns:
        One row for each function but the first; `verdict`, `speedup_ratio` and
        `speedup_interval` are those of the only row.

    Raises:
        InputError: A function cannot be sent to another process, or an argument is invalid.
        LaunchError: A function failed.
        HostError: Another run held the host for longer than `wait_s`.
    """
    if "COREBOUND_MEASURES" in os.environ:
        raise InputError(
            what="a function that is being measured started another measurement.",
            where="corebound.measure",
            fix='Call measure() below `if __name__ == "__main__":`.',
        )
    if names is not None and len(names) != len(functions):
        raise InputError(
            what=f"{len(names)} names for {len(functions)} functions.",
            where="corebound.measure",
            fix="Pass a name for each function.",
        )
    described = [
        describe_function(function, names[index] if names is not None else None)
        for index, function in enumerate(functions)
    ]
    request = request_of(FunctionRequest, locals())
    return measurement_of(measure_functions(described, request, CallReporter(notify)))


def run(
    *files: str | PathLike[str],
    profile: ProfileName | None = None,
    only: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    budget_s: Budget | None = None,
    seed: int | None = None,
    resume: bool = False,
    operators: bool = True,
    launches: int | None = None,
    favour_doubtful: bool = False,
    config: str | PathLike[str] = CONFIG,
    project_python: str | PathLike[str] | None = None,
    committed: bool = False,
    label: Mapping[str, str] | None = None,
    anchor: Sequence[str] = (),
    records: str | PathLike[str] = RECORDS,
    unlocked: bool = False,
    wait_s: float = 60.0,
    notify: Callable[[str], object] | None = None,
) -> Results:
    """Measure scenarios, as `corebound run` does.

    Args:
        files: Scenario files, or folders of them.
        profile: `quick` or `nightly`; None uses the scenarios' own numbers.
        only: The cells to select, such as `binding=none,threads=2`.
        env: Environment variables of the workloads, by name.
        budget_s: End after this many seconds; None is no limit.
        seed: The seed of the order and of random data; None picks one.
        resume: Whether to continue the latest interrupted run; of these files, if there are some.
        operators: Whether to profile operators in scenarios that request it.
        launches: The launches of each cell; None uses the scenarios' own numbers.
        favour_doubtful: Whether to spend more time on inconclusive cells.
        config: The asv.conf.json of the project under test.
        project_python: An interpreter in which the project under test is installed already.
        committed: Whether to measure HEAD, without uncommitted changes.
        label: Labels for the run's record, by name: `{"rack": "a7"}`.
        anchor: The pinned commit to alternate with; while it moves, the new one and the old one.
        records: The folder of records, where the run is kept.
        unlocked: Whether to measure even if another run is active.
        wait_s: How long to wait for another run on this host, in seconds.
        notify: Called with each line about the progress; `print` shows them.

    Returns:
        The run. Launches that failed are in its `launches()`, with the reason.

    Raises:
        ScenarioFaults: A file has mistakes; `faults` lists all of them.
        InputError: A variable or a label is invalid, or there is no run to continue.
        HostError: Another run held the host for longer than `wait_s`.
        CoreboundError: The environments do not allow the run.
    """
    request = request_of(SuiteRequest, locals())
    return _results_of(run_suite(request, CallReporter(notify)))


def plan(
    *files: str | PathLike[str],
    sysfs: str | PathLike[str] | None = None,
    profile: ProfileName | None = None,
    only: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    budget_s: Budget | None = None,
    config: str | PathLike[str] = CONFIG,
    project_python: str | PathLike[str] | None = None,
    records: str | PathLike[str] = RECORDS,
) -> RunPlan:
    """Plan scenarios on this host without launching anything, as `corebound plan` does.

    Args:
        files: Scenario files, or folders of them.
        sysfs: A saved machine, as for `topology`: then the duration is unknown and 0.
        profile: `quick` or `nightly`; None uses the scenarios' own numbers.
        only: The cells to select, such as `binding=none,threads=2`.
        env: Environment variables of the workloads, by name.
        budget_s: The time limit of the run, in seconds; None is no limit.
        config: The asv.conf.json of the project under test.
        project_python: An interpreter in which the project under test is installed already.
        records: The folder of records; the last run of a scenario tells how long it takes.

    Raises:
        ScenarioFaults: A file has mistakes; `faults` lists all of them.
        InputError: A file cannot be read, or an environment or commit does not exist.
    """
    request = request_of(PlanRequest, locals())
    return plan_suite(request, request.sysfs)


class Calibrations(Shown, CalibrateResult, frozen=True, kw_only=True):
    """The noise of each scenario's baseline on this host.

    Attributes:
        calibrations: One for each scenario with enough launches. The `noise` of each has, for a
            number of launches, `floor_ratio` (0.02 is ±2 %), `false_alarm_rate` and
            `detectable_ratio`.
        results: All launches, of both copies of each baseline.
    """

    shown: ClassVar = ("scenario", "cell", "noise")

    results: Results

    def __len__(self) -> int:
        """The number of calibrated scenarios."""
        return len(self.calibrations)

    def __iter__(self) -> Iterator[Calibration]:
        """Every calibration."""
        return iter(self.calibrations)


def calibrate(
    *files: str | PathLike[str],
    profile: ProfileName | None = None,
    budget_s: Budget | None = None,
    seed: int | None = None,
    records: str | PathLike[str] = RECORDS,
    wait_s: float = 60.0,
    notify: Callable[[str], object] | None = None,
) -> Calibrations:
    """Measure the baseline of each scenario against itself, as `corebound calibrate` does.

    Args:
        files: Scenario files, or folders of them.
        profile: `quick` or `nightly`; None uses the scenarios' own numbers.
        budget_s: End after this many seconds; None is no limit.
        seed: The seed of the order; None picks one.
        records: The folder of records, where the calibrations are kept.
        wait_s: How long to wait for another run on this host, in seconds.
        notify: Called with each line about the progress; `print` shows them.

    Raises:
        ScenarioFaults: A file has mistakes; `faults` lists all of them.
        CoreboundError: The environments or the host do not allow the run.
    """
    result = calibrate_scenarios(request_of(CalibrateRequest, locals()), CallReporter(notify))
    return Calibrations(**asdict(result), results=of_files([result.run.file]))


class Reproduction(Shown, ReproduceResult, frozen=True, kw_only=True):
    """Whether a recorded result holds.

    Attributes:
        margin: The largest share that counts as equal.
        differences: What differs in the host and the environment; empty unless `anyway`.
        results: The recorded run, and the new one.
    """

    shown: ClassVar = (
        "scenario", "cell", "holds", "verdict", "slowdown_ratio", "slowdown_interval",
        "differences",
    )  # fmt: skip

    results: Results


def reproduce(
    record: str | PathLike[str],
    cell: str | None = None,
    *,
    launches: int | None = None,
    anyway: bool = False,
    config: str | PathLike[str] = CONFIG,
    records: str | PathLike[str] = RECORDS,
    unlocked: bool = False,
    wait_s: float = 60.0,
    notify: Callable[[str], object] | None = None,
) -> Reproduction:
    """Measure a recorded result again under the same conditions, as `corebound reproduce` does.

    Args:
        record: The file of a run, or the start of its id; `ID:CELL` names the cell, too.
        cell: The key or the id of the cell, if the run has several.
        launches: The number of launches; None uses as many as were recorded.
        anyway: Whether to measure even if the host or the environment differs.
        config: The asv.conf.json of the project under test.
        records: The folder of records.
        unlocked: Whether to measure even if another run is active.
        wait_s: How long to wait for another run on this host, in seconds.
        notify: Called with each line about the progress; `print` shows them.

    Raises:
        InputError: No run or no cell matches, or several do.
        HostError: The host or the environment differs, or the commit is not available.
        LaunchError: No launch succeeded.
    """
    request = request_of(ReproduceRequest, locals(), record=str(record))
    result = reproduce_result(request, CallReporter(notify))
    return Reproduction(**asdict(result), results=of_files(result.records))


def _results_of(result: RunResult) -> Results:
    stored = Stored(file=result.file, run=result.run, launches=result.launches, faults=())
    return Results([RunReader(run=result.run, read=lambda: stored)])


def measurement_of(result: RunResult) -> Measurement:
    """The comparison of a run with one scenario."""
    (scenario_result,) = result.scenario_results()
    comparison = compared.of_baselines(scenario_result)
    return Measurement(**asdict(comparison), results=_results_of(result))
