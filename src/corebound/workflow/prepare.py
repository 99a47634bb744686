"""Prepare a run: a new run, an interrupted run, or a comparison, with its tasks in order."""

import hashlib
import json
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from msgspec import Struct, field
from msgspec.structs import replace

from corebound import __version__, clock
from corebound.analysis.forecast import Forecast
from corebound.analysis.scenario_result import CellResult, ScenarioResult, analyse_scenario
from corebound.errors import CoreboundError, Fault, InputError, ScenarioFaults, collect_fault
from corebound.launch.environments import Environment
from corebound.machine import discovery, identity
from corebound.planning.host_support import HostCapabilities
from corebound.planning.models import CannotRun
from corebound.planning.plan import PlannedCell
from corebound.records import commits, jsonl
from corebound.records.jsonl import RECORDS
from corebound.records.launch_record import Launch
from corebound.records.run_record import LABEL_NAME, SCHEMA, Commit, Run
from corebound.runner import Task, is_complete
from corebound.scenario.models import ProfileName
from corebound.stats.stopping import DOUBTFUL_TURNS, needs_more_launches
from corebound.text import one_line
from corebound.workflow import options, projects, scenarios
from corebound.workflow.projects import Notify
from corebound.workflow.scenarios import LoadedScenario

# Looking through each takes some 20 ms. A user with so many completed runs since then has
# abandoned any run that was interrupted before them.
_MAX_COMPLETE_RUNS = 20
# How many runs to search back for a scenario's last result.
_MAX_RUNS_BACK = 10
_SCENARIO_CHANGED = "a scenario has changed"
# How many of its changes to name.
_MOST_CHANGES = 3


class RunRequest(Struct, frozen=True, kw_only=True):
    """What the user asks of any run, with the options that commands share.

    The request of a command adds its own, and names those of its command line in `options`.
    """

    files: options.Files
    profile: Annotated[ProfileName | None, options.Option("How thoroughly to measure.")] = None
    only: Annotated[
        tuple[str, ...], options.Option("Cells to select: axis=value[,axis=value]; repeatable.")
    ] = ()
    env: Annotated[
        Mapping[str, str],
        options.Option(
            "Set an environment variable of the workloads; without VALUE, as it is here.",
            metavar="NAME[=VALUE]",
            parse=options.variables,
        ),
    ] = {}
    budget_s: Annotated[
        float | None, options.Option("End after this time: 90s, 10m, 2h.", parse=options.seconds)
    ] = None
    # The range that every framework accepts.
    seed: Annotated[
        int | None,
        options.Option(
            "Seed of the order and of the workloads' random data.", min=0, max=2**32 - 1
        ),
    ] = None
    metric: options.Metric = "time"
    unlocked: options.Unlocked = False
    wait_s: options.Wait = 0.0
    config: options.Config = projects.CONFIG
    project_python: Annotated[
        Path | None,
        options.Option("Python interpreter in which the project under test is installed already."),
    ] = None
    committed: Annotated[bool, options.Option("Measure HEAD, without uncommitted changes.")] = False
    label: Annotated[
        Mapping[str, str],
        options.Option(
            "Label for the run's record; repeatable.", metavar="NAME=VALUE", parse=options.labels
        ),
    ] = {}
    records: options.Records = RECORDS
    # When the command began, by the monotonic clock: its budget counts from then.
    begin_s: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        """Check the labels.

        Raises:
            InputError: A label has no value, or its name has other characters than a label's.
        """
        for name, value in self.label.items():
            if not (value and value.isprintable() and LABEL_NAME.fullmatch(name)):
                raise InputError(
                    what=f"`{one_line(f'{name}={value}')}` is not a label.",
                    where="--label",
                    fix="Write NAME=VALUE, such as rack=a7: a name of up to 63 letters, digits,"
                    " `.`, `_` or `-`.",
                )


class PreparedRun(Struct, frozen=True, kw_only=True):
    """A run, its tasks, and the launches already done.

    `note` says which run is continued, or why a new one begins instead. `forecasts` are those of
    the scenarios, if earlier runs were searched for them.
    """

    run: Run
    file: Path
    tasks: tuple[Task, ...]
    done: tuple[Launch, ...] = ()
    note: str | None = None
    forecasts: tuple[Forecast, ...] = ()

    @property
    def not_launched(self) -> tuple[CannotRun, ...]:
        """The reasons why cells of the run cannot be launched."""
        return tuple(
            planned.unfit
            for task in self.tasks
            for planned in task.planned
            if planned.unfit is not None
        )


def prepare_run(request: RunRequest, notify: Notify) -> PreparedRun:
    """Prepare a new run; `notify` is called with progress messages.

    Raises:
        CoreboundError: The scenarios, environments or host do not allow the run.
    """
    run, tasks = plan_run(_load(request), request, notify)
    return PreparedRun(run=run, file=jsonl.file_of(run, request.records), tasks=tasks)


def resume_run(request: RunRequest, notify: Notify, *, operators: bool) -> PreparedRun:
    """Prepare to continue this host's most recently interrupted run.

    If the user named files and no run has the same work, a new run begins.

    Args:
        request: The user's request; without files, the run's own files are used.
        operators: Whether to profile operators; a run may lack only that.

    Raises:
        InputError: The user named no files, and no run can be continued.
        CoreboundError: As `prepare_run`.
    """
    runs = recorded_runs(request.records / identity.host(discovery.live_topology()).id, notify)
    if not runs:
        if request.files:
            return prepare_run(request, notify)
        raise InputError(
            what="no run of this host to resume.",
            where=str(request.records),
            fix="Start one: `corebound run scenarios/`.",
        )
    planner = _Planner(request, notify)
    file, latest = runs[0]
    reason, refusal = None, None
    try:
        reason = difference(latest, planner.plan_like(latest)[0])
    except CoreboundError as error:
        if request.files:
            raise
        refusal = error
    if reason is not None and not request.files:
        refusal = InputError(
            what=f"the latest run cannot be resumed: {reason}.",
            where=str(file),
            fix="Start a new run by naming the scenario files.",
        )
    # Do not fall back to older runs while the latest one can still be continued.
    if refusal is None or _has_everything(latest, file, operators=operators):
        resumable = find_resumable(runs, planner.plan_like, notify, operators=operators)
        if resumable is not None:
            return resumable
    if refusal is not None:
        raise refusal
    return replace(prepare_run(request, notify), note=f"Starting a new run: {reason}.")


def prepare_comparison(
    loaded: tuple[LoadedScenario, ...],
    request: RunRequest,
    notify: Notify,
    *,
    resume: bool,
    unmade: Mapping[str, CannotRun] | None = None,
    anchors: tuple[Commit, ...] = (),
) -> PreparedRun:
    """Prepare a run of scenarios that already have the sides of a comparison.

    Args:
        loaded: The scenarios, with their sides.
        resume: Whether to continue an identical run, preferably one that was interrupted.
            Without a match, a new run begins.
        unmade: Why environments are missing, where that is already known.
        anchors: The commits that the run is anchored to, for its record.

    Raises:
        CoreboundError: The environments or the host do not allow the run.
    """
    run, tasks = plan_run(loaded, request, notify, seed=_derived_seed(loaded), unmade=unmade)
    run = replace(run, anchors=anchors)
    if all(cell.commit for scenario in loaded for cell in scenario.cells):
        # Each commit is recorded in its own environment; none of them is the checked-out one.
        run = replace(run, commit=None)
    if resume:
        runs = recorded_runs(request.records / run.host.id, notify)
        resumable = find_resumable(runs, lambda _run: (run, tasks), notify, operators=False)
        if resumable is not None:
            return resumable
    return PreparedRun(run=run, file=jsonl.file_of(run, request.records), tasks=tasks)


def _derived_seed(loaded: Sequence[LoadedScenario]) -> int:
    """Derive the seed from the scenarios, so that an interrupted run can be recognised."""
    hashes = "".join(scenario.source.sha256 for scenario in loaded)
    return int(hashlib.sha256(hashes.encode()).hexdigest()[:7], 16)


def recorded_runs(folder: Path, notify: Notify) -> Sequence[tuple[Path, Run]]:
    """List the files of a host's runs, last written first; report those that cannot be read.

    File names contain start times, but the clock may have been set back since.
    """
    runs = []
    for file in folder.glob("*.jsonl"):
        try:
            status = file.stat()
            if stat.S_ISREG(status.st_mode):
                runs.append((status.st_mtime_ns, file, jsonl.read_run(file)))
        except FileNotFoundError:
            continue  # a broken link, or removed since the folder was listed
        except InputError as error:
            notify(one_line(f"Skipped {error.where}: {error.what}"))
    runs.sort(key=lambda entry: entry[:2], reverse=True)
    return [(file, run) for _, file, run in runs]


def find_resumable(
    runs: Iterable[tuple[Path, Run]],
    plan_like: Callable[[Run], tuple[Run, tuple[Task, ...]]],
    notify: Notify,
    *,
    operators: bool,
) -> PreparedRun | None:
    """Find the first continuable run with work left; without one, the first continuable run.

    Args:
        runs: Runs and their files, last written first.
        plan_like: Plans a run anew under the current conditions.
        notify: Called with a warning for each run that cannot be read.
        operators: Whether to profile operators.

    Returns:
        The prepared run, or None if no run can be continued.
    """
    complete: list[PreparedRun] = []
    for file, run in runs:
        try:
            now, tasks = plan_like(run)
        except CoreboundError:
            continue  # such as a scenario file that no longer exists
        if difference(run, now) is not None:
            continue
        faults: list[Fault] = []
        done: Sequence[Launch] = ()
        is_whole = False
        with collect_fault(file, faults):
            done = jsonl.read(file).launches
            is_whole = is_complete(tasks, done, operators=operators)
        if faults:
            notify(f"warning: {faults[0]}")
            continue
        prepared = PreparedRun(run=run, file=file, tasks=tasks, done=done)
        if not is_whole:
            note = f"Resuming the run of {run.started_at}: {file} has {len(done)} launches."
            return replace(prepared, note=note)
        complete.append(prepared)
        if len(complete) == _MAX_COMPLETE_RUNS:
            break
    return complete[0] if complete else None


def _has_everything(run: Run, file: Path, *, operators: bool) -> bool:
    """Whether a run has everything that the scenarios in its record require."""
    try:
        loaded = scenarios.recorded_scenarios(run)
        host = scenarios.host_capabilities(scenarios.find_environments(loaded, Path.cwd()), loaded)
    except CoreboundError:
        return False
    tasks = tuple(
        scenarios.plan_task(scenario, host, profile=run.profile, seed=run.seed)
        for scenario in loaded
    )
    tasks = with_launches(tasks, run.launches)
    return is_complete(tasks, jsonl.read(file).launches, operators=operators)


class _Planner:
    """Plans runs anew; runs that differ only in their seed share the work."""

    def __init__(self, request: RunRequest, notify: Notify) -> None:
        self._request = request
        self._notify = notify
        self._plans: dict[object, _Plan] = {}

    def plan_like(self, before: Run) -> tuple[Run, tuple[Task, ...]]:
        """Plan a new run of the user's files, or of an earlier run's if the user named none.

        Raises:
            CoreboundError: The scenarios, environments or host do not allow the run.
        """
        request = self._request if self._request.files else _request_of(before, self._request)
        key = request.files, request.profile, request.only, tuple(request.env.items())
        if key not in self._plans:
            self._plans[key] = _plan(_load(request), request, self._notify)
        seed = before.seed if request.seed is None else request.seed
        run, tasks = self._plans[key].with_seed(seed)
        return run, with_launches(tasks, before.launches)


def _request_of(run: Run, request: RunRequest) -> RunRequest:
    """The request with the files, profile, cells and variables of an earlier run."""
    return replace(
        request,
        files=tuple(Path(source.path) for source in run.scenarios),
        profile=run.profile,
        only=run.only,
        env={**run.env, **request.env},
    )


def _load(request: RunRequest) -> tuple[LoadedScenario, ...]:
    return scenarios.load_scenarios(request.files, request.only, request.profile, env=request.env)


class _Plan(Struct, frozen=True, kw_only=True):
    """What a run measures on this host, independent of the seed."""

    run: Run
    loaded: tuple[LoadedScenario, ...]
    host: HostCapabilities

    def with_seed(self, seed: int) -> tuple[Run, tuple[Task, ...]]:
        """The run and its tasks for a seed."""
        tasks = tuple(
            scenarios.plan_task(scenario, self.host, profile=self.run.profile, seed=seed)
            for scenario in self.loaded
        )
        duplicates = {task.scenario.name: task.duplicates for task in tasks if task.duplicates}
        return replace(self.run, seed=seed, duplicates=duplicates), tasks


def plan_run(
    loaded: tuple[LoadedScenario, ...],
    request: RunRequest,
    notify: Notify,
    *,
    seed: int | None = None,
    unmade: Mapping[str, CannotRun] | None = None,
) -> tuple[Run, tuple[Task, ...]]:
    """Plan a new run of scenarios on this host; build the project under test if required.

    Args:
        request: The user's request; its files are already loaded.
        seed: The run's seed if `request` has none; None picks a random one.
        unmade: Why environments are missing, where that is already known.

    Raises:
        CoreboundError: The environments or the host do not allow the run.
    """
    plan = _plan(loaded, request, notify, unmade=unmade)
    if request.seed is not None:
        seed = request.seed
    return plan.with_seed(secrets.randbelow(2**31) if seed is None else seed)


def _plan(
    loaded: tuple[LoadedScenario, ...],
    request: RunRequest,
    notify: Notify,
    *,
    unmade: Mapping[str, CannotRun] | None = None,
) -> _Plan:
    cells = scenarios.all_cells(loaded)
    if request.project_python is None:
        project = projects.build(
            cells,
            request.config,
            notify,
            outputs=(request.records,),
            committed=request.committed,
        )
    else:
        project = projects.use_existing(cells, request.project_python)
    made = scenarios.find_environments(loaded, Path.cwd(), project)
    host = scenarios.host_capabilities(made, loaded, {**project.unmade, **(unmade or {})})
    run = Run(
        schema=SCHEMA,
        id=secrets.token_hex(4),
        started_at=clock.timestamp(),
        corebound=__version__,
        argv=("corebound", *sys.argv[1:]),
        seed=0,
        profile=request.profile,
        only=request.only,
        host=identity.host(host.topology),
        commit=_measured_commit(made.values()),
        scenarios=tuple(scenario.source for scenario in loaded),
        environments=tuple(
            environment.lock for environment in made.values() if environment is not None
        ),
        labels=dict(request.label),
    )
    return _Plan(run=run, loaded=loaded, host=host)


def _measured_commit(made: Iterable[Environment | None]) -> Commit | None:
    """The commit of the current folder, with the uncommitted changes that were measured.

    Uncommitted changes do not count if every environment was built from a commit.
    """
    here = commits.checked_out(Path.cwd())
    built = [environment.lock.commit for environment in made if environment is not None]
    same = [
        commit
        for commit in built
        if commit is not None and here is not None and commit.sha == here.sha
    ]
    changed = next((commit for commit in same if commit.tree is not None), None)
    return changed or (same[0] if same and None not in built else here)


def difference(before: Run, now: Run) -> str | None:
    """Why launches of `now` are not comparable with those of `before`, or None if they are."""
    compared: Sequence[tuple[str, object, object]] = (
        ("the scenarios differ", _paths(before), _paths(now)),
        (_SCENARIO_CHANGED, _hashes(before), _hashes(now)),
        ("the profile differs", before.profile, now.profile),
        ("the selected cells differ", before.only, now.only),
        ("the seed differs", before.seed, now.seed),
        ("the version of corebound differs", before.corebound, now.corebound),
        ("an environment has changed", before.environments, now.environments),
        ("the host has changed", _host_key(before), _host_key(now)),
        ("the commit differs", _commit_key(before), _commit_key(now)),
        ("the anchor differs", before.anchors, now.anchors),
        ("the duplicate configurations differ", before.duplicates, now.duplicates),
    )
    reason = next((reason for reason, then, current in compared if then != current), None)
    return f"{reason} ({_changes(before, now)})" if reason == _SCENARIO_CHANGED else reason


def _paths(run: Run) -> set[str]:
    return {source.path for source in run.scenarios}


def _hashes(run: Run) -> set[str]:
    return {source.sha256 for source in run.scenarios}


def _changes(before: Run, now: Run) -> str:
    """What differs in the scenarios, such as `matmul: env.A was 1 and is 2`."""
    earlier = {source.path: source.document for source in before.scenarios}
    changes = [
        f"{source.document['name']}: {change}"
        for source in now.scenarios
        for change in _changed_values(earlier.get(source.path, {}), source.document)
    ]
    more = [f"and {len(changes) - _MOST_CHANGES} more"] if len(changes) > _MOST_CHANGES else []
    return one_line("; ".join([*changes[:_MOST_CHANGES], *more]))


def _changed_values(before: object, now: object, path: str = "") -> Iterator[str]:
    """Each value that differs between two documents, by its path."""
    if isinstance(before, Mapping) and now is None:
        now = {}
    elif isinstance(now, Mapping) and before is None:
        before = {}
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys((*before, *now)):
            inner = f"{path}.{key}" if path else str(key)
            yield from _changed_values(before.get(key), now.get(key), inner)
    elif before != now:
        yield f"{path} was {_value_text(before)} and is {_value_text(now)}"


def _value_text(value: object) -> str:
    return "not set" if value is None else json.dumps(value, default=str, ensure_ascii=False)


def _host_key(run: Run) -> tuple[object, ...]:
    """The host properties that must not change; a hypervisor may add and remove memory."""
    topology = run.host.topology
    allowed = tuple(cpu.id for cpu in topology.allowed)
    return run.host.id, run.host.kernel, allowed, topology.cpu_quota


def _commit_key(run: Run) -> tuple[str, bool, str | None] | None:
    commit = run.commit
    return None if commit is None else (commit.sha, commit.dirty, commit.tree)


def with_launches(tasks: Sequence[Task], launches: int | None) -> tuple[Task, ...]:
    """The tasks with exactly this number of launches for every cell; None: as in the scenarios."""
    if launches is None:
        return tuple(tasks)

    def exactly(planned: PlannedCell) -> PlannedCell:
        bounds = planned.measure.launches.model_copy(update={"min": launches, "max": launches})
        return replace(planned, measure=planned.measure.model_copy(update={"launches": bounds}))

    return tuple(replace(task, planned=tuple(map(exactly, task.planned))) for task in tasks)


def prioritise_inconclusive(tasks: Sequence[Task], run: Run, records: Path) -> tuple[Task, ...]:
    """Put scenarios whose last results are inconclusive first, with more blocks per turn.

    Whole scenarios are preferred, not cells. Cells are compared within a block, and later
    blocks omit those that are certain enough anyway.

    Args:
        run: The run itself; its own records are ignored, so that a resumed run keeps its order.
    """
    names = {task.scenario.name for task in tasks}
    inconclusive = {
        name
        for name, result in last_results(names, run.host.id, records, other_than=run.id)
        if _is_inconclusive(result)
    }
    with_turns = [
        replace(task, turns=DOUBTFUL_TURNS if task.scenario.name in inconclusive else 1)
        for task in tasks
    ]
    return tuple(sorted(with_turns, key=lambda task: -task.turns))


def last_results(
    names: set[str], host: str, records: Path, *, other_than: str | None = None
) -> Iterator[tuple[str, ScenarioResult]]:
    """Find the result of each scenario's last run on a host.

    Args:
        host: The host's id.
        other_than: The id of a run that does not count.
    """
    missing = set(names)
    files = sorted((records / host).glob("*.jsonl"), reverse=True)
    for file in files[:_MAX_RUNS_BACK]:
        if not missing:
            return
        try:
            before = jsonl.read_run(file)
            recorded = {str(source.document.get("name")) for source in before.scenarios}
            if before.id == other_than or not recorded & missing:
                continue
            stored = jsonl.read(file)
        except InputError:
            continue  # damaged; `report` reports it
        launched = {launch.cell.scenario for launch in stored.launches}
        for source in stored.run.scenarios:
            name = str(source.document.get("name"))
            if name not in missing or name not in launched:
                continue
            try:
                yield name, analyse_scenario(stored.run, source, stored.launches)
            except ScenarioFaults:
                continue  # written by another version of corebound
            missing.discard(name)


def _is_inconclusive(result: ScenarioResult) -> bool:
    baselines = {cell.baseline.key for cell in result.cells if cell.baseline is not None}
    return any(_needs_more(cell, baselines, result) for cell in result.cells)


def _needs_more(cell: CellResult, baselines: set[str], result: ScenarioResult) -> bool:
    # A baseline has as many launches as the cells compared with it.
    if cell.comparison is None and cell.cell.key in baselines:
        return False
    measure = result.measure
    return needs_more_launches(
        cell.summary, cell.comparison, measure.launches, margin=measure.margin
    )
