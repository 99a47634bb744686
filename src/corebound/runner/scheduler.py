"""Schedules a run: launches cells in randomized blocks, and records each launch as it ends."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.forecast import GUESS_FACTOR, TimeLeft, usual_start_s
from corebound.launch.launch import LaunchResult
from corebound.planning.budget import Turns, blocks_within, fair_share_s, next_turn
from corebound.planning.models import CannotRun
from corebound.records.launch_record import Launch
from corebound.records.race import NO_TIME
from corebound.records.run_record import Run
from corebound.records.telemetry import Disturbance
from corebound.runner.focus import DECIDING_LAUNCHES, decided_by
from corebound.runner.jobs import Job, Task
from corebound.runner.progress import Outlook, ScenarioProgress
from corebound.runner.refused_launches import Screened, compare_busy_threads, screen
from corebound.stats.interference import is_too_much

# The fields that a record takes over from the launch's result.
_AS_IN_RESULT = tuple(
    name
    for name in LaunchResult.__struct_fields__
    if name not in {"duration_ns", "overhead_ns", "trace"}
)

_NO_TIME = CannotRun(what=NO_TIME, fix="Use a larger --budget.")
# A launch may end so much after the budget, which counts for an iteration that has begun.
_OVER_SHARE, _OVER_S = 0.05, 2.0


class Observer(Protocol):
    """Receives the events of a run: between launches, and periodically during a launch."""

    def started(self, job: Job, *, left: Mapping[str, int]) -> None:
        """A launch starts; `left` launches of each scenario, with this one, are left at most."""

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
        time_left: TimeLeft,
        budget_s: float | None,
        operators: bool,
        focuses: bool = False,
    ) -> None:
        """Prepare a new run, or one that resumes after an interruption.

        Args:
            done: Launches of this run that are already on disk.
            append: Writes a launch to disk.
            launch: Launches one cell, or several that start at once, as `Launcher` does.
            time_left: What launches are expected to take; those of this run correct it.
            budget_s: The run ends after this many seconds, or a little later: a launch that takes
                more than its share is ended. None: no limit.
            operators: Whether to profile operators where scenarios request it.
            focuses: Whether a budget that cannot decide all comparisons decides some of them.
        """
        self._run = run
        self._progress = [ScenarioProgress(task, done) for task in tasks]
        self._append = append
        self._launch_all = launch
        self._observer = observer
        self._clock = clock
        self._time_left = time_left
        self._until_s = math.inf if budget_s is None else clock.monotonic_s() + budget_s
        self._over_s = _OVER_S + _OVER_SHARE * (budget_s or 0.0)
        self._operators = operators
        self._focuses = focuses and budget_s is not None
        self._has_launched = False
        self._judged = self._disturbed = 0

    def run(self) -> Ending:
        """Launch until no more launches are needed, or the time budget is used up.

        Raises:
            LaunchError: the supervisor has ended.
            InputError: a record could not be written.
        """
        for progress in self._progress:
            for job in progress.skipped_jobs():
                self._skip(progress, job, job.planned.unfit)
        while (index := self._next_turn()) is not None:
            progress = self._progress[index]
            if not self._block(progress, progress.cells_to_launch()):
                return "out of time"
            progress.block += 1
        return self._profile() if self._operators else "complete"

    @property
    def _left_s(self) -> float:
        """The rest of the budget, in seconds; infinite without one."""
        return self._until_s - self._clock.monotonic_s()

    def _next_turn(self) -> int | None:
        """The scenario whose block is launched next; None if none needs one.

        If the rest of the budget does not decide everything, some comparisons are decided, those of
        one scenario after those of another: after the first block of all scenarios, or before one
        that would leave no time to decide one.
        """
        for progress in self._progress:
            progress.focus = None
        turns = self._turns(self._outlooks())
        index = next_turn(turns, self._left_s)
        if index is None or not self._focuses:
            return index
        candidates = [
            candidate
            for number, progress in enumerate(self._progress)
            for candidate in progress.candidates(number, self._time_left)
        ]
        if self._decides_all or not candidates:
            return index
        chosen = decided_by(candidates, self._left_s)
        answer_s = 0.0 if self._has_decided else chosen[0].seconds
        if not turns[index].blocks and turns[index].least_block_s + answer_s <= self._left_s:
            return index
        for progress in self._progress:
            progress.focus = set()
        first = chosen[0].scenario
        self._progress[first].focus = {
            key for cell in chosen if cell.scenario == first for key in (cell.key, cell.baseline)
        }
        return next_turn(self._turns(self._outlooks()), self._left_s)

    @property
    def _decides_all(self) -> bool:
        """Whether the rest of the budget decides all comparisons that are still launched."""
        lacking_s = sum(
            progress.lacking_s(key, self._time_left)
            for progress in self._progress
            for key in progress.cells_to_launch()
        )
        return lacking_s <= self._left_s

    @property
    def _has_decided(self) -> bool:
        return any(progress.has_decided for progress in self._progress)

    def _outlooks(self) -> list[Outlook]:
        return [progress.outlook(self._time_left) for progress in self._progress]

    def _turns(
        self, outlooks: Sequence[Outlook], wanted: Callable[[Outlook], int] = lambda _: 0
    ) -> list[Turns]:
        """The turns of the scenarios; each that is not over wants one more block, or `wanted`."""
        return [
            Turns(
                blocks=progress.block,
                wanted=max(wanted(outlook), progress.block + 1) if outlook.open else progress.block,
                block_s=outlook.block_s,
                least_block_s=outlook.least_block_s,
                turns=progress.turns,
            )
            for progress, outlook in zip(self._progress, outlooks, strict=True)
        ]

    def _block(self, progress: ScenarioProgress, keys: frozenset[str]) -> bool:
        """Launch one block, and repeat refused launches at its end; False if out of time.

        Configurations that a race seems to have no time for are also left for the end, when more
        launches say how long one takes.
        """
        jobs = list(progress.jobs(keys, seed=self._run.seed))
        while jobs:
            retries: list[Job] = []
            has_launched = False
            jobs = [job for job in jobs if progress.is_repeated(job.key)]
            for group in progress.interleave(jobs):
                outlooks = self._outlooks()
                share_s = self._share_s(progress, group, outlooks)
                worth = [job for job in group if progress.is_worth(job, share_s)]
                if not worth:
                    continue
                if not (fitting := self._fitting(progress, worth, share_s)):
                    return False
                if progress.has_no_time(group):
                    retries += group
                    continue
                has_launched = True
                capped = tuple(replace(progress.capped(job), share_s=share_s) for job in fitting)
                self._launch(progress, capped, left=self._launches_left(progress, outlooks))
                if len(fitting) < len(worth):
                    return False
                retries += [job.again for job in fitting if progress.is_repeated(job.key)]
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
                elif (left_s := self._left_s) <= 0:
                    return "out of time"
                else:
                    share_s = None if math.isinf(left_s) else left_s + self._over_s
                    left = Counter(other.scenario.name for other, _ in (*jobs[number:], *retries))
                    self._launch(progress, (replace(job, share_s=share_s),), left=left)
                    if not progress.cells[job.key].is_profiled:
                        retries.append((progress, job.again))
            jobs = retries
        return "complete"

    def _share_s(
        self, progress: ScenarioProgress, jobs: Sequence[Job], outlooks: Sequence[Outlook]
    ) -> float | None:
        """How long each of these launches may take; None without a budget.

        It is the fair share of the rest. One that could not count with that may take the time that
        the others leave, and always enough for the start and a few iterations of the baseline, or
        for a slow start if no launch of the scenario says how long one takes.
        """
        left_s = self._left_s
        if math.isinf(left_s):
            return None
        rest_s = max(left_s + self._over_s, 0.0) / len(jobs)
        if progress.race is not None:
            return rest_s
        own, others = 0, list[tuple[int, float]]()
        keys = {job.key for job in jobs}
        blocks = self._blocks_to_share(outlooks, left_s)
        for other, outlook, number in zip(self._progress, outlooks, blocks, strict=True):
            for cell, is_over in outlook.open.items():
                launches = max(number, other is progress) - is_over
                if other is progress and cell.key in keys:
                    own += max(launches, 1)
                else:
                    others.append((launches, self._time_left.launch_s(cell)))
        least_s = max(progress.least_launch_s(job.key, self._time_left) for job in jobs)
        if not progress.has_started:
            least_s = max(least_s, *(GUESS_FACTOR * usual_start_s(job.planned) for job in jobs))
        share_s = max(fair_share_s(left_s, own, others), *map(progress.counting_s, keys))
        share_s = min(share_s, fair_share_s(left_s, len(jobs), others))
        return min(max(share_s, least_s), rest_s)

    def _fitting(
        self, progress: ScenarioProgress, jobs: Sequence[Job], share_s: float | None
    ) -> tuple[Job, ...]:
        """Those of several launches that start at once for which there is time, by turn."""
        fitting = list(jobs)
        while fitting and self._is_late(progress, fitting, share_s):
            fitting = [job for job in fitting if job.turn != fitting[-1].turn]
        return tuple(fitting)

    def _is_late(
        self, progress: ScenarioProgress, jobs: Sequence[Job], share_s: float | None
    ) -> bool:
        """Whether the budget probably ends before the last turn of these launches is half over."""
        if share_s is None:
            return False
        least_s = expected_s = 0.0
        for job in jobs:
            expected_s += min(self._time_left.launch_s(job.planned.cell), share_s)
            if self._has_launched:
                least_s += progress.least_launch_s(job.key, self._time_left)
        turns, left_s = len({job.turn for job in jobs}), self._left_s
        return max(expected_s, least_s) * (1 - 0.5 / turns) > left_s or left_s <= 0

    def _blocks_to_share(self, outlooks: Sequence[Outlook], left_s: float) -> list[int]:
        """Among how many blocks of each scenario the rest of the budget is shared."""
        held = blocks_within(self._turns(outlooks, lambda outlook: outlook.least), left_s)
        answering = [
            max(min(self._decided_with(outlook), DECIDING_LAUNCHES) - progress.block, 0)
            if outlook.open and progress.has_started
            else 0
            for progress, outlook in zip(self._progress, outlooks, strict=True)
        ]
        least_s = sum(
            blocks * outlook.least_block_s
            for blocks, outlook in zip(answering, outlooks, strict=True)
        )
        return list(map(max, held, answering)) if least_s <= left_s else list(held)

    def _decided_with(self, outlook: Outlook) -> int:
        """The number of launches that may decide a comparison."""
        return outlook.most if self._focuses else outlook.least

    def _has_time_to_repeat(self, progress: ScenarioProgress, jobs: Sequence[Job]) -> bool:
        """Whether the budget holds some launches once more, beside the first blocks of all.

        On a host that disturbs most launches, it disturbs the repeated ones too, and a budget that
        is short has none to give away.
        """
        if math.isinf(self._left_s):
            return True
        if self._focuses and 2 * self._disturbed > self._judged and not self._decides_all:
            return False
        first_s = sum(
            outlook.least_block_s
            for other, outlook in zip(self._progress, self._outlooks(), strict=True)
            if other.block == 0
        )
        again_s = sum(progress.least_launch_s(job.key, self._time_left) for job in jobs)
        return first_s + again_s <= self._left_s

    def _launches_left(
        self, current: ScenarioProgress, outlooks: Sequence[Outlook]
    ) -> dict[str, int]:
        """How many launches of each scenario there are at most until the budget ends.

        The current block may end in the budget even if it does not seem so now.
        """
        turns = self._turns(outlooks, lambda outlook: outlook.most)
        held = blocks_within(turns, self._left_s)
        return {
            progress.scenario.name: sum(
                max(blocks, 1) - (not progress.is_repeated(cell.key))
                for cell in outlook.open
                if blocks or progress is current
            )
            for progress, outlook, blocks in zip(self._progress, outlooks, held, strict=True)
        }

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
        self._has_launched = True
        # What no launch took by itself is shared, such as the end of the slowest import.
        took_ns = round((self._clock.monotonic_s() - began_s) * 1e9)
        rest_ns = took_ns - sum(result.duration_ns for result in results)
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
        may_refuse = self._has_time_to_repeat(progress, jobs) and all(
            progress.cells[job.key].may_refuse(job) for job in jobs
        )
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
        if record.status != "skipped":
            self._time_left.add(record)
            self._judged += 1
            self._disturbed += is_too_much(disturbance, result.host, job.kind)
        self._observer.ended(record)


def _others(own: str, ids: Sequence[str]) -> tuple[str, ...]:
    """The ids of the launches that one took turns with; none if it took part in no turns."""
    return tuple(other for other in ids if other != own) if own in ids else ()
