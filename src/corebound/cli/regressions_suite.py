"""Every series there is: of our own records, joined over the runs, and those imported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from corebound.cli.runs_known import known_runs
from corebound.errors import Fault
from corebound.model.run import Run
from corebound.model.series import Series
from corebound.stats.series import joined
from corebound.store import histories


class Suite(Struct, frozen=True, kw_only=True):
    """What the records hold over time.

    Attributes:
        series: By id.
        runs: The runs that our own are of, by id.
        faults: What could not be read.
    """

    series: tuple[Series, ...]
    runs: Mapping[str, Run]
    faults: tuple[Fault, ...]


def suite_of(records: Path) -> Suite:
    """Read all series of a folder of records."""
    own: list[Series] = []
    runs: dict[str, Run] = {}
    faults: list[Fault] = []
    for one in known_runs(records, faults):
        runs[one.abstract.run.id] = one.abstract.run
        faults += one.abstract.faults
        own += one.abstract.series
    imported, damaged = histories.read_all(records)
    every = sorted((*joined(own), *imported), key=lambda one: one.id)
    return Suite(series=tuple(every), runs=runs, faults=(*faults, *damaged))
