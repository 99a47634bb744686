"""What a run is made of: scenarios' shares of it, and single launches."""

from __future__ import annotations

from msgspec import Struct

from corebound.model.record import Kind
from corebound.model.scenario import Scenario
from corebound.planning.assemble import Planned


class Task(Struct, frozen=True, kw_only=True):
    """One scenario's share of a run: all its cells, planned.

    `turns` is how many blocks of it are launched before the next scenario's turn: more for
    one that needs them most, where time may not suffice for all.
    """

    scenario: Scenario
    planned: tuple[Planned, ...]
    turns: int = 1


class Job(Struct, frozen=True, kw_only=True):
    """One launch to be made: what of, what for, and under which name it is recorded.

    `attempt` counts the launches that were refused in its place before; `name` is what the
    first of them is recorded as.
    """

    name: str
    kind: Kind
    block: int
    position: int
    planned: Planned
    attempt: int = 0

    @property
    def id(self) -> str:
        """What it is recorded as, unique within the run."""
        return f"{self.name}-again-{self.attempt}" if self.attempt else self.name
