"""How far a scenario is: which launches its cells have, which they still need, when it is over."""

import math
import statistics
from collections.abc import Container, Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from corebound.analysis.forecast import TimeLeft, besides_iterations_ns, usual_start_s
from corebound.launch.launch import LaunchResult, too_slow
from corebound.planning.budget import LEAST_ITERATIONS
from corebound.planning.launch_order import block_order, interleave_groups, start_groups
from corebound.planning.plan import PlannedCell
from corebound.records.launch_record import Kind, Launch
from corebound.runner.focus import DECIDING_LAUNCHES, Candidate
from corebound.runner.jobs import Job, Task
from corebound.runner.race import TaskRace
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import baselines_of
from corebound.stats.interference import is_refused
from corebound.stats.launch_summary import (
    CellSummary,
    LaunchSummary,
    combine_launches,
    summarise_launch,
)
from corebound.stats.pilot import PilotLaunches, worthwhile_iterations
from corebound.stats.stopping import most_informative_cells, unfinished

# A launch that takes so many times as long as the longest before it hangs; even a busy host makes
# none so slow. The least limit is enough to start any framework on it.
_HANGING = 10.0
_LEAST_LIMIT_S = 60.0
# A cell that is so many times slower than its baseline needs no second launch to say so.
_MUCH_SLOWER = 10.0
# A launch that was too slow for its share is repeated with twice as long a share, or nearly.
_LARGER_SHARE, _WORTH_SHARE = 2.0, 1.5
# Fewer launches say nothing about how much launches differ.
_LEAST_PILOT_LAUNCHES = 2


class CellProgress(Struct, kw_only=True):
    """The launches of one cell.

    Attributes:
        launches: The launch of each block, without the refused ones.
        refused: The block of each refused launch.
        alternated: The blocks in which a refused launch had alternated with others.
        is_alone: Whether it alternates no longer.
        starts_alone: Whether it starts with no other launch any more.
        is_profiled: Whether its operators have been profiled.
        longest_start_ns: The longest time that an `ok` launch took beside its iterations; None
            without one.
    """

    planned: PlannedCell
    position: int
    launches: dict[int, Launch] = field(default_factory=dict)
    refused: list[int] = field(default_factory=list)
    alternated: set[int] = field(default_factory=set)
    is_alone: bool = False
    starts_alone: bool = False
    is_profiled: bool = False
    refused_profiles: int = 0
    longest_start_ns: int | None = None
    _summaries: dict[str, LaunchSummary] = field(default_factory=dict)

    def add(self, launch: Launch, *, resumed: bool) -> None:
        """Add a launch of this cell that has ended."""
        is_ended = launch.ended_by == "kill" or launch.share_s is not None
        is_repeated = is_refused(launch) or (resumed and is_ended and launch.status != "ok")
        if launch.kind == "profile":
            self.refused_profiles += is_repeated
            self.is_profiled |= not is_repeated
            return
        if launch.pauses is not None and not launch.pauses.allow_alternation:
            self.is_alone = True
        was_noisy = any(pause and not pause.were_quiet for pause in (launch.pauses, launch.wait))
        has_failed = bool(launch.started_with) and launch.status in {"failed", "timed-out"}
        self.starts_alone |= was_noisy or has_failed
        if not is_repeated:
            self.launches[launch.block] = launch
            if launch.status == "ok":
                self.longest_start_ns = max(
                    self.longest_start_ns or 0, besides_iterations_ns(launch)
                )
            return
        self.refused.append(launch.block)
        if launch.alternated:
            self.alternated.add(launch.block)

    def may_refuse(self, job: Job) -> bool:
        """Whether one more launch may be refused in this run."""
        refused = self.refused_profiles if job.kind == "profile" else len(self.refused)
        return refused < job.planned.measure.relaunch_disturbed

    def explained(self, result: LaunchResult, job: Job) -> LaunchResult:
        """The result, whose fix says what follows from it, or why it had a limit of its own."""
        limit_s, own_limit_s = job.planned.measure.timeout_s, self.planned.measure.timeout_s
        if result.status == "timed-out" and job.share_s is not None and job.share_s <= limit_s:
            reason, fix = too_slow(result.reason or "")
            return replace(result, status="dropped", reason=reason, fix=fix, share_s=job.share_s)
        if result.status == "timed-out" and limit_s < own_limit_s and self.launches:
            fix = "Earlier launches took a tenth of that or less: it seems to hang."
            return replace(result, fix=f"{fix} Its output may show where.")
        has_succeeded = any(launch.status == "ok" for launch in self.launches.values())
        if result.ended_by == "error" and not has_succeeded:
            then = "It is not launched again, because it would fail again."
        elif result.ended_by == "kill":
            then = "Something outside killed it; `dmesg` shows whether memory was short."
            then += " A resumed run launches it again."
        else:
            return result
        return replace(result, fix=f"{result.fix or ''} {then}".lstrip())

    def summary(self, *, before: float = math.inf) -> CellSummary:
        """The summary of its launches in the blocks before a block."""
        launches = [launch for block, launch in self.launches.items() if block < before]
        ok = [self.summarised(launch) for launch in launches if launch.status == "ok"]
        return combine_launches(self.planned.cell, ok, launches, within_run=True)

    def summarised(self, launch: Launch) -> LaunchSummary:
        """The summary of an `ok` launch."""
        if launch.id not in self._summaries:
            self._summaries[launch.id] = summarise_launch(launch, self.planned.measure.warmup)
        return self._summaries[launch.id]

    def pilot(self, *, before: int) -> PilotLaunches | None:
        """What its launches took before a block; None with fewer than two."""
        summary = self.summary(before=before)
        ids = {launch.launch for launch in summary.launches}
        launches = [launch for launch in self.launches.values() if launch.id in ids]
        if len(ids) < _LEAST_PILOT_LAUNCHES:
            return None
        return PilotLaunches(
            summary=summary,
            setup_ns=statistics.median(map(besides_iterations_ns, launches)),
            iterations=statistics.median(
                len(worker.wall_ns) for launch in launches for worker in launch.workers
            ),
            workers=len(self.planned.requests),
        )


class Outlook(Struct, frozen=True, kw_only=True):
    """What a scenario still needs.

    Attributes:
        open: The cells of its next block, and whether each has been launched in it.
        least, most: The blocks that it has at least and at most in the end.
        block_s: What a block takes, in seconds.
        least_block_s: What a block takes if each launch has just enough iterations to count.
    """

    open: dict[Cell, bool]
    least: int
    most: int
    block_s: float
    least_block_s: float


class ScenarioProgress:
    """Tracks one task's finished launches, and determines the remaining ones.

    `block` is the block that is being launched, at first the last one that has a launch: earlier
    ones are not filled up, because the host may have another speed now. What is launched in a
    block depends on earlier blocks only, and on `focus`: the keys of the cells that the budget has
    time for; None for all.
    """

    def __init__(self, task: Task, done: Sequence[Launch]) -> None:
        self.scenario = task.scenario
        self.turns = task.turns
        self.block = 0
        self.focus: set[str] | None = None
        duplicates = task.duplicates
        measured = [planned for planned in task.planned if planned.cell.key not in duplicates]
        self.cells = {
            planned.cell.key: CellProgress(planned=planned, position=position)
            for position, planned in enumerate(measured)
        }
        self._fit = {key: cell for key, cell in self.cells.items() if cell.planned.unfit is None}
        cells = tuple(planned.cell for planned in task.planned)
        baselines = baselines_of(cells, cells, task.scenario)
        self._baselines = {
            cell.key: key
            for cell, baseline in zip(cells, baselines, strict=True)
            if cell.key in self.cells
            and baseline is not None
            and (key := duplicates.get(baseline.key, baseline.key)) != cell.key
        }
        self._to_launch: dict[int, frozenset[str]] = {}
        self.race = None
        if task.tuning is not None:
            self.race = TaskRace(
                raced=task.raced,
                tuning=task.tuning,
                launches={key: cell.launches for key, cell in self.cells.items()},
                summarise=lambda launch: self.cells[launch.cell.key].summarised(launch),
            )
        for launch in done:
            self.add(launch, resumed=True)
        if self.race is None:
            self.block = max(
                (max(cell.launches, default=0) for cell in self.cells.values()), default=0
            )

    def add(self, launch: Launch, *, resumed: bool = False) -> None:
        """Add a finished launch, if it belongs to this task.

        A run that was resumed repeats those that were killed from outside, and those that were too
        slow for its budget, like refused ones.
        """
        if launch.cell.scenario == self.scenario.name and launch.cell.key in self.cells:
            self.cells[launch.cell.key].add(launch, resumed=resumed)

    def is_over(self, key: str) -> bool:
        """Whether a cell is launched no more in this block.

        A cell is left out of a block if its launch was refused and the baseline that it alternated
        with was not. One more launch there would need one more of the baseline; both have it in
        a later block. One that no longer alternates needs none.
        """
        cell = self.cells[key]
        baseline = self.cells.get(self._baselines.get(key, ""))
        has_baseline = baseline is not None and self.block in baseline.launches
        is_left_out = self.block in cell.alternated and not cell.is_alone and has_baseline
        return self.block in cell.launches or is_left_out

    def baseline_among(self, jobs: Sequence[Job]) -> int | None:
        """Which of several jobs that alternate is the baseline of the others; None without one."""
        keys = [job.key for job in jobs]
        found = {self._baselines[key] for key in keys if key in self._baselines}
        if len(found) != 1:
            return None
        (baseline,) = found
        return keys.index(baseline) if baseline in keys else None

    def skipped_jobs(self) -> tuple[Job, ...]:
        """The cells that do not fit the host and are not yet recorded as skipped."""
        return tuple(
            self._job_outside_blocks(cell, "skipped", "measure")
            for key, cell in self.cells.items()
            if key not in self._fit and not cell.launches
        )

    def profile_jobs(self) -> tuple[Job, ...]:
        """The cells to profile: operators are requested, informative and not yet profiled."""
        summaries = [cell.summary() for cell in self.cells.values()]
        return tuple(
            replace(
                self._job_outside_blocks(cell, "profile", "profile"), attempt=cell.refused_profiles
            )
            for keys in most_informative_cells(summaries, self._baselines)
            for cell in map(self.cells.__getitem__, keys)
            if cell.planned.measure.operators is not None and not cell.is_profiled
        )

    def _job_outside_blocks(self, cell: CellProgress, label: str, kind: Kind) -> Job:
        return Job(
            name=f"{self.scenario.name}-{label}-{cell.position}",
            kind=kind,
            block=0,
            position=cell.position,
            planned=cell.planned,
        )

    def cells_to_launch(self) -> frozenset[str]:
        """The keys of the cells to launch in this block; none: the scenario is measured."""
        if self.race is not None:
            return self.race.cells_to_launch(self.block)
        if not self._fit:
            return frozenset()
        if self.block not in self._to_launch:
            fit = self._fit
            measure = next(iter(fit.values())).planned.measure
            self._to_launch[self.block] = unfinished(
                [cell.summary(before=self.block) for cell in fit.values()],
                {key: base for key, base in self._baselines.items() if key in fit and base in fit},
                measure.launches,
                margin=measure.margin,
            )
        keys = self._to_launch[self.block]
        return keys if self.focus is None else keys & self.focus

    @property
    def has_decided(self) -> bool:
        """Whether a cell and its baseline have the launches, or are too different to need them."""
        to_launch = self.cells_to_launch()
        return any(
            self._is_measured(key, to_launch) and self._is_measured(base, to_launch)
            for key, base in self._baselines.items()
            if base in self.cells
        )

    def _is_measured(self, key: str, to_launch: Container[str]) -> bool:
        launches = len(self._ok(self.cells[key]))
        return bool(launches) and (launches >= self._wanted(key) or key not in to_launch)

    def _wanted(self, key: str) -> int:
        return min(DECIDING_LAUNCHES, self.cells[key].planned.measure.launches.max)

    def lacking_s(self, key: str, time_left: TimeLeft) -> float:
        """What the launches take that a cell lacks to be compared, in seconds."""
        cell = self.cells[key]
        launch_s = max(
            time_left.launch_s(cell.planned.cell),
            self.least_launch_s(key, time_left),
            self.counting_s(key),
        )
        return max(self._wanted(key) - len(self._ok(cell)), 0) * launch_s

    def candidates(self, number: int, time_left: TimeLeft) -> Iterator[Candidate]:
        """The comparisons that lack launches to be decided; `number` is the scenario's."""
        for key in self.cells_to_launch():
            base = self._baselines.get(key)
            if base is None or base not in self.cells:
                continue
            sides = [(self.cells[name], self._ok(self.cells[name])) for name in (key, base)]
            own_s, baseline_s = (self.lacking_s(name, time_left) for name in (key, base))
            medians_ns = [
                statistics.median(cell.summarised(launch).median_ns for launch in launches)
                for cell, launches in sides
                if launches
            ]
            if own_s + baseline_s and len(medians_ns) == len(sides) and all(medians_ns):
                yield Candidate(
                    scenario=number,
                    key=key,
                    baseline=base,
                    launches=min(len(launches) for _, launches in sides),
                    effect=abs(math.log(medians_ns[0] / medians_ns[1])),
                    own_s=own_s,
                    baseline_s=baseline_s,
                )

    def jobs(self, keys: frozenset[str], *, seed: int) -> Iterator[Job]:
        """The remaining launches of this block, in order."""
        name = self.scenario.name
        order = block_order(self.cells, seed=seed, scenario=name, block=self.block)
        order = self.race.order(order, self.block) if self.race is not None else order
        iterations = self._iterations()
        for position, key in enumerate(order):
            if key in keys and not self.is_over(key):
                yield Job(
                    name=f"{name}-{self.block}-{position}",
                    kind="measure",
                    block=self.block,
                    position=position,
                    planned=self.cells[key].planned,
                    attempt=self.cells[key].refused.count(self.block),
                    iterations=iterations.get(key),
                )

    def _iterations(self) -> dict[str, int]:
        """How many iterations this block's launches have, for cells that leave it to the pilot."""
        pilots = [
            pilot
            for cell in self._fit.values()
            if cell.planned.traffic is None
            and not cell.planned.cell.gpus
            and cell.planned.measure.iterations == "auto"
            and (pilot := cell.pilot(before=self.block)) is not None
        ]
        return worthwhile_iterations(pilots, self._baselines)

    def has_no_time(self, jobs: Sequence[Job]) -> bool:
        """Whether the budget has no time for a configuration's first launch in a race."""
        return self.race is not None and self.race.has_no_time(
            [job.key for job in jobs], self.block
        )

    def capped(self, job: Job) -> Job:
        """The job, with a shorter time limit than the scenario's, if earlier launches allow it."""
        planned = job.planned
        if self.race is not None:
            planned = self.race.limited(planned, job.block)
            if job.block == 0 or self.race.is_screening(job.block):
                return replace(job, planned=planned, iterations=None)
        limit_s = min(self._usual_limit_s(job), planned.measure.timeout_s)
        measure = planned.measure.model_copy(update={"timeout_s": limit_s})
        return replace(job, planned=replace(planned, measure=measure))

    def _usual_limit_s(self, job: Job) -> float:
        """A time that a launch takes only if it hangs: a multiple of the longest `ok` launch."""
        before = [
            (launch.duration_ns / 1e9, len(worker.wall_ns))
            for cell in self.cells.values()
            for launch in cell.launches.values()
            if launch.status == "ok" and launch.block < job.block
            for worker in launch.workers
        ]
        if not before:
            return math.inf
        longest_s, iterations = max(before)
        # The pilot may choose more iterations than the first launches had.
        growth = max((job.iterations or 0) / max(iterations, 1), 1.0)
        return max(_HANGING * longest_s * growth, _LEAST_LIMIT_S)

    def interleave(self, jobs: Sequence[Job]) -> tuple[tuple[Job, ...], ...]:
        """Group a block's jobs, in order: those that start at once, each with its turn.

        Those that alternate have the same turn. In a race none do.
        """
        by_key = {job.key: job for job in jobs}
        apart = {key for key, cell in self.cells.items() if cell.starts_alone}
        alone = apart | {key for key, cell in self.cells.items() if cell.is_alone}
        turns = interleave_groups(
            [job.planned for job in jobs],
            {} if self.race is not None else self._baselines,
            alone=alone,
        )
        return tuple(
            tuple(
                replace(by_key[planned.cell.key], turn=number)
                for number, turn in enumerate(group)
                for planned in turn
            )
            for group in start_groups(turns, apart=apart)
        )

    def outlook(self, time_left: TimeLeft) -> Outlook:
        """What the scenario still needs, for the time that launches take."""
        keys = self.cells_to_launch()
        cells = [self.cells[key] for key in keys]
        launches = [cell.planned.measure.launches for cell in cells]
        return Outlook(
            open={cell.planned.cell: self.is_over(cell.planned.cell.key) for cell in cells},
            least=max((count.min for count in launches), default=0),
            most=max((count.max for count in launches), default=0),
            block_s=sum(time_left.launch_s(cell.planned.cell) for cell in cells),
            least_block_s=sum(self.least_launch_s(key, time_left) for key in keys),
        )

    def least_launch_s(self, key: str, time_left: TimeLeft) -> float:
        """What a launch of a cell takes at least to count: its start, and a few iterations.

        The start takes as long as the longest so far, the iterations as those of the baseline.
        """
        planned = self.cells[key].planned
        # A server's is the time of a whole launch, which the starts of other programs do not tell.
        factor = time_left.start_factor if planned.traffic is None else 1.0
        usual_s = usual_start_s(planned) * factor
        starts_ns = [cell.longest_start_ns for cell in self.cells.values()]
        known_ns = [start_ns for start_ns in starts_ns if start_ns is not None]
        start_s = max(known_ns) / 1e9 if known_ns else usual_s
        baseline = self.cells[self._baselines.get(key, key)]
        medians_ns = [baseline.summarised(launch).median_ns for launch in self._ok(baseline)]
        iteration_s = statistics.median(medians_ns) / 1e9 if medians_ns else 0.0
        return start_s + LEAST_ITERATIONS * iteration_s

    def counting_s(self, key: str) -> float:
        """What a launch of a cell must take to count, as far as its own launches show.

        After one that was too slow for its share, it is twice that share.
        """
        cell = self.cells[key]
        last = cell.launches.get(self.block)
        if last is not None and last.share_s is not None:
            return _LARGER_SHARE * last.share_s
        medians_ns = [cell.summarised(launch).median_ns for launch in self._ok(cell)]
        if not medians_ns or cell.longest_start_ns is None:
            return 0.0
        return (cell.longest_start_ns + LEAST_ITERATIONS * statistics.median(medians_ns)) / 1e9

    def is_repeated(self, key: str) -> bool:
        """Whether a cell is launched again in this block.

        One that was too slow for its share may have a larger one, unless what it took shows that it
        is much slower than its baseline.
        """
        last = self.cells[key].launches.get(self.block)
        if last is None or last.status != "dropped" or last.share_s is None:
            return not self.is_over(key)
        baseline = self.cells.get(self._baselines.get(key, ""))
        ok = [] if baseline is None else self._ok(baseline)
        if not ok or baseline is None or last.least_iteration_ns is None:
            return True
        median_ns = statistics.median(baseline.summarised(launch).median_ns for launch in ok)
        return last.least_iteration_ns < _MUCH_SLOWER * median_ns

    def is_worth(self, job: Job, share_s: float | None) -> bool:
        """Whether a launch has more time than when it was too slow before, if it was."""
        last = self.cells[job.key].launches.get(self.block)
        before_s = 0.0 if last is None else last.share_s or 0.0
        return share_s is None or share_s >= _WORTH_SHARE * before_s

    @property
    def has_started(self) -> bool:
        """Whether a launch shows how long the start of one takes."""
        return any(self._ok(cell) for cell in self.cells.values())

    @staticmethod
    def _ok(cell: CellProgress) -> list[Launch]:
        return [launch for launch in cell.launches.values() if launch.status == "ok"]


def is_complete(tasks: Sequence[Task], done: Sequence[Launch], *, operators: bool) -> bool:
    """Whether a run, if resumed, would have nothing left to launch or record.

    Args:
        operators: Whether operators are profiled where scenarios request it.
    """
    for task in tasks:
        progress = ScenarioProgress(task, done)
        if progress.skipped_jobs():
            return False
        while keys := progress.cells_to_launch():
            if not all(map(progress.is_over, keys)):
                return False
            progress.block += 1
        if operators and progress.profile_jobs():
            return False
    return True
