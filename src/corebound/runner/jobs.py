"""What a run is to launch: its tasks, and the jobs of their blocks."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.tuning import RacedCells, raced_cells
from corebound.planning.plan import PlannedCell
from corebound.records.launch_record import Kind
from corebound.records.race import RaceSetup
from corebound.scenario.models import Scenario


class Task(Struct, frozen=True, kw_only=True):
    """One scenario of a run, with all its planned cells.

    `turns` is the number of blocks launched before the next scenario's turn. Scenarios that
    need launches most get more turns, because time may not suffice for all. With `tuning`, the
    cells are raced: those that are slower are launched no more.
    """

    scenario: Scenario
    planned: tuple[PlannedCell, ...]
    turns: int = 1
    tuning: RaceSetup | None = None

    @property
    def duplicates(self) -> dict[str, str]:
        """The keys of the cells that are not launched, with those of the cells launched instead."""
        return {
            planned.cell.key: planned.duplicate_of.key
            for planned in self.planned
            if planned.duplicate_of is not None
        }

    @property
    def launchable(self) -> tuple[PlannedCell, ...]:
        """The cells that fit the host, each of those that are the same there once."""
        return tuple(
            planned
            for planned in self.planned
            if planned.unfit is None and planned.duplicate_of is None
        )

    @property
    def raced(self) -> RacedCells:
        """The cells of a race."""
        return raced_cells(
            self.scenario,
            [planned.cell for planned in self.planned],
            [planned.cell for planned in self.launchable],
        )


class Job(Struct, frozen=True, kw_only=True):
    """One launch to make: its cell, its kind and its record id.

    Of the launches that start at once, those with the same `turn` alternate.
    `attempt` is the number of earlier launches for the same place that were refused, which is
    to say discarded as disturbed. `name` is the record id of the first attempt. `iterations` is
    how many each worker times; None: as many as planned. `share_s` is the time that the budget
    leaves for it; None without a budget.
    """

    name: str
    kind: Kind
    block: int
    position: int
    planned: PlannedCell
    attempt: int = 0
    iterations: int | None = None
    share_s: float | None = None
    turn: int = 0

    @property
    def id(self) -> str:
        """The id of its record, unique within the run."""
        return f"{self.name}-again-{self.attempt}" if self.attempt else self.name

    @property
    def key(self) -> str:
        """The key of its cell."""
        return self.planned.cell.key

    @property
    def again(self) -> Job:
        """The next attempt, after a refused one."""
        return replace(self, attempt=self.attempt + 1)
