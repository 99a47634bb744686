"""`corebound tune` without a terminal: race the configurations of a scenario on this host."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.forecast import GUESS_FACTOR, TimeLeft, guess
from corebound.analysis.tuning import Standing, TuneResult, analyse_tuning, standing
from corebound.analysis.tuning_document import tune_document
from corebound.analysis.tuning_proofs import Proof
from corebound.analysis.tuning_text import headline, name_of, provenance, race_line
from corebound.analysis.wording import capital, count, day
from corebound.errors import InputError
from corebound.launch.find_module import blas_layers
from corebound.machine import discovery
from corebound.machine.doctor.result import HostCheck
from corebound.planning.artefacts import KINDS, ArtefactKind
from corebound.planning.candidates import Choice, choices, distinct, include_entries
from corebound.records import documents, jsonl
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.records.tuning import RACE_SHARE, NotTried, Objective, RaceRule, Tuning
from corebound.runner import Job, Observer, Task
from corebound.scenario.builtin_workloads import SERVERS, SHAPES_BY_PARAMETER
from corebound.scenario.cell import Cell
from corebound.scenario.loader import load_document
from corebound.scenario.matrix import Point, axes_of, baseline_of, expand, expand_matrix, points_of
from corebound.scenario.models import Measure, measure_for
from corebound.scenario.settings import SETTINGS, ExplicitCpus
from corebound.stats.interference import is_refused
from corebound.stats.launch_summary import LaunchSummary, summarise_launch
from corebound.stats.racing import FINALISTS, candidates_with_time, least_fresh_launches
from corebound.workflow.execute import Reporter, execute_run, hold_host
from corebound.workflow.host_checks import preflight
from corebound.workflow.prepare import (
    PreparedRun,
    RunRequest,
    find_resumable,
    plan_run,
    recorded_runs,
)
from corebound.workflow.projects import Notify
from corebound.workflow.scenarios import (
    LoadedScenario,
    display_path,
    find_environments,
    load_scenarios,
)
from corebound.workflow.tune_artefacts import prove, write_artefacts
from corebound.workflow.tunings import StoredTuning, latest_tunings

# Fewer blocks seldom decide, and fewer fresh launches give wide intervals.
_LEAST_BLOCKS = 10
_USUAL_FRESH = 6
# A matrix has room for so many includes.
_MOST_POINTS = 256
# The parameters that a search for a rate sets itself.
_TRAFFIC_PARAMETERS = frozenset({*SHAPES_BY_PARAMETER, "traffic", "client"})
# With fewer requests, a search seldom finds the rate to within a tenth.
_LEAST_SEARCH = 600


class TuneRequest(Struct, frozen=True, kw_only=True):
    """The user's request.

    Attributes:
        run: The scenario file and the options of any run.
        objective: What to compare.
        bound_ms: The latency that 99 % of requests may take; the objective `rate` needs it, and no
            other has it.
        vary: Parameters of the workload that may change, because they do not change its work.
        load: Axes of the scenario, each with the value that its cells must have.
        max_candidates: How many configurations take part, at most.
        budget_s: The time for all launches, in seconds; None is no limit.
        resume: Whether to continue an interrupted race of the same candidates.
        emit: The artefacts to write.
        out: The folder to write them to.
    """

    run: RunRequest
    objective: Objective = "latency"
    bound_ms: float | None = None
    vary: tuple[str, ...] = ()
    load: tuple[tuple[str, str], ...] = ()
    max_candidates: int = 16
    budget_s: float | None = None
    resume: bool = False
    emit: tuple[ArtefactKind, ...] = ()
    out: Path = Path("tuned")

    def __post_init__(self) -> None:
        """Check that the options fit together.

        Raises:
            InputError: A rate has no bound, another objective has one, or a file to write is of no
                known kind.
        """
        if self.objective == "rate" and self.bound_ms is None:
            raise InputError(
                what="a rate needs a bound of the latency.",
                where="--objective rate",
                fix="Add one, such as 50 ms: `--bound p99=50ms`.",
            )
        if self.objective != "rate" and self.bound_ms is not None:
            raise InputError(
                what=f"the objective `{self.objective}` has no bound.",
                where="--bound",
                fix="Add `--objective rate`.",
            )
        for kind in self.emit:
            if kind not in KINDS:
                raise InputError(
                    what=f"`{kind}` cannot be written.",
                    where="--emit",
                    fix=f"Name some of: {', '.join(KINDS)}.",
                )


class TuneOutcome(Struct, frozen=True, kw_only=True):
    """The result of a race, the file of its records, and the files that set its winner."""

    result: TuneResult
    records: Path
    proofs: tuple[Proof, ...] = ()

    @property
    def document(self) -> dict[str, Any]:
        """The result as plain data, as `--json` prints it."""
        return {**tune_document(self.result, self.proofs), "records": str(self.records)}


def tune_scenario(
    request: TuneRequest, reporter: Reporter, *, unlocked: bool = False, wait_s: float = 0.0
) -> TuneOutcome:
    """Race the configurations of a scenario, and confirm the winner with fresh launches.

    Args:
        request: The user's request.
        reporter: Shows the progress.
        unlocked: Whether to measure beside other runs.
        wait_s: How long to wait for another run on this host, in seconds.

    Raises:
        CoreboundError: The scenario or the host does not allow it.
    """
    with ExitStack() as stack:
        hold_host(
            stack,
            reporter.notify,
            unlocked=unlocked,
            wait_s=wait_s,
            validate=lambda: load_one(request),
        )
        return race(request, reporter)


def race(request: TuneRequest, reporter: Reporter) -> TuneOutcome:
    """Do what `tune_scenario` does, on a host that is held already."""
    prepared = _prepare(request, reporter.notify)
    if prepared.note is not None:
        reporter.notify(prepared.note)
    prepared = preflight(prepared, reporter)
    (task,) = prepared.tasks
    tuning = prepared.run.tuning
    if tuning is None:
        raise ValueError("a race has a rule")
    if not prepared.done:
        reporter.notify(_forecast(prepared, task, request.run.records))
    shown = _RaceReporter(reporter, task, tuning, prepared.done)
    with ExitStack() as running:
        launched = execute_run(prepared, request.budget_s, shown, running)
    result = analyse_tuning(launched.run, launched.launches)
    proofs: tuple[Proof, ...] = ()
    if request.emit and result.to_set is None:
        reporter.notify(f"No file was written. {headline(result)}")
    if request.emit and result.to_set is not None:
        recommended = next(one for one in task.planned if one.cell.key == result.to_set.key)
        written = write_artefacts(
            recommended,
            request.emit,
            request.out,
            about=provenance(result, str(launched.file)),
            notify=reporter.notify,
        )
        proofs = prove(
            result.run,
            task,
            recommended,
            written,
            records=request.run.records,
            folder=request.out,
            reporter=reporter,
        )
    return TuneOutcome(result=result, records=launched.file, proofs=proofs)


def _prepare(request: TuneRequest, notify: Notify) -> PreparedRun:
    loaded = load_one(request)
    folder = documents.tunes_folder(request.run.records)
    plan = _plan(loaded, request, notify)
    if request.resume:
        runs = recorded_runs(folder / plan.run.host.id, notify)
        same = [
            (file, run)
            for file, run in runs
            if run.tuning is not None
            and run.tuning.recommended is None
            and run.tuning.objective == request.objective
        ]
        resumable = find_resumable(same, plan.like, notify, operators=False)
        if resumable is not None:
            return resumable
        notify("Starting a new race: no interrupted one has the same candidates.")
    return PreparedRun(run=plan.run, file=jsonl.file_of(plan.run, folder), tasks=plan.tasks)


class _TunePlan(Struct, frozen=True, kw_only=True):
    """The run of a race and its task, and how to plan them again."""

    run: Run
    tasks: tuple[Task, ...]
    loaded: LoadedScenario
    request: RunRequest
    notify: Notify

    def like(self, before: Run) -> tuple[Run, tuple[Task, ...]]:
        """The same work with the seed and the rule of an earlier run."""
        request = replace(self.request, seed=before.seed)
        run, tasks = plan_run((self.loaded,), request, self.notify)
        return run, tuple(replace(task, tuning=before.tuning) for task in tasks)


def load_one(request: TuneRequest) -> LoadedScenario:
    """The one scenario of a request, with the cells of its load.

    Raises:
        InputError: There are several scenarios, or a file cannot be read.
    """
    loaded = load_scenarios(request.run.files, request.run.only, request.run.profile)
    if len(loaded) != 1:
        names = ", ".join(one.scenario.name for one in loaded)
        raise InputError(
            what=f"one scenario can be tuned at a time, and these are {len(loaded)}: {names}.",
            where="corebound tune",
            fix="Name one scenario file.",
        )
    (only,) = loaded
    cells = tuple(cell for cell in only.cells if set(request.load) <= set(cell.axes))
    return replace(only, cells=cells)


def _plan(loaded: LoadedScenario, request: TuneRequest, notify: Notify) -> _TunePlan:
    """Plan the race: first all candidates, then those that fit into `max_candidates`."""
    space = _search_space(loaded, request)
    found = space.found[:_MOST_POINTS]
    everything = space.with_candidates(found)
    plain = replace(request.run, profile=None, only=())
    _, (task,) = plan_run((everything,), plain, notify)
    launched = [
        index
        for index, planned in enumerate(task.planned)
        if planned.unfit is None and planned.duplicate_of is None
    ]
    left_out = set(launched[request.max_candidates :])
    # Without the one that it equals, a duplicate would be launched itself.
    without = {task.planned[index].cell for index in left_out}
    left_out_too = {
        index for index, planned in enumerate(task.planned) if planned.duplicate_of in without
    }
    not_tried = tuple(
        NotTried(
            name=capital(name_of(planned.cell, task.planned[0].cell)),
            reason=f"beyond `--max-candidates {request.max_candidates}`",
        )
        for index, planned in enumerate(task.planned)
        if index in left_out
    )
    kept = [choice for index, choice in enumerate(found) if index not in left_out | left_out_too]
    candidates = space.with_candidates(kept) if left_out else everything
    run, (task,) = plan_run((candidates,), plain, notify)
    rule = _rule(task.planned[0].measure, request.budget_s)
    tuning = Tuning(objective=request.objective, rule=rule, not_tried=not_tried, load=space.load)
    return _TunePlan(
        run=replace(run, tuning=tuning),
        tasks=(replace(task, tuning=tuning),),
        loaded=candidates,
        request=plain,
        notify=notify,
    )


def _rule(measure: Measure, budget_s: float | None) -> RaceRule:
    return RaceRule(
        margin=measure.margin,
        max_blocks=max(measure.launches.max, _LEAST_BLOCKS),
        confirm_blocks=max(measure.launches.min, _USUAL_FRESH),
        budget_s=None if budget_s is None else RACE_SHARE * budget_s,
    )


class _SearchSpace(Struct, frozen=True, kw_only=True):
    """The candidates of a scenario, the default first.

    Attributes:
        loaded: The scenario.
        found: The choices; each may lack keys, which then have the value of `base`.
        base: The values of the scenario's own baseline.
        keys: What the choices vary.
        document: The scenario without its matrix, with the profile applied.
        load: The parameters that the scenario varies and that all candidates share.
    """

    loaded: LoadedScenario
    found: tuple[Choice, ...]
    base: Choice
    keys: tuple[str, ...]
    document: Mapping[str, Any]
    load: tuple[tuple[str, str], ...]

    def with_candidates(self, found: Sequence[Choice]) -> LoadedScenario:
        """The scenario whose matrix is these candidates, and whose baseline is the first."""
        entries = include_entries(found, self.base, self.keys)
        document = {**self.document, "matrix": {"include": entries}, "baseline": entries[0]}
        path = display_path(self.loaded.path)
        scenario = load_document(document, path)
        return replace(self.loaded, scenario=scenario, cells=expand(scenario, path))


def _search_space(loaded: LoadedScenario, request: TuneRequest) -> _SearchSpace:
    scenario, profile = loaded.scenario, request.run.profile
    if request.objective == "rate":
        _require_servers(loaded.cells)
    matrix = expand_matrix(scenario.matrix, axes_of(scenario.matrix))
    selected = {cell.key for cell in loaded.cells}
    points = [point for point in points_of(scenario, matrix, profile) if point.cell.key in selected]
    baseline = baseline_of(loaded.cells[0], loaded.cells, scenario) or loaded.cells[0]
    own_base = next(point for point in points if point.cell.key == baseline.key)
    fixed = _fixed_parameters(points, own_base, request)
    every_cell = expand(scenario, str(loaded.path), profile)
    load = tuple(
        (axis, value)
        for axis, value in baseline.axes
        if axis in fixed and len({dict(cell.axes).get(axis) for cell in every_cell}) > 1
    )
    own_settings = [axis for axis, _ in baseline.axes if axis in SETTINGS]
    expanded = ["binding", "threads", "wait_policy", "workers"]
    if "OMP_WAIT_POLICY" in scenario.env:
        expanded.remove("wait_policy")
    keys = tuple(
        dict.fromkeys([*expanded, *own_settings, *(f"parameters.{name}" for name in request.vary)])
    )
    base = _values(own_base, keys)
    planned = choices(
        discovery.live_topology(),
        baseline.framework,
        vary_workers=request.objective in {"throughput", "rate"},
        workers=baseline.workers,
        blas_layers=_blas_layers(loaded) if baseline.framework == "numpy" else (),
    )
    in_keys = [{key: value for key, value in one.items() if key in keys} for one in planned]
    full = [{**base, **one} for one in in_keys]
    launcher_first = [one for one in full[1:] if one["binding"] == "launcher"]
    found = distinct([full[0], *launcher_first, *(_values(point, keys) for point in points), *full])
    measure = measure_for(scenario, profile).model_dump(mode="json", exclude_none=True)
    if request.objective == "rate":
        fixed |= {"traffic": "rate-search", "bound_ms": request.bound_ms}
        measure["iterations"] = max(measure_for(scenario, profile).requests, _LEAST_SEARCH)
    document = {
        key: value
        for key, value in scenario.document().items()
        if key not in {"matrix", "baseline", "claims", "profiles", *keys}
    }
    document |= {
        "parameters": fixed,
        "measure": {**measure, "alternate": "never", "duplicates": "once"},
    }
    return _SearchSpace(
        loaded=loaded, found=found, base=base, keys=keys, document=document, load=load
    )


def _blas_layers(loaded: LoadedScenario) -> tuple[str, ...]:
    """How the BLAS of a scenario's NumPy makes threads."""
    if any(dict(cell.parameters).get("blas") == "mkl" for cell in loaded.cells):
        return ("intel",)  # a built-in workload loads it beside NumPy's own
    made = filter(None, find_environments((loaded,), Path.cwd()).values())
    return tuple(layer for environment in made for layer in blas_layers(environment.python))


def _values(point: Point, keys: Sequence[str]) -> dict[str, Any]:
    """The values of a point's keys, as a scenario file would have them."""
    values: dict[str, Any] = {}
    for key in keys:
        section, _, name = key.rpartition(".")
        value = (point.parameters[name] if section else point.settings[key]).value
        values[key] = {"cpus": value.cpus} if isinstance(value, ExplicitCpus) else value
    return values


def _fixed_parameters(points: Sequence[Point], base: Point, request: TuneRequest) -> dict[str, Any]:
    """The parameters that all candidates share.

    Raises:
        InputError: The points differ in a parameter that may not change, or a parameter that may
            change does not exist.
    """
    unknown = [name for name in request.vary if name not in base.parameters]
    if unknown:
        raise InputError(
            what=f"the workload has no parameter `{unknown[0]}` in this scenario.",
            where="--vary",
            fix=f"Its parameters: {', '.join(base.parameters) or 'none'}.",
        )
    own = _TRAFFIC_PARAMETERS if request.objective == "rate" else frozenset()
    for name in base.parameters:
        if name in own:
            continue
        texts = dict.fromkeys(
            point.parameters[name].text for point in points if name in point.parameters
        )
        if len(texts) > 1 and name not in request.vary:
            first = next(iter(texts))
            raise InputError(
                what=f"the scenario varies the parameter `{name}` ({', '.join(texts)}), and so the"
                " work that is measured.",
                where="corebound tune",
                fix=f"Select one value, as in `--only {name}={first}`, tune for each with"
                f" `--each {name}`, or let the race choose with `--vary {name}`.",
            )
    return {
        name: value.value
        for name, value in base.parameters.items()
        if name not in own.union(request.vary)
    }


def _require_servers(cells: Sequence[Cell]) -> None:
    """Check that a rate can be searched.

    Raises:
        InputError: A cell is no server.
    """
    if any(cell.framework not in SERVERS for cell in cells):
        raise InputError(
            what="only a server has a rate of requests.",
            where="--objective rate",
            fix="Write `--objective throughput`, or select cells of a server with `--only`.",
        )


def _forecast(prepared: PreparedRun, task: Task, records: Path) -> str:
    """How long an answer takes, by the last race of the same kind or a guess."""
    run, cells = prepared.run, task.contest.cells
    for stored in latest_tunings(records, []):
        before = stored.run
        if (before.host.id, _kind_of(before)) == (run.host.id, _kind_of(run)):
            durations_s = _durations_s(stored)
            if durations_s:
                launch_s = statistics.fmean(durations_s)
                return forecast_note(len(cells), launch_s, since=before.started_at)
    keys = {cell.key for cell in cells}
    usual = guess([planned for planned in task.planned if planned.cell.key in keys])
    return forecast_note(len(cells), usual.launch_s if usual else 0.0)


def _durations_s(stored: StoredTuning) -> list[float]:
    """How long the successful launches of a race took, in seconds; none if it cannot be read."""
    try:
        launches = jsonl.read(stored.file).launches
    except InputError:
        return []
    return [launch.duration_ns / 1e9 for launch in launches if launch.status == "ok"]


def _kind_of(run: Run) -> tuple[object, ...]:
    """What races must have in common so that their launches take about as long."""
    tuning = run.tuning
    names = [source.document.get("name") for source in run.scenarios]
    return names, run.profile, tuning and (tuning.objective, tuning.load)


def forecast_note(candidates: int, launch_s: float, *, since: str | None = None) -> str:
    """How long an answer takes at least, before the first launch.

    Args:
        candidates: How many configurations take part.
        launch_s: The expected duration of a launch, in seconds.
        since: When the race started that this is judged by; None for a guess.
    """
    launches = candidates + least_fresh_launches(candidates)
    text = f"{count(candidates, 'configuration')} take part. An answer needs at least"
    text += f" {launches} launches"
    if since is not None:
        return f"{text}: about {_about(launches * launch_s)}, judged by the race of {day(since)}."
    low_s, high_s = (launches * launch_s * factor for factor in (1 / GUESS_FACTOR, GUESS_FACTOR))
    return (
        f"{text}: between {_about(low_s)} and {_about(high_s)}. This is a guess, which the first"
        " launch corrects."
    )


def budget_note(launch_s: float, candidates: int, rule: RaceRule) -> str | None:
    """What a race can reach in its budget if each launch takes this long; None if all.

    Args:
        launch_s: The duration of a launch, in seconds.
        candidates: How many configurations take part.
        rule: The rule of the race.
    """
    budget_s, with_time = rule.whole_budget_s, candidates_with_time(rule, launch_s)
    finalists = min(FINALISTS, candidates)
    least = candidates + least_fresh_launches(candidates)
    usual = 2 * candidates + rule.confirm_blocks * finalists
    a_launch = f"A launch takes about {_about(launch_s)}"
    if budget_s is None or with_time is None:
        return (
            f"{a_launch}, so two blocks of {candidates} and all fresh launches take"
            f" {_about(usual * launch_s)}. `--budget` limits the time."
        )
    if budget_s < (smallest := 2 + least_fresh_launches(2)) * launch_s:
        return (
            f"warning: the budget is too short for an answer. {a_launch}, and {smallest} launches"
            f" are needed: {_about(smallest * launch_s)}. Use a larger `--budget`."
        )
    if with_time < candidates:
        return (
            f"{a_launch}, so the budget has time for some {with_time} of the {candidates}"
            f" configurations, the most promising ones. All need {_about(least * launch_s)}."
        )
    if budget_s < usual * launch_s:
        return (
            f"{a_launch}, so the budget allows about {budget_s / launch_s:.0f} launches. Two blocks"
            f" of {candidates} and all fresh launches are {usual}; with fewer, the result is less"
            " certain."
        )
    return None


def _about(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


class _RaceReporter(Struct, frozen=True):
    """A reporter that also says, after each block, who is still in the race."""

    reporter: Reporter
    task: Task
    tuning: Tuning
    done: tuple[Launch, ...]

    def notify(self, message: str) -> None:
        """Show a message."""
        self.reporter.notify(message)

    def show_warnings(self, checks: Sequence[HostCheck]) -> None:
        """Show the host checks that are warnings."""
        self.reporter.show_warnings(checks)

    @contextmanager
    def show_run(
        self, *, done: int, budget_s: float | None, time_left: TimeLeft
    ) -> Iterator[Observer]:
        """Show the progress of a run."""
        with self.reporter.show_run(done=done, budget_s=budget_s, time_left=time_left) as observer:
            yield _RaceObserver(observer, self.notify, self.task, self.tuning, self.done)


class _RaceObserver:
    """Passes the events of a run on, and follows the race."""

    def __init__(
        self,
        observer: Observer,
        notify: Notify,
        task: Task,
        tuning: Tuning,
        done: Sequence[Launch],
    ) -> None:
        self._observer = observer
        self._notify = notify
        self._task = task
        self._tuning = tuning
        self._contest = task.contest
        self._launches: dict[str, dict[int, Launch]] = {}
        self._summaries: dict[str, LaunchSummary] = {}
        for launch in done:
            self._add(launch)
        self._race = self._standing().race

    def started(self, job: Job, *, left: Mapping[str, int]) -> None:
        """A launch starts."""
        self._observer.started(job, left=left)

    def ended(self, launch: Launch) -> None:
        """A launch has ended; at the end of a block, say who is left."""
        self._observer.ended(launch)
        if not self._launches and launch.status == "ok":
            note = budget_note(
                launch.duration_ns / 1e9, len(self._contest.cells), self._tuning.rule
            )
            if note is not None:
                self._notify(note)
        self._add(launch)
        if self._race.ending is None and all(
            self._race.blocks in self._launches.get(key, {}) for key in self._race.remaining
        ):
            now = self._standing()
            self._race = now.race
            self._notify(race_line(now, self._raced_cells(), self._contest.default))

    def tick(self) -> None:
        """Called periodically during a launch."""
        self._observer.tick()

    def _add(self, launch: Launch) -> None:
        takes_part = any(cell.key == launch.cell.key for cell in self._contest.cells)
        if launch.kind == "measure" and takes_part and not is_refused(launch):
            self._launches.setdefault(launch.cell.key, {})[launch.block] = launch

    def _raced_cells(self) -> list[Cell]:
        """The cells that take part, without those that the budget had no time for."""
        return [
            cell
            for cell in self._contest.cells
            if any(launch.status != "skipped" for launch in self._launches[cell.key].values())
        ]

    def _standing(self) -> Standing:
        return standing(self._contest, self._launches, self._tuning, self._summarised)

    def _summarised(self, launch: Launch) -> LaunchSummary:
        if launch.id not in self._summaries:
            warmup = self._task.scenario.measure.warmup
            self._summaries[launch.id] = summarise_launch(launch, warmup)
        return self._summaries[launch.id]
