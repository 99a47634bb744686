"""What has been done of one scenario, and what that leaves to do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from corebound.model.plan import Cell
from corebound.model.record import Kind, Launch
from corebound.planning.alternate import companies
from corebound.planning.expand import baselines_of
from corebound.runner.job import Job, Task
from corebound.stats.disturbance import is_refused
from corebound.stats.stopping import unfinished
from corebound.stats.summary import CellSummary, LaunchSummary, gather, summarise_launch
from corebound.stats.telling import telling


class Ledger:
    """What has been done of one task, and what that leaves to do."""

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
        """Note a launch, if it is one of this task."""
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
        """Whether a cell has been launched in this block, refused launches aside."""
        return block in self._done[key]

    def refused(self, block: int, key: str) -> int:
        """How many launches of a cell were refused in this block."""
        return self._refused[key].count(block)

    def may_refuse(self, job: Job) -> bool:
        """Whether one more launch of a job's cell, for the same, may be refused in this run."""
        key = job.planned.cell.key
        profiles, launches = self._refused_profiles[key], len(self._refused[key])
        refused = profiles if job.kind == "profile" else launches
        return refused < self.by_key[key].measure.relaunch_disturbed

    def unfit(self) -> tuple[Job, ...]:
        """The cells that the host cannot hold and that are not recorded as such."""
        return tuple(
            self._aside(key, "skipped", "measure")
            for key, planned in self.by_key.items()
            if planned.unfit is not None and not self._done[key]
        )

    def profiles(self) -> tuple[Job, ...]:
        """The cells whose operators are asked for, worth it, and not profiled so far."""
        summaries = [self._summary(planned.cell, before=None) for planned in self.by_key.values()]
        return tuple(
            replace(self._aside(key, "profile", "profile"), attempt=self._refused_profiles[key])
            for keys in telling(summaries, self._baselines)
            for key in keys
            if self.by_key[key].measure.operators is not None and key not in self._profiled
        )

    def _aside(self, key: str, word: str, kind: Kind) -> Job:
        """A launch that is of no block."""
        place = self._places[key]
        return Job(
            name=f"{self.scenario.name}-{word}-{place}",
            kind=kind,
            block=0,
            position=place,
            planned=self.by_key[key],
        )

    def wanted(self, block: int) -> frozenset[str]:
        """The cells to launch in `block`, judged by the blocks before it alone.

        Later blocks of a continued run do not count, so it decides as it did before.
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
        """Jobs of one block, in its order: those that alternate together, the others singly."""
        by_key = {job.planned.cell.key: job for job in jobs}
        found = companies([job.planned for job in jobs], self._baselines)
        return tuple(tuple(by_key[one.cell.key] for one in company) for company in found)

    def certain(self, *, after: int) -> int:
        """How many launches are sure to be wanted, in this block and the ones after it."""
        return sum(
            max(0, planned.measure.launches.min - len(self._done[key]))
            for key, planned in self.by_key.items()
            if planned.unfit is None and after < planned.measure.launches.min
        )

    def _summary(self, cell: Cell, *, before: int | None) -> CellSummary:
        """What the cell's launches say: those of all blocks, or of the ones before one."""
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
