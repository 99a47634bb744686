"""How one cell did on one host, night after night or commit by commit."""

from __future__ import annotations

from dataclasses import dataclass

from corebound.model.run import Commit

# Of files that keep series.
SERIES_SCHEMA = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What a cell came to once.

    Attributes:
        at: When, ISO 8601 in UTC: a run's start, or the commit's date where no more is known.
        run: The run's id; None where another tool measured.
        commit: The revision that was measured; None where that is not known.
        figure: The series' figure, above 0; None where there is none.
        bounds: Where the figure truly lies, by the point's own launches; None where unknown.
        launches: The figures it was made of, one a launch; empty where they were not kept.
        missing: Why there is no figure, in words; None where there is one.
        circumstances: (what, which) of all but the commit that may change a figure,
            such as ("kernel", "6.1.0"). Where one changes, another segment begins.
    """

    at: str
    run: str | None
    commit: Commit | None
    figure: float | None
    bounds: tuple[float, float] | None
    launches: tuple[float, ...]
    missing: str | None
    circumstances: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
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
    points: tuple[Point, ...]
    confidence: float = 0.95
    commit_url: str | None = None

    @property
    def id(self) -> str:
        """Tells it from every other: `host/resnet50[binding=none]`, or `project/host/…`."""
        where = self.host if self.project is None else f"{self.project}/{self.host}"
        return f"{where}/{self.scenario}[{self.cell}]"
