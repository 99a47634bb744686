"""The run: blocks of launches in random order, each recorded the moment it ends.

Scenarios take turns block by block, so that the launches that are compared lie
close together in time and every scenario has something to show if time runs out. One
that is favoured has several blocks a turn.
Operators are profiled when all that is timed has been, so that no profiler is near
a measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NoReturn, Protocol

from msgspec import Struct
from msgspec.structs import replace

from corebound.launch.outcome import Outcome
from corebound.model.plan import Unfit
from corebound.model.record import Launch
from corebound.model.run import Run
from corebound.model.telemetry import Disturbance
from corebound.planning.schedule import order as shuffled
from corebound.runner.disturbed import judged
from corebound.runner.job import Job, Task
from corebound.runner.ledger import Ledger
from corebound.stats.disturbance import is_refused


class Observer(Protocol):
    """Who watches a run; called between launches, and as time passes within one."""

    def started(self, job: Job, *, left: int) -> None:
        """A launch starts; as it does, `left` are certain to be wanted, itself included."""

    def ended(self, launch: Launch) -> None:
        """It has ended and is on the disk; also for a cell that is skipped."""

    def tick(self) -> None:
        """Time passes."""


class Clock(Struct, frozen=True, kw_only=True):
    """The time, as the runner needs it: seconds that only rise, and the date in UTC."""

    monotonic_s: Callable[[], float]
    now: Callable[[], str]


Ending = Literal["complete", "out of time"]


class Runner:
    """Measures tasks; everything outside is handed in."""

    def __init__(
        self,
        run: Run,
        tasks: Sequence[Task],
        *,
        done: Sequence[Launch],
        append: Callable[[Launch], None],
        launch: Callable[[Sequence[Job]], Sequence[Outcome]],
        observer: Observer,
        clock: Clock,
        budget_s: float | None,
        operators: bool,
    ) -> None:
        """Take what there is to do, and what of it a killed run has done already.

        Args:
            run: The run that the records belong to.
            tasks: What to measure.
            done: Launches of this run that are on the disk.
            append: Puts a launch on the disk.
            launch: Launches a cell, or several that alternate, as `launcher` does.
            observer: Hears what happens.
            clock: The time.
            budget_s: Start no launch after so many seconds; None: no limit.
            operators: Whether to profile operators where the scenarios ask for it.
        """
        self._run = run
        self._ledgers = [Ledger(task) for task in tasks]
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
        """Launch until nothing is wanted any more, or time is out.

        Raises:
            LaunchError: the supervisor is gone.
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

    def _block(self, ledger: Ledger, keys: frozenset[str], block: int) -> bool:
        """One block of a scenario, refused launches once more at its end; False if time is out."""
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
        """How many launches are sure to be wanted."""
        pairs = zip(self._ledgers, self._blocks, strict=True)
        return sum(ledger.certain(after=block) for ledger, block in pairs)

    def _profile(self) -> Ending:
        """Once all is measured, launch the cells that tell most once more, each once a run.

        Profiles that were refused are made once more when all others have been.
        """
        jobs = [(ledger, job) for ledger in self._ledgers for job in ledger.profiles()]
        while jobs:
            again: list[tuple[Ledger, Job]] = []
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

    def _jobs(self, ledger: Ledger, keys: frozenset[str], block: int) -> Iterator[Job]:
        """The launches of one block that have not been done, in their order."""
        every = shuffled(
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

    def _skip(self, ledger: Ledger, job: Job, why: Unfit | None) -> None:
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
                mend=why.mend if why else None,
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

    def _launch(self, ledger: Ledger, jobs: Sequence[Job], *, left: int) -> tuple[Launch, ...]:
        """Launch a cell, or those that alternate; all of them are recorded then."""
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
        outcome: Outcome,
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
            mend=outcome.mend,
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

    def _keep(self, ledger: Ledger, record: Launch) -> Launch:
        self._append(record)
        ledger.enter(record)
        self._observer.ended(record)
        return record


def is_complete(
    run: Run, tasks: Sequence[Task], done: Sequence[Launch], *, operators: bool
) -> bool:
    """Whether a run that goes on would launch and record nothing more.

    Args:
        run: The run that the records belong to.
        tasks: What it measures.
        done: Its launches that are on the disk.
        operators: Whether operators are profiled where the scenarios ask for it.
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
    """An observer that is told nothing of interest."""

    def started(self, job: Job, *, left: int) -> None:
        """A launch would start."""

    def ended(self, launch: Launch) -> None:
        """It would have ended."""

    def tick(self) -> None:
        """Time would pass."""


def _next_attempt(job: Job) -> Job:
    """The same launch once more, after one that was refused."""
    return replace(job, attempt=job.attempt + 1)
