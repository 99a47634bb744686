"""Schedules a run: launches cells in randomized blocks, and records each launch as it ends."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, NoReturn, Protocol

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.tuning import Contest, contest
from corebound.launch.launch import LaunchResult
from corebound.planning.models import CannotRun
from corebound.planning.plan import PlannedCell, interleave_groups, shorten_pilot
from corebound.records.launch_record import Kind, Launch
from corebound.records.run_record import Run
from corebound.records.telemetry import Disturbance
from corebound.records.tuning import Tuning
from corebound.runner.race import TaskRace
from corebound.runner.screening import compare_busy_threads, screen
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import baselines_of
from corebound.scenario.models import Scenario
from corebound.stats.interference import is_refused
from corebound.stats.launch_summary import (
    CellSummary,
    LaunchSummary,
    combine_launches,
    summarise_launch,
)
from corebound.stats.pilot import PilotLaunches, worthwhile_iterations
from corebound.stats.sample_size import most_informative_cells, unfinished


def block_order(keys: Iterable[str], *, seed: int, scenario: str, block: int) -> tuple[str, ...]:
    """Shuffle the cells of one scenario for one block.

    The order includes cells that are not launched in this block, so a resumed run uses the
    same order.

    Args:
        keys: The keys of all the scenario's cells.
        seed: The run's seed.
        scenario: The scenario's name; each scenario is shuffled separately.
        block: The block's number, from 0.
    """

    def digest(key: str) -> bytes:
        return hashlib.sha256(f"{seed}/{scenario}/{block}/{key}".encode()).digest()

    return tuple(sorted(keys, key=digest))


class Task(Struct, frozen=True, kw_only=True):
    """One scenario of a run, with all its planned cells.

    `turns` is the number of blocks launched before the next scenario's turn. Scenarios that
    need launches most get more turns, because time may not suffice for all. With `tuning`, the
    cells are raced: those that are slower are launched no more.
    """

    scenario: Scenario
    planned: tuple[PlannedCell, ...]
    turns: int = 1
    tuning: Tuning | None = None

    @property
    def duplicates(self) -> dict[str, str]:
        """The keys of the cells that are not launched, with those of the cells launched instead."""
        return {
            planned.cell.key: planned.duplicate_of.key
            for planned in self.planned
            if planned.duplicate_of is not None
        }

    @property
    def contest(self) -> Contest:
        """The cells of a race."""
        return contest(
            self.scenario,
            [planned.cell for planned in self.planned],
            [
                planned.cell
                for planned in self.planned
                if planned.unfit is None and planned.duplicate_of is None
            ],
        )


# The first launches iterate for at most this share of a budget, all cells together. So there is
# time for their start, and for a second block, without which there is no interval.
_PILOT_SHARE = 0.25


def within_budget(tasks: Sequence[Task], budget_s: float | None) -> tuple[Task, ...]:
    """The tasks, with shorter first launches if the budget is short.

    Args:
        tasks: What to measure.
        budget_s: The time for all of it, in seconds; None is no limit.
    """
    cells = sum(
        planned.unfit is None and planned.duplicate_of is None
        for task in tasks
        for planned in task.planned
    )
    if budget_s is None or not cells:
        return tuple(tasks)
    most_s = _PILOT_SHARE * budget_s / cells
    return tuple(
        replace(task, planned=tuple(shorten_pilot(one, most_s) for one in task.planned))
        for task in tasks
    )


class Job(Struct, frozen=True, kw_only=True):
    """One launch to make: its cell, its kind and its record id.

    `attempt` is the number of earlier launches for the same place that were refused, which is
    to say discarded as disturbed. `name` is the record id of the first attempt. `iterations` is
    how many each worker times; None: as many as planned.
    """

    name: str
    kind: Kind
    block: int
    position: int
    planned: PlannedCell
    attempt: int = 0
    iterations: int | None = None

    @property
    def id(self) -> str:
        """The id of its record, unique within the run."""
        return f"{self.name}-again-{self.attempt}" if self.attempt else self.name


# The fields that a record takes over from the launch's result.
_AS_IN_RESULT = tuple(
    name
    for name in LaunchResult.__struct_fields__
    if name not in {"duration_ns", "overhead_ns", "trace"}
)

# A launch that takes so many times as long as the longest before it hangs; even a busy host makes
# none so slow. The least limit is enough to start any framework on it.
_HANGING = 10.0
_LEAST_LIMIT_S = 60.0
_NO_TIME = CannotRun(what="the budget has no time for it", fix="Use a larger --budget.")
# Fewer launches say nothing about how much launches differ.
_LEAST_PILOT_LAUNCHES = 2
# There is no interval after fewer blocks.
_LEAST_BLOCKS = 2


class ScenarioProgress:
    """Tracks one task's finished launches, and determines the remaining ones."""

    def __init__(self, task: Task) -> None:
        self.scenario = task.scenario
        self._race = (
            TaskRace(contest=task.contest, tuning=task.tuning, summarise=self._summarised)
            if task.tuning is not None
            else None
        )
        duplicates = task.duplicates
        self.by_key = {
            planned.cell.key: planned
            for planned in task.planned
            if planned.cell.key not in duplicates
        }
        self._positions = {key: position for position, key in enumerate(self.by_key)}
        self._launches: dict[str, dict[int, Launch]] = {key: {} for key in self.by_key}
        self._refused: dict[str, list[int]] = {key: [] for key in self.by_key}
        self._alternated: set[tuple[int, str]] = set()
        self._profiled: set[str] = set()
        self._alone: set[str] = set()
        self._refused_profiles: Counter[str] = Counter()
        self._summaries: dict[str, LaunchSummary] = {}
        cells = tuple(planned.cell for planned in task.planned)
        baselines = baselines_of(cells, cells, task.scenario)
        self._baselines = {
            cell.key: measured
            for cell, baseline in zip(cells, baselines, strict=True)
            if cell.key in self.by_key
            and baseline is not None
            and (measured := duplicates.get(baseline.key, baseline.key)) != cell.key
        }

    @property
    def is_race(self) -> bool:
        """Whether its cells are raced."""
        return self._race is not None

    def add(self, launch: Launch, *, resumed: bool = False) -> None:
        """Add a finished launch, if it belongs to this task.

        A run that was resumed repeats those that were killed from outside like refused ones.
        """
        is_repeated = is_refused(launch) or (resumed and launch.ended_by == "kill")
        if launch.cell.scenario != self.scenario.name or launch.cell.key not in self._launches:
            return
        if launch.kind == "profile":
            if is_repeated:
                self._refused_profiles[launch.cell.key] += 1
            else:
                self._profiled.add(launch.cell.key)
            return
        if launch.pauses is not None and not launch.pauses.allow_alternation:
            self._alone.add(launch.cell.key)
        if is_repeated:
            self._refused[launch.cell.key].append(launch.block)
            if launch.alternated:
                self._alternated.add((launch.block, launch.cell.key))
        else:
            self._launches[launch.cell.key][launch.block] = launch

    def would_fail_again(self, result: LaunchResult, job: Job) -> bool:
        """Whether a launch failed by an error of its own, and no other of its cell succeeded."""
        by_block = self._launches[job.planned.cell.key]
        return result.ended_by == "error" and all(one.status != "ok" for one in by_block.values())

    def has_launched(self, block: int, key: str) -> bool:
        """Whether a cell has been launched in this block, not counting refused launches."""
        return block in self._launches[key]

    def is_over(self, block: int, key: str) -> bool:
        """Whether a cell is launched no more in this block.

        A cell is left out of a block if its launch was refused and the baseline that it alternated
        with was not. One more launch there would need one more of the baseline; both have it in
        a later block. One that no longer alternates needs none.
        """
        is_left_out = (
            (block, key) in self._alternated
            and key not in self._alone
            and self._has_baseline(block, key)
        )
        return self.has_launched(block, key) or is_left_out

    def _has_baseline(self, block: int, key: str) -> bool:
        baseline = self._baselines.get(key)
        return baseline in self._launches and self.has_launched(block, baseline)

    def baseline_among(self, jobs: Sequence[Job]) -> int | None:
        """Which of several jobs that alternate is the baseline of the others; None without one."""
        keys = [job.planned.cell.key for job in jobs]
        found = {self._baselines[key] for key in keys if key in self._baselines}
        if len(found) != 1:
            return None
        (baseline,) = found
        return keys.index(baseline) if baseline in keys else None

    def refused(self, block: int, key: str) -> int:
        """The number of refused launches of a cell in this block."""
        return self._refused[key].count(block)

    def may_refuse(self, job: Job) -> bool:
        """Whether one more launch of this cell and kind may be refused in this run."""
        key = job.planned.cell.key
        profiles, launches = self._refused_profiles[key], len(self._refused[key])
        refused = profiles if job.kind == "profile" else launches
        return refused < self.by_key[key].measure.relaunch_disturbed

    def skipped_jobs(self) -> tuple[Job, ...]:
        """The cells that do not fit the host and are not yet recorded as skipped."""
        return tuple(
            self._job_outside_blocks(key, "skipped", "measure")
            for key, planned in self.by_key.items()
            if planned.unfit is not None and not self._launches[key]
        )

    def profile_jobs(self) -> tuple[Job, ...]:
        """The cells to profile: operators are requested, informative and not yet profiled."""
        summaries = [self._summary(planned.cell, before=None) for planned in self.by_key.values()]
        return tuple(
            replace(
                self._job_outside_blocks(key, "profile", "profile"),
                attempt=self._refused_profiles[key],
            )
            for keys in most_informative_cells(summaries, self._baselines)
            for key in keys
            if self.by_key[key].measure.operators is not None and key not in self._profiled
        )

    def _job_outside_blocks(self, key: str, label: str, kind: Kind) -> Job:
        """A job that does not belong to a block."""
        position = self._positions[key]
        return Job(
            name=f"{self.scenario.name}-{label}-{position}",
            kind=kind,
            block=0,
            position=position,
            planned=self.by_key[key],
        )

    def cells_to_launch(self, block: int) -> frozenset[str]:
        """The keys of the cells to launch in `block`, based only on earlier blocks.

        A resumed run ignores later blocks here, so it decides as the original run did.
        """
        if self._race is not None:
            return self._race.cells_to_launch(block, self._launches)
        fit = {key: planned for key, planned in self.by_key.items() if planned.unfit is None}
        if not fit:
            return frozenset()
        measure = next(iter(fit.values())).measure
        return unfinished(
            [self._summary(planned.cell, before=block) for planned in fit.values()],
            {key: base for key, base in self._baselines.items() if key in fit and base in fit},
            measure.launches,
            margin=measure.margin,
        )

    def has_no_time(self, jobs: Sequence[Job]) -> bool:
        """Whether the budget has no time for a configuration's first launch in a race."""
        race = self._race
        return race is not None and all(
            job.block == 0 and race.has_no_time(job.planned.cell.key, self._launches)
            for job in jobs
        )

    def capped(self, job: Job) -> Job:
        """The job, with a shorter time limit than the scenario's, if earlier launches allow it."""
        planned = job.planned
        if self._race is not None and job.block == 0:
            return replace(job, planned=self._race.limited(planned, self._launches))
        limit_s = min(self._usual_limit_s(job), planned.measure.timeout_s)
        measure = planned.measure.model_copy(update={"timeout_s": limit_s})
        return replace(job, planned=replace(planned, measure=measure))

    def _usual_limit_s(self, job: Job) -> float:
        """A time that a launch takes only if it hangs: a multiple of the longest `ok` launch."""
        before = [
            (launch.duration_ns / 1e9, len(worker.wall_ns))
            for by_block in self._launches.values()
            for launch in by_block.values()
            if launch.status == "ok" and launch.block < job.block
            for worker in launch.workers
        ]
        if not before:
            return math.inf
        longest_s, iterations = max(before)
        # The pilot may choose more iterations than the first launches had.
        growth = max((job.iterations or 0) / max(iterations, 1), 1.0)
        return max(_HANGING * longest_s * growth, _LEAST_LIMIT_S)

    def iterations(self, block: int) -> dict[str, int]:
        """How many iterations launches in `block` have, for cells that leave it to the pilot.

        Like `cells_to_launch`, it depends on earlier blocks only.
        """
        pilots = [
            pilot
            for key, planned in self.by_key.items()
            if planned.unfit is None
            and planned.traffic is None
            and planned.measure.iterations == "auto"
            and (pilot := self._pilot(key, before=block)) is not None
        ]
        return worthwhile_iterations(pilots, self._baselines)

    def _pilot(self, key: str, *, before: int) -> PilotLaunches | None:
        """What the launches of a cell took before a block; None with fewer than two."""
        planned = self.by_key[key]
        summary = self._summary(planned.cell, before=before)
        ids = {launch.launch for launch in summary.launches}
        launches = [launch for launch in self._launches[key].values() if launch.id in ids]
        if len(ids) < _LEAST_PILOT_LAUNCHES:
            return None
        return PilotLaunches(
            summary=summary,
            setup_ns=statistics.median(map(_besides_iterations_ns, launches)),
            iterations=statistics.median(
                len(worker.wall_ns) for launch in launches for worker in launch.workers
            ),
            workers=len(planned.requests),
        )

    def interleave(self, jobs: Sequence[Job]) -> tuple[tuple[Job, ...], ...]:
        """Group a block's jobs, in order: those that alternate together, the others alone."""
        by_key = {job.planned.cell.key: job for job in jobs}
        groups = interleave_groups(
            [job.planned for job in jobs], self._baselines, alone=self._alone
        )
        return tuple(tuple(by_key[planned.cell.key] for planned in group) for group in groups)

    def required_launches(self, *, after: int) -> int:
        """How many launches are certain to be needed, in this block and later ones."""
        if self._race is not None:
            return sum(not self.has_launched(after, key) for key in self.cells_to_launch(after))
        return sum(
            max(0, planned.measure.launches.min - len(self._launches[key]))
            for key, planned in self.by_key.items()
            if planned.unfit is None and after < planned.measure.launches.min
        )

    def _summary(self, cell: Cell, *, before: int | None) -> CellSummary:
        """The summary of the cell's launches in all blocks, or in those before block `before`."""
        launches = [
            record
            for block, record in self._launches[cell.key].items()
            if before is None or block < before
        ]
        summaries = [self._summarised(record) for record in launches if record.status == "ok"]
        return combine_launches(cell, summaries, launches)

    def _summarised(self, record: Launch) -> LaunchSummary:
        """The summary of an `ok` launch."""
        if record.id not in self._summaries:
            warmup = self.by_key[record.cell.key].measure.warmup
            self._summaries[record.id] = summarise_launch(record, warmup)
        return self._summaries[record.id]


def _besides_iterations_ns(launch: Launch) -> int:
    """What a launch took beside its iterations, without its pauses for others."""
    iterations_ns = max((sum(worker.wall_ns) for worker in launch.workers), default=0)
    paused_ns = launch.pauses.duration_ns if launch.pauses else 0
    return max(launch.duration_ns - paused_ns - iterations_ns, 0)


def _with_own_limit(result: LaunchResult, job: Job, progress: ScenarioProgress) -> LaunchResult:
    """The result; if it passed a limit shorter than the scenario's, the fix says why."""
    own_s = progress.by_key[job.planned.cell.key].measure.timeout_s
    if result.status != "timed-out" or job.planned.measure.timeout_s >= own_s or job.block == 0:
        return result
    return replace(
        result,
        fix="Earlier launches took a tenth of that or less: it seems to hang. Its output may show"
        " where.",
    )


def _with_consequence(result: LaunchResult, job: Job, progress: ScenarioProgress) -> LaunchResult:
    """The result; if it decides whether the cell is launched again, the fix says so."""
    if progress.would_fail_again(result, job):
        then = "It is not launched again, because it would fail again."
    elif result.ended_by == "kill":
        then = "Something outside killed it; `dmesg` shows whether memory was short. A resumed run"
        then += " launches it again."
    else:
        return result
    return replace(result, fix=f"{result.fix or ''} {then}".lstrip())


class Observer(Protocol):
    """Receives the events of a run: between launches, and periodically during a launch."""

    def started(self, job: Job, *, left: Mapping[str, int]) -> None:
        """A launch starts; `left` launches of each scenario, with this one, are certain."""

    def ended(self, launch: Launch) -> None:
        """A launch has ended and is recorded on disk; also called for a skipped cell."""

    def tick(self) -> None:
        """Called periodically during a launch."""


class Clock(Struct, frozen=True, kw_only=True):
    """The clocks of the runner: monotonic seconds, and the date and time in UTC."""

    monotonic_s: Callable[[], float]
    now: Callable[[], str]


Ending = Literal["complete", "out of time"]


class Runner:
    """Measures tasks; clock, disk and launches are passed in."""

    def __init__(
        self,
        run: Run,
        tasks: Sequence[Task],
        *,
        done: Sequence[Launch],
        append: Callable[[Launch], None],
        launch: Callable[[Sequence[Job]], Sequence[LaunchResult]],
        observer: Observer,
        clock: Clock,
        budget_s: float | None,
        operators: bool,
    ) -> None:
        """Prepare a new run, or one that resumes after an interruption.

        Args:
            run: The run that the records belong to.
            tasks: The scenarios to measure.
            done: Launches of this run that are already on disk.
            append: Writes a launch to disk.
            launch: Launches one cell, or several that alternate, as `Launcher` does.
            observer: Receives the events of the run.
            clock: The clocks.
            budget_s: Start no launch after this many seconds, and none that would probably end
                further after it than now is before it; the first launches are short enough for
                two blocks. None: no limit.
            operators: Whether to profile operators where scenarios request it.
        """
        self._run = run
        self._progress = [ScenarioProgress(task) for task in within_budget(tasks, budget_s)]
        self._turns = [task.turns for task in tasks]
        self._blocks = [0 for _ in tasks]
        for launch_ in done:
            for progress in self._progress:
                progress.add(launch_, resumed=True)
        self._append = append
        self._launch_all = launch
        self._observer = observer
        self._clock = clock
        self._until_s = None if budget_s is None else clock.monotonic_s() + budget_s
        self._operators = operators
        # How long the cells that are launched together took the last time.
        self._took_s: dict[frozenset[tuple[str, str]], float] = {}

    def run(self) -> Ending:
        """Launch until no more launches are needed, or the time budget is used up.

        Raises:
            LaunchError: the supervisor has ended.
            InputError: a record could not be written.
        """
        for progress in self._progress:
            for job in progress.skipped_jobs():
                self._skip(progress, job, job.planned.unfit)
        while True:
            has_launched = False
            for index, progress in enumerate(self._progress):
                for _ in range(self._turns_now(index)):
                    keys = progress.cells_to_launch(self._blocks[index])
                    if not keys:
                        break
                    has_launched = True
                    if not self._block(progress, keys, self._blocks[index]):
                        return "out of time"
                    self._blocks[index] += 1
            if not has_launched:
                return self._profile() if self._operators else "complete"

    def _turns_now(self, index: int) -> int:
        """How many blocks of a scenario are launched before the next scenario's turn.

        A budget that ends after one block of every scenario would answer no question.
        """
        first = 0 if self._until_s is None else _LEAST_BLOCKS - self._blocks[index]
        return max(self._turns[index], first)

    def _block(self, progress: ScenarioProgress, keys: frozenset[str], block: int) -> bool:
        """Launch one block, and repeat refused launches at its end; False if out of time.

        Configurations that a race seems to have no time for are also left for the end, when more
        launches say how long one takes.
        """
        jobs = list(self._jobs(progress, keys, block))
        while jobs:
            retries: list[Job] = []
            has_launched = False
            for group in progress.interleave(jobs):
                if self._is_late(group):
                    return False
                if progress.has_no_time(group):
                    retries += group
                    continue
                has_launched = True
                capped = tuple(progress.capped(job) for job in group)
                launches = self._launch(progress, capped, left=self._required_launches())
                retries += [
                    _next_attempt(job)
                    for job, launch in zip(group, launches, strict=True)
                    if not progress.is_over(block, job.planned.cell.key)
                ]
            if not has_launched:
                for job in retries:
                    self._skip(progress, job, _NO_TIME)
                break
            jobs = retries
        return True

    def _required_launches(self) -> dict[str, int]:
        """How many launches of each scenario are certain to be needed."""
        return {
            progress.scenario.name: progress.required_launches(after=block)
            for progress, block in zip(self._progress, self._blocks, strict=True)
        }

    def _profile(self) -> Ending:
        """Profile the most informative cells after all measurements, each once per run.

        Refused profiles are repeated after all others.
        """
        jobs = [(progress, job) for progress in self._progress for job in progress.profile_jobs()]
        while jobs:
            retries: list[tuple[ScenarioProgress, Job]] = []
            for number, (progress, job) in enumerate(jobs):
                if job.planned.unprofiled is not None:
                    self._skip(progress, job, job.planned.unprofiled)
                elif self._is_late():
                    return "out of time"
                else:
                    left = Counter(other.scenario.name for other, _ in (*jobs[number:], *retries))
                    (launch,) = self._launch(progress, (job,), left=left)
                    if is_refused(launch):
                        retries.append((progress, _next_attempt(job)))
            jobs = retries
        return "complete"

    def _is_late(self, jobs: Sequence[Job] = ()) -> bool:
        """Whether less than half of the time that these launches will probably take is left."""
        if self._until_s is None:
            return False
        return self._clock.monotonic_s() + self._expected_s(jobs) / 2 > self._until_s

    def _expected_s(self, jobs: Sequence[Job]) -> float:
        """What these launches took before; in a first block, as much as other cells took."""
        if (took_s := self._took_s.get(_cells_of(jobs))) is not None:
            return took_s
        each_s = [took_s / len(cells) for cells, took_s in self._took_s.items()]
        return statistics.median(each_s) * len(jobs) if each_s else 0.0

    def _jobs(self, progress: ScenarioProgress, keys: frozenset[str], block: int) -> Iterator[Job]:
        """The remaining launches of one block, in order."""
        keys_in_order = block_order(
            progress.by_key, seed=self._run.seed, scenario=progress.scenario.name, block=block
        )
        iterations = progress.iterations(block)
        for position, key in enumerate(keys_in_order):
            if key in keys and not progress.is_over(block, key):
                job = Job(
                    name=f"{progress.scenario.name}-{block}-{position}",
                    kind="measure",
                    block=block,
                    position=position,
                    planned=progress.by_key[key],
                    iterations=iterations.get(key),
                )
                yield replace(job, attempt=progress.refused(block, key))

    def _skip(self, progress: ScenarioProgress, job: Job, why: CannotRun | None) -> None:
        result = LaunchResult(
            status="skipped", reason=why.what if why else None, fix=why.fix if why else None
        )
        record = self._record(job, result, started_at=self._clock.now(), spent_ns=0)
        self._add(progress, replace(record, placement=None, commands=()))

    def _launch(
        self, progress: ScenarioProgress, jobs: Sequence[Job], *, left: Mapping[str, int]
    ) -> tuple[Launch, ...]:
        """Launch one cell, or several that alternate, and record all of them."""
        for job in jobs:
            self._observer.started(job, left=left)
        started_at = self._clock.now()
        began_s = self._clock.monotonic_s()
        results = tuple(
            _with_own_limit(_with_consequence(result, job, progress), job, progress)
            for result, job in zip(self._launch_all(jobs), jobs, strict=True)
        )
        took_s = self._clock.monotonic_s() - began_s
        self._took_s[_cells_of(jobs)] = took_s
        spent_ns = round(took_s * 1e9)
        may_refuse = all(progress.may_refuse(job) for job in jobs)
        baseline = progress.baseline_among(jobs)
        measure = jobs[0].planned.measure
        screened = screen(
            results,
            may_refuse=may_refuse,
            warmup=measure.warmup,
            kind=jobs[0].kind,
            # A race drops cells by blocks that all of them have.
            baseline=None if progress.is_race else baseline,
        )
        if baseline is not None and measure.alternate != "always":
            screened = compare_busy_threads(screened, baseline, may_refuse=may_refuse)
        return tuple(
            self._add(
                progress,
                self._record(
                    job,
                    result,
                    started_at=started_at,
                    spent_ns=spent_ns,
                    disturbance=disturbance,
                    alternated=tuple(
                        other.id
                        for other, (other_result, _) in zip(jobs, screened, strict=True)
                        if other is not job and result.pauses and other_result.pauses
                    ),
                ),
            )
            for job, (result, disturbance) in zip(jobs, screened, strict=True)
        )

    def _record(
        self,
        job: Job,
        result: LaunchResult,
        *,
        started_at: str,
        spent_ns: int,
        disturbance: Disturbance | None = None,
        alternated: tuple[str, ...] = (),
    ) -> Launch:
        """The record of a launch: its result, and what only the runner knows."""
        return Launch(
            **{name: getattr(result, name) for name in _AS_IN_RESULT},
            id=job.id,
            kind=job.kind,
            run=self._run.id,
            block=job.block,
            position=job.position,
            cell=job.planned.cell,
            placement=job.planned.placement,
            commands=job.planned.commands,
            started_at=started_at,
            duration_ns=spent_ns,
            overhead_ns=result.overhead_ns + spent_ns - result.duration_ns,
            trace=result.trace.name if result.trace else None,
            attempt=job.attempt,
            disturbance=disturbance,
            alternated=alternated,
        )

    def _add(self, progress: ScenarioProgress, record: Launch) -> Launch:
        self._append(record)
        progress.add(record)
        self._observer.ended(record)
        return record


def is_complete(
    run: Run, tasks: Sequence[Task], done: Sequence[Launch], *, operators: bool
) -> bool:
    """Whether the run, if resumed, would have nothing left to launch or record.

    Args:
        run: The run that the records belong to.
        tasks: The scenarios that it measures.
        done: Its launches that are on disk.
        operators: Whether operators are profiled where scenarios request it.
    """

    def stop(*_arguments: object, **_options: object) -> NoReturn:
        raise _UnfinishedError

    runner = Runner(
        run,
        tasks,
        done=done,
        append=stop,
        launch=stop,
        observer=_SilentObserver(),
        clock=Clock(monotonic_s=lambda: 0.0, now=lambda: run.started_at),
        budget_s=None,
        operators=operators,
    )
    try:
        runner.run()
    except _UnfinishedError:
        return False
    return True


class _UnfinishedError(Exception):
    """The run has something left to launch or record."""


class _SilentObserver:
    """An observer that ignores all events."""

    def started(self, job: Job, *, left: Mapping[str, int]) -> None:
        """Do nothing."""

    def ended(self, launch: Launch) -> None:
        """Do nothing."""

    def tick(self) -> None:
        """Do nothing."""


def _cells_of(jobs: Sequence[Job]) -> frozenset[tuple[str, str]]:
    return frozenset((job.planned.cell.scenario, job.planned.cell.key) for job in jobs)


def _next_attempt(job: Job) -> Job:
    """The next attempt at the same launch, after a refused one."""
    return replace(job, attempt=job.attempt + 1)
