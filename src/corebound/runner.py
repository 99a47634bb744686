"""The run: blocks of launches in random order, each recorded the moment it ends.

Scenarios take turns block by block, so that the launches that are compared lie
close together in time and every scenario has something to show if time runs out.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import corebound
from corebound.launch.launch import Order, Outcome, launch
from corebound.launch.supervise import Supervision
from corebound.model.plan import Cell, Unfit
from corebound.model.record import Launch, Run
from corebound.model.scenario import Scenario
from corebound.planning.assemble import Planned
from corebound.planning.expand import baseline_of
from corebound.planning.schedule import order as shuffled
from corebound.stats.stopping import unfinished
from corebound.stats.summary import CellSummary, LaunchSummary, gather, summarise_launch


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One scenario's share of a run: all its cells, planned."""

    scenario: Scenario
    planned: tuple[Planned, ...]


class Observer(Protocol):
    """Who watches a run; called between launches, and as time passes within one."""

    def started(self, cell: Cell, *, block: int, left: int) -> None:
        """A launch starts; `left` more are certain to follow it."""

    def ended(self, launch: Launch) -> None:
        """It has ended and is on the disk; also for a cell that is skipped."""

    def tick(self) -> None:
        """Time passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
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
        launch: Callable[[Planned], Outcome],
        observer: Observer,
        clock: Clock,
        budget_s: float | None,
    ) -> None:
        """Take what there is to do, and what of it a killed run has done already.

        Args:
            run: The run that the records belong to.
            tasks: What to measure.
            done: Launches of this run that are on the disk.
            append: Puts a launch on the disk.
            launch: Launches one cell, as `launcher` does.
            observer: Hears what happens.
            clock: The time.
            budget_s: Start no launch after so many seconds; None: no limit.
        """
        self._run = run
        self._ledgers = [_Ledger(task) for task in tasks]
        for launch_ in done:
            for ledger in self._ledgers:
                ledger.enter(launch_)
        self._append = append
        self._launch_one = launch
        self._observer = observer
        self._clock = clock
        self._until_s = None if budget_s is None else clock.monotonic_s() + budget_s

    def run(self) -> Ending:
        """Launch until nothing is wanted any more, or time is out.

        Raises:
            LaunchError: the supervisor is gone.
            InputError: a record could not be written.
        """
        for ledger in self._ledgers:
            for planned in ledger.unfit():
                self._skip(ledger, planned)
        for block in itertools.count():
            wanted = [(ledger, ledger.wanted(block)) for ledger in self._ledgers]
            if not any(keys for _, keys in wanted):
                return "complete"
            for ledger, keys in wanted:
                for position, planned in self._places(ledger, keys, block):
                    if self._until_s is not None and self._clock.monotonic_s() > self._until_s:
                        return "out of time"
                    self._launch(ledger, planned, block=block, position=position)
        raise AssertionError("count() has no end")

    def _places(
        self, ledger: _Ledger, keys: frozenset[str], block: int
    ) -> Iterator[tuple[int, Planned]]:
        """The launches of one block that have not been done, each with its place in the order."""
        every = shuffled(
            ledger.by_key, seed=self._run.seed, scenario=ledger.scenario.name, block=block
        )
        for position, key in enumerate(every):
            if key in keys and not ledger.has(block, key):
                yield position, ledger.by_key[key]

    def _skip(self, ledger: _Ledger, planned: Planned) -> None:
        unfit = planned.unfit or Unfit(what="", mend="")
        place = list(ledger.by_key).index(planned.cell.key)
        self._keep(
            ledger,
            Launch(
                id=f"{ledger.scenario.name}-skipped-{place}",
                run=self._run.id,
                block=0,
                position=place,
                cell=planned.cell,
                status="skipped",
                reason=unfit.what,
                mend=unfit.mend,
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

    def _launch(self, ledger: _Ledger, planned: Planned, *, block: int, position: int) -> None:
        left = sum(one.certain(after=block) for one in self._ledgers)
        self._observer.started(planned.cell, block=block, left=left)
        started_at = self._clock.now()
        began_s = self._clock.monotonic_s()
        outcome = self._launch_one(planned)
        spent_ns = round((self._clock.monotonic_s() - began_s) * 1e9)
        self._keep(
            ledger,
            Launch(
                id=f"{ledger.scenario.name}-{block}-{position}",
                run=self._run.id,
                block=block,
                position=position,
                cell=planned.cell,
                status=outcome.status,
                reason=outcome.reason,
                mend=outcome.mend,
                evidence=outcome.evidence,
                placement=planned.placement,
                commands=planned.commands,
                started_at=started_at,
                duration_ns=spent_ns,
                overhead_ns=outcome.overhead_ns + spent_ns - outcome.duration_ns,
                looks=outcome.looks,
                look_ns=outcome.look_ns,
                workers=outcome.workers,
                strays=outcome.strays,
                log=outcome.log,
            ),
        )

    def _keep(self, ledger: _Ledger, record: Launch) -> None:
        self._append(record)
        ledger.enter(record)
        self._observer.ended(record)


class _Ledger:
    """What has been done of one task, and what that leaves to do."""

    def __init__(self, task: Task) -> None:
        self.scenario = task.scenario
        self.by_key = {planned.cell.key: planned for planned in task.planned}
        self._done: dict[str, dict[int, Launch]] = {key: {} for key in self.by_key}
        self._summaries: dict[str, LaunchSummary] = {}
        cells = tuple(planned.cell for planned in task.planned)
        self._baselines = {
            cell.key: baseline.key
            for cell in cells
            if (baseline := baseline_of(cell, cells, task.scenario)) is not None
            and baseline.key != cell.key
        }

    def enter(self, launch: Launch) -> None:
        """Note a launch, if it is one of this task."""
        if launch.cell.scenario == self.scenario.name and launch.cell.key in self._done:
            self._done[launch.cell.key][launch.block] = launch

    def has(self, block: int, key: str) -> bool:
        """Whether a cell has been launched in this block, whatever became of it."""
        return block in self._done[key]

    def unfit(self) -> tuple[Planned, ...]:
        """The cells that the host cannot hold and that are not recorded as such."""
        return tuple(
            planned
            for key, planned in self.by_key.items()
            if planned.unfit is not None and not self._done[key]
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

    def certain(self, *, after: int) -> int:
        """How many launches are sure to be wanted, in this block and the ones after it."""
        return sum(
            max(0, planned.measure.launches.min - len(self._done[key]))
            for key, planned in self.by_key.items()
            if planned.unfit is None and after < planned.measure.launches.min
        )

    def _summary(self, cell: Cell, *, before: int) -> CellSummary:
        launches = [record for block, record in self._done[cell.key].items() if block < before]
        warmup = self.by_key[cell.key].measure.warmup
        for record in launches:
            if record.status == "ok" and record.id not in self._summaries:
                self._summaries[record.id] = summarise_launch(record, warmup)
        summaries = [self._summaries[record.id] for record in launches if record.status == "ok"]
        return gather(cell, summaries, [record.status for record in launches])


def launcher(
    supervision: Supervision, scratch: Path, tick: Callable[[], None]
) -> Callable[[Planned], Outcome]:
    """What launches a planned cell for real.

    Args:
        supervision: Starts the workers.
        scratch: A folder for all that launches leave; each leaves nothing.
        tick: Called as time passes within a launch.
    """
    library = _library(scratch)
    folder = scratch / "launch"

    def launch_one(planned: Planned) -> Outcome:
        if planned.placement is None:
            raise ValueError("an unfit cell is skipped, never launched")
        folder.mkdir()
        order = Order(
            placement=planned.placement,
            commands=planned.commands,
            requests=planned.requests,
            threads_asked=planned.requests[0].intra_op,
            timeout_s=planned.measure.timeout_s,
            library=library,
            scratch=folder,
        )
        try:
            return launch(order, supervision, tick)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return launch_one


def _library(scratch: Path) -> Path:
    """A folder with the package and nothing else, for PYTHONPATH.

    Where corebound is installed, its neighbours (another NumPy, say) must not
    reach the worker's environment.
    """
    library = scratch / "library"
    library.mkdir()
    (library / "corebound").symlink_to(Path(corebound.__file__).parent)
    return library
