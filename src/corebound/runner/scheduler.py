"""Schedules a run: launches cells in randomized blocks, and records each launch as it ends."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from corebound.launch.launch import LaunchResult
from corebound.planning.models import CannotRun
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.records.telemetry import Disturbance
from corebound.records.tuning import NO_TIME
from corebound.runner.jobs import Job, Task, within_budget
from corebound.runner.progress import ScenarioProgress
from corebound.runner.screening import Screened, compare_busy_threads, screen

# The fields that a record takes over from the launch's result.
_AS_IN_RESULT = tuple(
    name
    for name in LaunchResult.__struct_fields__
    if name not in {"duration_ns", "overhead_ns", "trace"}
)

_NO_TIME = CannotRun(what=NO_TIME, fix="Use a larger --budget.")
# There is no interval after fewer blocks.
_LEAST_BLOCKS = 2


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
            launch: Launches one cell, or several that start at once, as `Launcher` does.
            observer: Receives the events of the run.
            clock: The clocks.
            budget_s: Start no launch after this many seconds, and none that would probably end
                further after it than now is before it; the first launches are short enough for
                two blocks. None: no limit.
            operators: Whether to profile operators where scenarios request it.
        """
        self._run = run
        self._progress = [ScenarioProgress(task, done) for task in within_budget(tasks, budget_s)]
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
            for progress in self._progress:
                for _ in range(self._turns_now(progress)):
                    if not (keys := progress.cells_to_launch()):
                        break
                    has_launched = True
                    if not self._block(progress, keys):
                        return "out of time"
                    progress.block += 1
            if not has_launched:
                return self._profile() if self._operators else "complete"

    def _turns_now(self, progress: ScenarioProgress) -> int:
        """How many blocks of a scenario are launched before the next scenario's turn.

        A budget that ends after one block of every scenario would answer no question.
        """
        first = 0 if self._until_s is None else _LEAST_BLOCKS - progress.block
        return max(progress.turns, first)

    def _block(self, progress: ScenarioProgress, keys: frozenset[str]) -> bool:
        """Launch one block, and repeat refused launches at its end; False if out of time.

        Configurations that a race seems to have no time for are also left for the end, when more
        launches say how long one takes.
        """
        jobs = list(progress.jobs(keys, seed=self._run.seed))
        while jobs:
            retries: list[Job] = []
            has_launched = False
            for group in progress.interleave(jobs):
                if not (fitting := self._fitting(group)):
                    return False
                if progress.has_no_time(group):
                    retries += group
                    continue
                has_launched = True
                capped = tuple(progress.capped(job) for job in fitting)
                left = {one.scenario.name: one.required_launches() for one in self._progress}
                self._launch(progress, capped, left=left)
                if len(fitting) < len(group):
                    return False
                retries += [job.again for job in fitting if not progress.is_over(job.key)]
            if not has_launched:
                for job in retries:
                    self._skip(progress, job, _NO_TIME)
                break
            jobs = retries
        return True

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
                    self._launch(progress, (job,), left=left)
                    if not progress.cells[job.key].is_profiled:
                        retries.append((progress, job.again))
            jobs = retries
        return "complete"

    def _fitting(self, jobs: Sequence[Job]) -> tuple[Job, ...]:
        """Those of several launches that start at once for which there is time, by turn."""
        fitting = list(jobs)
        while fitting and self._is_late(fitting):
            fitting = [job for job in fitting if job.turn != fitting[-1].turn]
        return tuple(fitting)

    def _is_late(self, jobs: Sequence[Job] = ()) -> bool:
        """Whether the budget probably ends before the last turn of these launches is half over."""
        if self._until_s is None:
            return False
        turns = len({job.turn for job in jobs}) or 1
        needed_s = self._expected_s(jobs) * (1 - 0.5 / turns)
        return self._clock.monotonic_s() + needed_s > self._until_s

    def _expected_s(self, jobs: Sequence[Job]) -> float:
        """What these launches took before; in a first block, as much as other cells took."""
        if (took_s := self._took_s.get(_cells_of(jobs))) is not None:
            return took_s
        each_s = [took_s / len(cells) for cells, took_s in self._took_s.items()]
        return statistics.median(each_s) * len(jobs) if each_s else 0.0

    def _skip(self, progress: ScenarioProgress, job: Job, why: CannotRun | None) -> None:
        result = LaunchResult(
            status="skipped", reason=why.what if why else None, fix=why.fix if why else None
        )
        skipped = replace(job, planned=replace(job.planned, placement=None, commands=()))
        self._record(progress, skipped, result, started_at=self._clock.now())

    def _launch(
        self, progress: ScenarioProgress, jobs: Sequence[Job], *, left: Mapping[str, int]
    ) -> None:
        """Launch one cell, or several that start at once, and record all of them."""
        for job in jobs:
            self._observer.started(job, left=left)
        started_at = self._clock.now()
        began_s = self._clock.monotonic_s()
        results = tuple(
            progress.cells[job.key].explained(result, job)
            for result, job in zip(self._launch_all(jobs), jobs, strict=True)
        )
        took_s = self._clock.monotonic_s() - began_s
        self._took_s[_cells_of(jobs)] = took_s
        # What no launch took by itself is shared, such as the end of the slowest import.
        rest_ns = round(took_s * 1e9) - sum(result.duration_ns for result in results)
        started = [job.id for job, result in zip(jobs, results, strict=True) if result.wait]
        for turn in sorted({job.turn for job in jobs}):
            members = [job for job in jobs if job.turn == turn]
            own = [result for job, result in zip(jobs, results, strict=True) if job.turn == turn]
            screened = self._screened(progress, members, own)
            alternated = [
                job.id for job, (result, _) in zip(members, screened, strict=True) if result.pauses
            ]
            for job, (result, disturbance) in zip(members, screened, strict=True):
                self._record(
                    progress,
                    job,
                    result,
                    started_at=started_at,
                    rest_ns=rest_ns // len(jobs),
                    disturbance=disturbance,
                    alternated=_others(job.id, alternated),
                    started_with=_others(job.id, started),
                )

    def _screened(
        self, progress: ScenarioProgress, jobs: Sequence[Job], results: Sequence[LaunchResult]
    ) -> tuple[Screened, ...]:
        """The results of one launch, or of several that alternated, with what disturbed them."""
        may_refuse = all(progress.cells[job.key].may_refuse(job) for job in jobs)
        baseline = progress.baseline_among(jobs)
        measure = jobs[0].planned.measure
        screened = screen(
            results,
            may_refuse=may_refuse,
            warmup=measure.warmup,
            kind=jobs[0].kind,
            # A race drops cells by blocks that all of them have.
            baseline=None if progress.race else baseline,
        )
        if baseline is None or measure.alternate == "always":
            return screened
        return compare_busy_threads(screened, baseline, may_refuse=may_refuse)

    def _record(
        self,
        progress: ScenarioProgress,
        job: Job,
        result: LaunchResult,
        *,
        started_at: str,
        rest_ns: int = 0,
        disturbance: Disturbance | None = None,
        alternated: tuple[str, ...] = (),
        started_with: tuple[str, ...] = (),
    ) -> None:
        """Record a launch: its result, and what only the runner knows."""
        record = Launch(
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
            duration_ns=max(result.duration_ns + rest_ns, 0),
            overhead_ns=result.overhead_ns + rest_ns,
            trace=result.trace.name if result.trace else None,
            attempt=job.attempt,
            disturbance=disturbance,
            alternated=alternated,
            started_with=started_with,
        )
        self._append(record)
        progress.add(record)
        self._observer.ended(record)


def _others(own: str, ids: Sequence[str]) -> tuple[str, ...]:
    """The ids of the launches that one took turns with; none if it took part in no turns."""
    return tuple(other for other in ids if other != own) if own in ids else ()


def _cells_of(jobs: Sequence[Job]) -> frozenset[tuple[str, str]]:
    return frozenset((job.planned.cell.scenario, job.key) for job in jobs)
