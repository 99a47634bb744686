"""How one cell did on one host, night after night or commit by commit."""

from __future__ import annotations

from msgspec import Struct

from corebound.model.points import Points

# Of files that keep series.
SERIES_SCHEMA = 3


class Series(Struct, frozen=True, kw_only=True):
    """The points of one cell on one host, oldest first.

    Attributes:
        project: Whose history it is where it was imported; None: of our own records.
        host: The host's id, or what another tool calls its machine.
        host_name: The same for the eye.
        scenario: The scenario's name, or another tool's benchmark.
        title: The same for the eye.
        cell: The cell's key within the scenario.
        unit: `ns` of a time; else the unit in words.
        margin: Least change that matters; 0.02 is a ratio of 1.02 or its reciprocal.
        reproduce: The command that measures it again; empty where there is none.
        points: At least one.
        confidence: How surely the points' bounds hold the figure; asv's do at 0.99.
        commit_url: What a commit's hash is put behind to see it; None where not known.
        code: The source of what is measured, as another tool keeps it beside its results.
        more_is_better: Whether it is a rate, of which more is better; of all else less is.
    """

    project: str | None
    host: str
    host_name: str
    scenario: str
    title: str
    cell: str
    unit: str
    margin: float
    reproduce: tuple[str, ...]
    points: Points
    confidence: float = 0.95
    commit_url: str | None = None
    code: str | None = None
    more_is_better: bool = False

    @property
    def id(self) -> str:
        """Tells it from every other: `host/resnet50[binding=none]`, or `project/host/…`."""
        where = self.host if self.project is None else f"{self.project}/{self.host}"
        return f"{where}/{self.scenario}[{self.cell}]"
