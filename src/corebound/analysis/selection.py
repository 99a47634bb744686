"""Selects the runs and cells a result is about: latest runs and baseline groups."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from corebound.analysis.scenario_result import (
    CellResult,
    ScenarioResult,
    analyse_scenario,
    decide_together,
)
from corebound.analysis.wording import axis_value
from corebound.groups import grouped
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run, ScenarioSource
from corebound.scenario.cell import Cell


def latest_results(records: Sequence[tuple[Run, Sequence[Launch]]]) -> tuple[ScenarioResult, ...]:
    """The result of the latest run of every scenario in the records, by scenario name.

    A run of selected cells counts only if no run measured the whole of the same file. A run that
    recorded a scenario but launched none of it counts only if there is no other run.

    Raises:
        ScenarioFaults: this version cannot read a recorded scenario.
    """
    latest: dict[str, _Candidate] = {}
    by_time = sorted(records, key=lambda record: (record[0].started_at, record[0].id))
    # The latest first, so that the launches of most runs are never read.
    for run, launches in reversed(by_time):
        for source in run.scenarios:
            name = str(source.document.get("name", ""))
            candidate = latest.get(name)
            if candidate is not None and not _may_be_better(run, source, candidate):
                continue
            launched = any(launch.cell.scenario == name for launch in launches)
            if launched or candidate is None:
                latest[name] = _Candidate(run, source, launches, launched)
    ordered = (latest[name] for name in sorted(latest))
    return decide_together(
        [
            analyse_scenario(candidate.run, candidate.source, candidate.launches)
            for candidate in ordered
        ]
    )


class _Candidate(NamedTuple):
    """A run that may be shown for a scenario, and whether it launched any cell of it."""

    run: Run
    source: ScenarioSource
    launches: Sequence[Launch]
    launched: bool


def _may_be_better(run: Run, source: ScenarioSource, candidate: _Candidate) -> bool:
    """Whether an earlier run may have more complete results of a scenario than the known one."""
    if not candidate.launched:
        return True
    return bool(candidate.run.only) and not run.only and source.sha256 == candidate.source.sha256


class CellGroup(Struct, frozen=True, kw_only=True):
    """A baseline, which comes first, and the cells that are compared with it.

    Attributes:
        title: What distinguishes it from the other groups; empty if there are none.
        cells: Each cell with its name within the group.
    """

    title: str
    cells: tuple[tuple[Cell, CellResult], ...]


def by_baseline(cells: Sequence[CellResult]) -> tuple[CellGroup, ...]:
    """Group cells by their baseline, in the order of the file."""
    groups = grouped(cells, lambda cell: (cell.baseline or cell.cell).key)
    axes = varying_axes([group[0].cell for group in groups.values()])
    return tuple(
        CellGroup(
            title=title_of(group[0].cell, axes),
            cells=tuple(
                (drop_axes(cell.cell, axes), cell)
                for cell in sorted(group, key=lambda cell: cell.baseline is not None)
            ),
        )
        for group in groups.values()
    )


def varying_axes(cells: Sequence[Cell]) -> tuple[str, ...]:
    """The axes on which some of these cells differ."""
    axes = dict.fromkeys(axis for cell in cells for axis, _ in cell.axes)
    return tuple(axis for axis in axes if len({dict(cell.axes).get(axis) for cell in cells}) > 1)


def title_of(cell: Cell, axes: Sequence[str]) -> str:
    """A group's name, taken from one of its cells."""
    return ", ".join(axis_value(cell, axis) for axis in axes)


def drop_axes(cell: Cell, axes: Sequence[str]) -> Cell:
    """The cell without these axes, for a shorter name."""
    return replace(cell, axes=tuple(pair for pair in cell.axes if pair[0] not in axes))
