"""Schedules a run: launches cells in randomized blocks, and records each launch as it ends."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, NoReturn, Protocol

from msgspec import Struct
from msgspec.structs import replace

from corebound.launch.launch import LaunchResult
from corebound.planning.models import CannotRun
from corebound.planning.plan import PlannedCell, interleave_groups
from corebound.records.launch_record import GOES_ON, Kind, Launch
from corebound.records.run_record import Run
from corebound.records.telemetry import Disturbance
from corebound.scenario.cell import Cell
from corebound.scenario.models import Scenario
from corebound.scenario.select import baselines_of
from corebound.stats.interference import disturbance, is_refused, is_too_much, marked
from corebound.stats.launch_summary import (
    CellSummary,
    LaunchSummary,
    Warmup,
    counted_from,
    gather,
    summarise_launch,
)
from corebound.stats.sample_size import telling, unfinished


def order(keys: Iterable[str], *, seed: int, scenario: str, block: int) -> tuple[str, ...]:
    """Shuffle the cells of one scenario for one block.

    The order includes cells that are not launched in this block, so a resumed run uses the
    same order.

    Args:
        keys: The keys of all the scenario's cells.
        seed: The run's seed.
        scenario: The scenario's name; each scenario is shuffled separately.
        block: The block's number, from 0.
    """

    def drawn(key: str) -> bytes:
        return hashlib.sha256(f"{seed}/{scenario}/{block}/{key}".encode()).digest()

    return tuple(sorted(keys, key=drawn))


class Task(Struct, frozen=True, kw_only=True):
    """One scenario of a run, with all its planned cells.

    `turns` is the number of blocks launched before the next scenario's turn. Scenarios that
    need launches most get more turns, because time may not suffice for all.
    """

    scenario: Scenario
    planned: tuple[PlannedCell, ...]
    turns: int = 1


class Job(Struct, frozen=True, kw_only=True):
    """One launch to make: its cell, its kind and its record id.

    `attempt` is the number of earlier launches for the same place that were refused, which is
    to say discarded as disturbed. `name` is the record id of the first attempt.
    """

    name: str
    kind: Kind
    block: int
    position: int
    planned: PlannedCell
    attempt: int = 0

    @property
    def id(self) -> str:
        """The id of its record, unique within the run."""
        return f"{self.name}-again-{self.attempt}" if self.attempt else self.name


Judged = tuple[LaunchResult, Disturbance | None]

_MEND = f"{GOES_ON} `corebound doctor` names what else uses this host."


def judged(
    outcomes: Sequence[LaunchResult],
    *,
    may_refuse: bool,
    warmup: Warmup = "auto",
    kind: Kind = "measure",
) -> tuple[Judged, ...]:
    """Mark the disturbed iterations, and refuse launches with too many of them.

    If one of several launches that alternated is refused, all are: they are useful only
    together.

    Args:
        outcomes: The results of one launch, or of several that alternated.
        may_refuse: Whether the launches may be repeated.
        warmup: `Measure.warmup`: only iterations after the warm-up count towards the limit.
        kind: The kind of the launches.

    Returns:
        For each launch its result, with status `invalid` if refused, and its disturbance.
    """
    found = tuple(_marked(outcome, warmup) for outcome in outcomes)
    if may_refuse and any(_is_spoilt(*one, kind) for one in found):
        return tuple(_refused(*one, kind) for one in found)
    return found


def _marked(outcome: LaunchResult, warmup: Warmup) -> Judged:
    host = outcome.host
    if host is None:
        return outcome, None
    workers = tuple(replace(one, disturbed=marked(one, host)) for one in outcome.workers)
    # Detecting the warm-up is slow, and most launches are not disturbed.
    is_hit = any(one.disturbed for one in workers)
    warm = [counted_from(one, warmup) for one in workers] if is_hit else ()
    return replace(outcome, workers=workers), disturbance(workers, host, warm=warm)


def _is_spoilt(outcome: LaunchResult, found: Disturbance | None, kind: Kind) -> bool:
    """Whether a disturbance spoilt the launch; a suspended launch may also have timed out."""
    if outcome.status == "timed-out":
        return found is not None and "suspension" in found.by
    return outcome.status == "ok" and is_too_much(found, outcome.host, kind)


def _refused(outcome: LaunchResult, found: Disturbance | None, kind: Kind) -> Judged:
    is_spoilt = _is_spoilt(outcome, found, kind)
    if outcome.status != "ok" and not is_spoilt:
        return outcome, found
    if is_spoilt and found is not None:
        reason = f"it was disturbed from outside: {'; '.join(found.evidence)}."
    else:
        reason = "a launch that it alternated with was disturbed from outside."
    found = found or Disturbance(share=0.0, by=(), evidence=())
    refused = replace(outcome, status="invalid", reason=reason, fix=_MEND, evidence=found.evidence)
    return refused, replace(found, refused=True)


class ScenarioProgress:
    """Tracks one task's finished launches, and determines the remaining ones."""

    def __init__(self, task: Task) -> None:
        self.scenario = task.scenario
        self.by_key = {planned.cell.key: planned for planned in task.planned}
        self._places = {key: place for place, key in enumerate(self.by_key)}
        self._done: dict[str, dict[int, Launch]] = {key: {} for key in self.by_key}
        self._refused: dict[str, list[int]] = {key: [] for key in self.by_key}
        self._profiled: set[str] = set()
        self._refused_profiles: Counter[str] = Counter()
        self._summaries: dict[str, LaunchSummary] = {}
        cells = tuple(planned.cell for planned in task.planned)
        baselines = baselines_of(cells, cells, task.scenario)
        self._baselines = {
            cell.key: baseline.key
            for cell, baseline in zip(cells, baselines, strict=True)
            if baseline is not None and baseline.key != cell.key
        }

    def enter(self, launch: Launch) -> None:
        """Add a finished launch, if it belongs to this task."""
        if launch.cell.scenario != self.scenario.name or launch.cell.key not in self._done:
            return
        if launch.kind == "profile" and is_refused(launch):
            self._refused_profiles[launch.cell.key] += 1
        elif launch.kind == "profile":
            self._profiled.add(launch.cell.key)
        elif is_refused(launch):
            self._refused[launch.cell.key].append(launch.block)
        else:
            self._done[launch.cell.key][launch.block] = launch

    def has(self, block: int, key: str) -> bool:
        """Whether a cell has been launched in this block, not counting refused launches."""
        return block in self._done[key]

    def refused(self, block: int, key: str) -> int:
        """The number of refused launches of a cell in this block."""
        return self._refused[key].count(block)

    def may_refuse(self, job: Job) -> bool:
        """Whether one more launch of this cell and kind may be refused in this run."""
        key = job.planned.cell.key
        profiles, launches = self._refused_profiles[key], len(self._refused[key])
        refused = profiles if job.kind == "profile" else launches
        return refused < self.by_key[key].measure.relaunch_disturbed

    def unfit(self) -> tuple[Job, ...]:
        """The cells that do not fit the host and are not yet recorded as skipped."""
        return tuple(
            self._aside(key, "skipped", "measure")
            for key, planned in self.by_key.items()
            if planned.unfit is not None and not self._done[key]
        )

    def profiles(self) -> tuple[Job, ...]:
        """The cells to profile: operators are requested, informative and not yet profiled."""
        summaries = [self._summary(planned.cell, before=None) for planned in self.by_key.values()]
        return tuple(
            replace(self._aside(key, "profile", "profile"), attempt=self._refused_profiles[key])
            for keys in telling(summaries, self._baselines)
            for key in keys
            if self.by_key[key].measure.operators is not None and key not in self._profiled
        )

    def _aside(self, key: str, word: str, kind: Kind) -> Job:
        """A job that does not belong to a block."""
        place = self._places[key]
        return Job(
            name=f"{self.scenario.name}-{word}-{place}",
            kind=kind,
            block=0,
            position=place,
            planned=self.by_key[key],
        )

    def wanted(self, block: int) -> frozenset[str]:
        """The keys of the cells to launch in `block`, based only on earlier blocks.

        A resumed run ignores later blocks here, so it decides as the original run did.
        """
        fit = {key: planned for key, planned in self.by_key.items() if planned.unfit is None}
        if not fit:
            return frozenset()
        measure = next(iter(fit.values())).measure
        return unfinished(
            [self._summary(planned.cell, before=block) for planned in fit.values()],
            {key: base for key, base in self._baselines.items() if key in fit and base in fit},
            measure.launches,
        )

    def companies(self, jobs: Sequence[Job]) -> tuple[tuple[Job, ...], ...]:
        """Group a block's jobs, in order: those that alternate together, the others alone."""
        by_key = {job.planned.cell.key: job for job in jobs}
        found = interleave_groups([job.planned for job in jobs], self._baselines)
        return tuple(tuple(by_key[one.cell.key] for one in company) for company in found)

    def certain(self, *, after: int) -> int:
        """How many launches are certain to be needed, in this block and later ones."""
        return sum(
            max(0, planned.measure.launches.min - len(self._done[key]))
            for key, planned in self.by_key.items()
            if planned.unfit is None and after < planned.measure.launches.min
        )

    def _summary(self, cell: Cell, *, before: int | None) -> CellSummary:
        """The summary of the cell's launches in all blocks, or in those before block `before`."""
        launches = [
            record
            for block, record in self._done[cell.key].items()
            if before is None or block < before
        ]
        warmup = self.by_key[cell.key].measure.warmup
        for record in launches:
            if record.status == "ok" and record.id not in self._summaries:
                self._summaries[record.id] = summarise_launch(record, warmup)
        summaries = [self._summaries[record.id] for record in launches if record.status == "ok"]
        return gather(cell, summaries, [record.status for record in launches])


class Observer(Protocol):
    """Receives the events of a run: between launches, and periodically during a launch."""

    def started(self, job: Job, *, left: int) -> None:
        """A launch starts; `left` launches, including this one, are certain to be needed."""

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
            budget_s: Start no launch after this many seconds; None: no limit.
            operators: Whether to profile operators where scenarios request it.
        """
        self._run = run
        self._ledgers = [ScenarioProgress(task) for task in tasks]
        self._turns = [task.turns for task in tasks]
        self._blocks = [0 for _ in tasks]
        for launch_ in done:
            for ledger in self._ledgers:
                ledger.enter(launch_)
        self._append = append
        self._launch_all = launch
        self._observer = observer
        self._clock = clock
        self._until_s = None if budget_s is None else clock.monotonic_s() + budget_s
        self._operators = operators

    def run(self) -> Ending:
        """Launch until no more launches are needed, or the time budget is used up.

        Raises:
            LaunchError: the supervisor has ended.
            InputError: a record could not be written.
        """
        for ledger in self._ledgers:
            for job in ledger.unfit():
                self._skip(ledger, job, job.planned.unfit)
        while True:
            begun = False
            for place, ledger in enumerate(self._ledgers):
                for _ in range(self._turns[place]):
                    keys = ledger.wanted(self._blocks[place])
                    if not keys:
                        break
                    begun = True
                    if not self._block(ledger, keys, self._blocks[place]):
                        return "out of time"
                    self._blocks[place] += 1
            if not begun:
                return self._profile() if self._operators else "complete"

    def _block(self, ledger: ScenarioProgress, keys: frozenset[str], block: int) -> bool:
        """Launch one block, and repeat refused launches at its end; False if out of time."""
        jobs = list(self._jobs(ledger, keys, block))
        while jobs:
            again = []
            for company in ledger.companies(jobs):
                if self._is_late():
                    return False
                made = self._launch(ledger, company, left=self._certain())
                again += [
                    _next_attempt(job)
                    for job, launch in zip(company, made, strict=True)
                    if is_refused(launch)
                ]
            jobs = again
        return True

    def _certain(self) -> int:
        """How many launches are certain to be needed."""
        pairs = zip(self._ledgers, self._blocks, strict=True)
        return sum(ledger.certain(after=block) for ledger, block in pairs)

    def _profile(self) -> Ending:
        """Profile the most informative cells after all measurements, each once per run.

        Refused profiles are repeated after all others.
        """
        jobs = [(ledger, job) for ledger in self._ledgers for job in ledger.profiles()]
        while jobs:
            again: list[tuple[ScenarioProgress, Job]] = []
            for done, (ledger, job) in enumerate(jobs):
                if job.planned.unprofiled is not None:
                    self._skip(ledger, job, job.planned.unprofiled)
                elif self._is_late():
                    return "out of time"
                else:
                    (launch,) = self._launch(ledger, (job,), left=len(jobs) - done + len(again))
                    if is_refused(launch):
                        again.append((ledger, _next_attempt(job)))
            jobs = again
        return "complete"

    def _is_late(self) -> bool:
        return self._until_s is not None and self._clock.monotonic_s() > self._until_s

    def _jobs(self, ledger: ScenarioProgress, keys: frozenset[str], block: int) -> Iterator[Job]:
        """The remaining launches of one block, in order."""
        every = order(
            ledger.by_key, seed=self._run.seed, scenario=ledger.scenario.name, block=block
        )
        for position, key in enumerate(every):
            if key in keys and not ledger.has(block, key):
                job = Job(
                    name=f"{ledger.scenario.name}-{block}-{position}",
                    kind="measure",
                    block=block,
                    position=position,
                    planned=ledger.by_key[key],
                )
                yield replace(job, attempt=ledger.refused(block, key))

    def _skip(self, ledger: ScenarioProgress, job: Job, why: CannotRun | None) -> None:
        self._keep(
            ledger,
            Launch(
                id=job.id,
                kind=job.kind,
                run=self._run.id,
                block=job.block,
                position=job.position,
                cell=job.planned.cell,
                status="skipped",
                reason=why.what if why else None,
                fix=why.fix if why else None,
                evidence=(),
                placement=None,
                commands=(),
                started_at=self._clock.now(),
                duration_ns=0,
                overhead_ns=0,
                looks=0,
                look_ns=0,
                workers=(),
                strays=(),
                log="",
            ),
        )

    def _launch(
        self, ledger: ScenarioProgress, jobs: Sequence[Job], *, left: int
    ) -> tuple[Launch, ...]:
        """Launch one cell, or several that alternate, and record all of them."""
        for job in jobs:
            self._observer.started(job, left=left)
        started_at = self._clock.now()
        began_s = self._clock.monotonic_s()
        outcomes = self._launch_all(jobs)
        spent_ns = round((self._clock.monotonic_s() - began_s) * 1e9)
        found = judged(
            outcomes,
            may_refuse=all(ledger.may_refuse(job) for job in jobs),
            warmup=jobs[0].planned.measure.warmup,
            kind=jobs[0].kind,
        )
        return tuple(
            self._keep(
                ledger,
                self._record(
                    job,
                    outcome,
                    started_at=started_at,
                    spent_ns=spent_ns,
                    disturbance=disturbance,
                    alternated=tuple(other.id for other in jobs if other is not job),
                ),
            )
            for job, (outcome, disturbance) in zip(jobs, found, strict=True)
        )

    def _record(
        self,
        job: Job,
        outcome: LaunchResult,
        *,
        started_at: str,
        spent_ns: int,
        disturbance: Disturbance | None,
        alternated: tuple[str, ...],
    ) -> Launch:
        return Launch(
            id=job.id,
            kind=job.kind,
            run=self._run.id,
            block=job.block,
            position=job.position,
            cell=job.planned.cell,
            status=outcome.status,
            reason=outcome.reason,
            fix=outcome.fix,
            evidence=outcome.evidence,
            placement=job.planned.placement,
            commands=job.planned.commands,
            started_at=started_at,
            duration_ns=spent_ns,
            overhead_ns=outcome.overhead_ns + spent_ns - outcome.duration_ns,
            looks=outcome.looks,
            look_ns=outcome.look_ns,
            workers=outcome.workers,
            strays=outcome.strays,
            log=outcome.log,
            trace=outcome.trace.name if outcome.trace else None,
            served=outcome.served,
            attempt=job.attempt,
            host=outcome.host,
            disturbance=disturbance,
            counters=outcome.counters,
            alternated=alternated,
        )

    def _keep(self, ledger: ScenarioProgress, record: Launch) -> Launch:
        self._append(record)
        ledger.enter(record)
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

    def left(*_job: object, **_words: object) -> NoReturn:
        raise _LeftError

    runner = Runner(
        run,
        tasks,
        done=done,
        append=left,
        launch=left,
        observer=_Nobody(),
        clock=Clock(monotonic_s=lambda: 0.0, now=lambda: run.started_at),
        budget_s=None,
        operators=operators,
    )
    try:
        runner.run()
    except _LeftError:
        return False
    return True


class _LeftError(Exception):
    """Something is left to do."""


class _Nobody:
    """An observer that ignores all events."""

    def started(self, job: Job, *, left: int) -> None:
        """Do nothing."""

    def ended(self, launch: Launch) -> None:
        """Do nothing."""

    def tick(self) -> None:
        """Do nothing."""


def _next_attempt(job: Job) -> Job:
    """The next attempt at the same launch, after a refused one."""
    return replace(job, attempt=job.attempt + 1)
