"""`corebound tune` without a terminal: race the configurations of a scenario on this host."""

import statistics
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.forecast import GUESS_FACTOR, guess
from corebound.analysis.tuning import RaceState, TuneResult, analyse_tuning, race_state
from corebound.analysis.tuning_checks import ArtefactProof
from corebound.analysis.tuning_loads import LoadsResult, loads_result
from corebound.analysis.wording import capital, count, day
from corebound.errors import NO_ANSWER, HostError, InputError
from corebound.launch.find_module import blas_layers
from corebound.launch.programs import follows_threads
from corebound.machine import discovery
from corebound.planning.candidates import Choice, search_space
from corebound.present.tune import (
    common_document,
    headline,
    load_text,
    name_of,
    names,
    provenance,
    race_line,
    tune_document,
)
from corebound.records import documents, jsonl
from corebound.records.launch_record import Launch
from corebound.records.race import RACE_SHARE, NotTried, RaceRule, RaceSetup
from corebound.records.run_record import Run
from corebound.runner import Observer, Task
from corebound.scenario.loader import load_document
from corebound.scenario.matrix import expand
from corebound.scenario.models import Measure
from corebound.scenario.objectives import OBJECTIVES, Objective
from corebound.stats.interference import is_refused
from corebound.stats.launch_summary import LaunchSummary, summarise_launch
from corebound.stats.racing import FINALISTS, least_fresh_launches
from corebound.stats.screening import has_screening, least_budget_s, screened_with_time
from corebound.workflow.artefact_proofs import THROUGH, prove, write_artefacts
from corebound.workflow.execute import Budget, Reporter, execute_run, hold_host_for
from corebound.workflow.host_checks import preflight
from corebound.workflow.prepare import PreparedRun, find_resumable, plan_run, recorded_runs
from corebound.workflow.projects import Notify
from corebound.workflow.scenarios import (
    LoadedScenario,
    display_path,
    find_environments,
    load_scenarios,
)
from corebound.workflow.tune_checks import again
from corebound.workflow.tune_request import MOST_CANDIDATES, TuneRequest
from corebound.workflow.tunings import latest_tunings, stored_checks

# Fewer blocks seldom decide, and fewer fresh launches give wide intervals.
_LEAST_BLOCKS = 10
_USUAL_FRESH = 6
_NO_THREADS = (
    "The number of threads is not tried, because the command does not take it. Write `{threads}`"
    " where it does, such as `--threads={threads}`; or, if it follows OMP_NUM_THREADS,"
    " `threads: default` beside `workload`."
)
# A launch of the screening: five to warm up, and ten for a median.
_SCREEN_ITERATIONS = 15
# Of the budget, if files are launched through after the race.
_PROVEN_SHARE = 0.85
# Of the budget for several loads; the rest is for launches of the common configuration.
_RACES_SHARE = 0.85


class TuneOutcome(Struct, frozen=True, kw_only=True):
    """The result of a race, the file of its records, and the files that set its winner."""

    result: TuneResult
    records: Path
    proofs: tuple[ArtefactProof, ...] = ()

    @property
    def exit_code(self) -> int:
        """What the command exits with: whether there is a recommendation."""
        return 0 if self.result.recommended is not None else NO_ANSWER

    @property
    def document(self) -> dict[str, Any]:
        """The result as plain data, as `--json` prints it."""
        return {**tune_document(self.result, self.proofs), "records": str(self.records)}


class LoadsOutcome(Struct, frozen=True, kw_only=True):
    """The result of each load's race, and what they say together."""

    outcomes: tuple[TuneOutcome, ...]
    loads: LoadsResult

    @property
    def exit_code(self) -> int:
        """What the command exits with: whether each load has a recommendation."""
        return max(outcome.exit_code for outcome in self.outcomes)

    @property
    def document(self) -> dict[str, Any]:
        """The result as plain data, as `--json` prints it."""
        outcomes = [outcome.document for outcome in self.outcomes]
        return {"common": common_document(self.loads), "loads": outcomes}


def tune_scenario(request: TuneRequest, reporter: Reporter) -> TuneOutcome:
    """Race the configurations of a scenario, and confirm the winner with fresh launches.

    Raises:
        CoreboundError: The scenario or the host does not allow it.
    """
    with hold_host_for(request, reporter.notify, lambda: load_one(request)) as budget:
        return race(replace(request, begin_s=budget.since_s), reporter)


def race(request: TuneRequest, reporter: Reporter) -> TuneOutcome:
    """Do what `tune_scenario` does, on a host that is held already."""
    budget = Budget(request.budget_s, request.begin_s)
    # What the files set is launched after the race, within the same budget.
    of_race = budget.share(1.0 if THROUGH.isdisjoint(request.emit) else _PROVEN_SHARE)
    prepared = _prepare(replace(request, budget_s=of_race.whole_s), reporter.notify)
    if prepared.note is not None:
        reporter.notify(prepared.note)
    prepared = preflight(prepared, reporter)
    (task,) = prepared.tasks
    tuning = prepared.run.tuning
    if tuning is None:
        raise ValueError("a race has a rule")
    if not prepared.done:
        reporter.notify(_forecast(prepared, task, tuning, request.records))
    follow = partial(_RaceObserver, reporter.notify, task, tuning, prepared.done)
    launched = execute_run(prepared, of_race, reporter, follow=follow)
    result = analyse_tuning(launched.run, launched.launches)
    proofs: tuple[ArtefactProof, ...] = ()
    if request.emit and result.to_set is None:
        reporter.notify(f"No file was written. {headline(result)}")
    if request.emit and result.to_set is not None:
        recommended = next(
            planned for planned in task.planned if planned.cell.key == result.to_set.key
        )
        written = write_artefacts(
            recommended,
            task.scenario.workload,
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
            records=request.records,
            folder=request.out,
            budget=budget,
            reporter=reporter,
        )
    return TuneOutcome(result=result, records=launched.file, proofs=proofs)


def tune_loads(request: TuneRequest, reporter: Reporter) -> LoadsOutcome:
    """Race the configurations for each load, then check whether one configuration does for all.

    Args:
        request: The user's request; its budget is for all loads together.

    Raises:
        InputError: The scenario does not vary a parameter of `each`.
        CoreboundError: The scenario or the host does not allow it.
    """
    loads = _loads(load_one(request), tuple(dict.fromkeys(request.each)))
    outcomes = []
    with hold_host_for(request, reporter.notify) as budget:
        for index, load in enumerate(loads):
            left_s = budget.share(_RACES_SHARE).left_s
            of_load = replace(
                request,
                load=load,
                budget_s=left_s and max(left_s, 0.0) / (len(loads) - index),
                begin_s=time.monotonic(),
                out=request.out / "-".join(f"{name}-{value}" for name, value in load),
            )
            outcome = race(of_load, reporter)
            outcomes.append(outcome)
        results = [outcome.result for outcome in outcomes]
        checks = stored_checks(request.records, results, [])
        together = loads_result(results, checks)
        for result, key in together.unchecked:
            checks.setdefault(result.run.id, []).append(
                _check(result, key, request, budget, reporter)
            )
    return LoadsOutcome(outcomes=tuple(outcomes), loads=loads_result(results, checks))


def _loads(
    loaded: LoadedScenario, each: tuple[str, ...]
) -> tuple[tuple[tuple[str, str], ...], ...]:
    """The values of these parameters that cells have together, in their order."""
    for name in each:
        values = {dict(cell.axes)[name] for cell in loaded.cells if name in dict(cell.parameters)}
        if not values:
            raise InputError(
                what=f"the scenario does not vary the parameter `{name}`.",
                where=f"--each {name}",
                fix="Name a parameter with several values in `matrix.parameters`.",
            )
    return tuple(
        dict.fromkeys(
            tuple((name, dict(cell.axes)[name]) for name in each) for cell in loaded.cells
        )
    )


def _check(
    result: TuneResult, key: str, request: TuneRequest, budget: Budget, reporter: Reporter
) -> TuneResult:
    """Launch the recommended configuration of a load and the common one, as after a race."""
    recommended = result.recommended
    if recommended is None:
        raise ValueError("only a load with a recommendation has a common configuration")
    reporter.notify(
        f"Comparing {names(result)[recommended.key]} with {names(result)[key]}"
        f" for {load_text(result.tuning)}."
    )
    prepared = again(result, {recommended.key, key}, recommended, request, reporter.notify)
    launched = execute_run(preflight(prepared, reporter), budget, reporter)
    return analyse_tuning(launched.run, launched.launches)


def _prepare(request: TuneRequest, notify: Notify) -> PreparedRun:
    candidates, tuning = _candidates(load_one(request), request, notify)

    def plan(tuning: RaceSetup, seed: int | None) -> tuple[Run, tuple[Task, ...]]:
        plain = replace(request, profile=None, only=(), seed=seed)
        run, (task,) = plan_run((candidates,), plain, notify)
        return replace(run, tuning=tuning), (replace(task, tuning=tuning),)

    run, tasks = plan(tuning, request.seed)
    folder = documents.tunes_folder(request.records)
    if request.resume:
        same = [
            (file, before)
            for file, before in recorded_runs(folder / run.host.id, notify)
            if before.tuning is not None
            and before.tuning.recommended is None
            and before.tuning.objective == tuning.objective
        ]
        resumable = find_resumable(
            same,
            lambda before: plan(before.tuning or tuning, before.seed),
            notify,
            operators=False,
        )
        if resumable is not None:
            return resumable
        notify("Starting a new race: no interrupted one has the same candidates.")
    return PreparedRun(run=run, file=jsonl.file_of(run, folder), tasks=tasks)


def load_one(request: TuneRequest) -> LoadedScenario:
    """The one scenario of a request, with the cells of its load.

    Raises:
        InputError: There are several scenarios, or a file cannot be read.
    """
    loaded = load_scenarios(request.files, request.only, request.profile)
    if len(loaded) != 1:
        names = ", ".join(scenario.scenario.name for scenario in loaded)
        raise InputError(
            what=f"one scenario can be tuned at a time, and these are {len(loaded)}: {names}.",
            where="corebound tune",
            fix="Name one scenario file.",
        )
    (only,) = loaded
    cells = tuple(cell for cell in only.cells if set(request.load) <= set(cell.axes))
    return replace(only, cells=cells)


def _candidates(
    loaded: LoadedScenario, request: TuneRequest, notify: Notify
) -> tuple[LoadedScenario, RaceSetup]:
    """The scenario whose cells race: first all candidates, then those within `max_candidates`."""
    objective = _objective(loaded, request)
    space = search_space(
        loaded.scenario,
        loaded.cells,
        discovery.live_topology(),
        objective=objective,
        bound_ms=request.bound_ms,
        vary=request.vary,
        profile=request.profile,
        blas_layers=_blas_layers(loaded),
        follows_threads=follows_threads(loaded.scenario, loaded.cells[0], loaded.folder),
    )
    if not space.varies_threads:
        notify(_NO_THREADS)

    def with_candidates(found: Sequence[Choice]) -> LoadedScenario:
        path = display_path(loaded.path)
        scenario = load_document(space.with_candidates(found), path)
        return replace(loaded, scenario=scenario, cells=expand(scenario, path))

    found = space.found[:MOST_CANDIDATES]
    everything = with_candidates(found)
    plain = replace(request, profile=None, only=())
    _, (task,) = plan_run((everything,), plain, notify)
    launched = [
        index
        for index, planned in enumerate(task.planned)
        if planned.unfit is None and planned.duplicate_of is None
    ]
    unfit = next((planned.unfit for planned in task.planned if planned.unfit is not None), None)
    if not launched and unfit is not None:
        where = display_path(loaded.path)
        raise HostError(what=f"nothing can be launched: {unfit.what}", where=where, fix=unfit.fix)
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
    rule = _rule(task.planned[0].measure, request.budget_s)
    tuning = RaceSetup(objective=objective, rule=rule, not_tried=not_tried, load=space.load)
    return with_candidates(kept) if left_out else everything, tuning


def _objective(loaded: LoadedScenario, request: TuneRequest) -> Objective:
    """What to compare: by default the metric, if the scenario's command reports one."""
    if loaded.scenario.metrics and request.objective is None:
        return "metric"
    if OBJECTIVES[request.aim].needs_metric and not loaded.scenario.metrics:
        raise InputError(
            what=f"{loaded.scenario.name} has no metric.",
            where=f"--objective {request.aim}",
            fix="Add `metric:` to the scenario, or name another objective.",
        )
    return request.aim


def _rule(measure: Measure, budget_s: float | None) -> RaceRule:
    return RaceRule(
        margin=measure.margin,
        max_blocks=max(measure.launches.max, _LEAST_BLOCKS),
        confirm_blocks=max(measure.launches.min, _USUAL_FRESH),
        budget_s=None if budget_s is None else RACE_SHARE * budget_s,
        screen_iterations=0 if budget_s is None else _SCREEN_ITERATIONS,
    )


def _blas_layers(loaded: LoadedScenario) -> tuple[str, ...]:
    """How the BLAS of a scenario's NumPy makes threads; nothing without NumPy."""
    if all(cell.runtime.wait_policy != "blas" for cell in loaded.cells):
        return ()
    if any(dict(cell.parameters).get("blas") == "mkl" for cell in loaded.cells):
        return ("intel",)  # a built-in workload loads it beside NumPy's own
    made = filter(None, find_environments((loaded,), Path.cwd()).values())
    return tuple(layer for environment in made for layer in blas_layers(environment.python))


def _forecast(prepared: PreparedRun, task: Task, tuning: RaceSetup, records: Path) -> str:
    """How long an answer takes, by the last race of the same kind or a guess."""
    run, cells, rule = prepared.run, task.raced.cells, tuning.rule
    for stored in latest_tunings(records, []):
        before = stored.run
        if (before.host.id, _kind_of(before)) == (run.host.id, _kind_of(run)):
            durations_s = _durations_s(stored)
            if durations_s:
                launch_s = statistics.fmean(durations_s)
                return forecast_note(len(cells), launch_s, rule, since=before.started_at)
    keys = {cell.key for cell in cells}
    usual = guess([planned for planned in task.planned if planned.cell.key in keys])
    return forecast_note(len(cells), usual.launch_s if usual else 0.0, rule)


def _durations_s(stored: jsonl.StoredRun) -> list[float]:
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


def forecast_note(
    candidates: int, launch_s: float, rule: RaceRule, *, since: str | None = None
) -> str:
    """How long an answer takes at least, before the first launch.

    Args:
        candidates: How many configurations take part.
        launch_s: The expected duration of a launch, in seconds.
        since: When the race started that this is judged by; None for a guess.
    """
    text, least = f"{count(candidates, 'configuration')} take part.", candidates
    if has_screening(rule, candidates):
        # As many as the budget has time for, the most promising first.
        text, least = f"{text} Short launches choose which of them race.", 2
    launches = least + least_fresh_launches(least)
    text += f" An answer needs at least {launches} launches"
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
    """
    budget_s, a_launch = rule.whole_budget_s, f"A launch takes about {_about(launch_s)}"
    if budget_s is None:
        usual = 2 * candidates + rule.confirm_blocks * min(FINALISTS, candidates)
        return (
            f"{a_launch}, so two blocks of {candidates} and all fresh launches take"
            f" {_about(usual * launch_s)}. `--budget` limits the time."
        )
    if budget_s < (smallest := 2 + least_fresh_launches(2)) * launch_s:
        return (
            f"warning: the budget is too short for an answer. {a_launch}, and {smallest} launches"
            f" are needed: {_about(smallest * launch_s)}. Use a larger `--budget`."
        )
    if (with_time := screened_with_time(rule, launch_s)) < candidates:
        return (
            f"{a_launch}, so the budget has time for about {with_time} of the {candidates}"
            " configurations, the most promising ones. All need"
            f" {_about(least_budget_s(candidates, launch_s))}."
        )
    return None


def _about(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


class _RaceObserver:
    """Passes the events of a run on, and says after each block who is still in the race."""

    def __init__(
        self,
        notify: Notify,
        task: Task,
        tuning: RaceSetup,
        done: Sequence[Launch],
        observer: Observer,
    ) -> None:
        self.started, self.tick = observer.started, observer.tick
        self._observer_ended = observer.ended
        self._notify = notify
        self._task = task
        self._tuning = tuning
        self._raced = task.raced
        self._launches: dict[str, dict[int, Launch]] = {}
        self._summaries: dict[str, LaunchSummary] = {}
        for launch in done:
            self._add(launch)
        self._state = self._race_state()

    def ended(self, launch: Launch) -> None:
        """A launch has ended; at the end of a block, say who is left."""
        self._observer_ended(launch)
        if not self._launches and launch.status == "ok":
            note = budget_note(launch.duration_ns / 1e9, len(self._raced.cells), self._tuning.rule)
            if note is not None:
                self._notify(note)
        self._add(launch)
        before = self._state
        keys = before.keys(before.complete_blocks, self._tuning.rule.confirm_blocks)
        if before.finalists is None and all(
            before.complete_blocks in self._launches.get(key, {}) for key in keys
        ):
            self._state = self._race_state()
            self._notify(race_line(before, self._state, self._raced))

    def _add(self, launch: Launch) -> None:
        takes_part = any(cell.key == launch.cell.key for cell in self._raced.cells)
        if launch.kind == "measure" and takes_part and not is_refused(launch):
            self._launches.setdefault(launch.cell.key, {})[launch.block] = launch

    def _race_state(self) -> RaceState:
        return race_state(self._raced, self._launches, self._tuning, self._summarised)

    def _summarised(self, launch: Launch) -> LaunchSummary:
        if launch.id not in self._summaries:
            warmup = self._task.scenario.measure.warmup
            self._summaries[launch.id] = summarise_launch(launch, warmup)
        return self._summaries[launch.id]
