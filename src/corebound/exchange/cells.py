"""What one run's cells came to: what every format that goes out is made of."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import Fault, ScenarioFaults
from corebound.model.measure import measured
from corebound.model.plan import Cell
from corebound.model.record import Launch
from corebound.model.run import EnvironmentLock, Run, ScenarioSource
from corebound.model.scenario import Scenario
from corebound.planning.expand import expand
from corebound.planning.load import load_document
from corebound.stats.summary import CellSummary, Warmup, summarise


class CellOfRun(Struct, frozen=True, kw_only=True):
    """One cell in one run.

    Attributes:
        run: The run.
        source, scenario: What it is a cell of.
        cell: The cell.
        warmup: How its warm-ups are told from the rest.
        launches: All that measure it, whatever became of them, by block.
        summary: What those that are `ok` say together.
    """

    run: Run
    source: ScenarioSource
    scenario: Scenario
    cell: Cell
    warmup: Warmup
    launches: tuple[Launch, ...]
    summary: CellSummary

    @property
    def environment(self) -> EnvironmentLock | None:
        """What it ran in."""
        return self.run.lock_of(self.cell.environment)

    @property
    def trouble(self) -> str | None:
        """What the first launch that was not `ok` came to, in words."""
        return next(
            (f"{one.status}: {one.reason}" for one in self.launches if one.status != "ok"), None
        )


def cells_of(
    run: Run, launches: Sequence[Launch], where: str
) -> tuple[tuple[CellOfRun, ...], tuple[Fault, ...]]:
    """The cells of a run, in the order of its scenarios; profiles are left out.

    Args:
        run: The run.
        launches: Its launches, in any order.
        where: What to call it in faults: scenarios that this version cannot read.
    """
    sources: dict[str, tuple[ScenarioSource, Scenario]] = {}
    faults: list[Fault] = []
    for source in run.scenarios:
        try:
            scenario = load_document(source.document, f"{where}:{source.path}")
        except ScenarioFaults as error:
            faults += error.faults
        else:
            sources[scenario.name] = (source, scenario)
    by_cell: dict[str, list[Launch]] = {}
    for launch in sorted(launches, key=lambda one: (one.block, one.position)):
        if launch.kind == "measure" and launch.cell.scenario in sources:
            by_cell.setdefault(launch.cell.id, []).append(launch)
    # Launches are in random order, which would be another in every file.
    planned = [
        cell.id
        for source, scenario in sources.values()
        for cell in expand(scenario, source.path, run.profile)
    ]
    made = [
        _cell(run, *sources[own[0].cell.scenario], own)
        for id_ in dict.fromkeys((*planned, *sorted(by_cell)))
        if (own := by_cell.get(id_))
    ]
    return tuple(made), tuple(faults)


def without_iterations(one: CellOfRun) -> CellOfRun:
    """The same without what fills memory and is summarised: a history holds millions of them."""
    launches = tuple(replace(each, workers=(), log="", host=None) for each in one.launches)
    return replace(one, launches=launches)


def _cell(
    run: Run, source: ScenarioSource, scenario: Scenario, launches: Sequence[Launch]
) -> CellOfRun:
    warmup = measured(scenario, run.profile).warmup
    return CellOfRun(
        run=run,
        source=source,
        scenario=scenario,
        cell=launches[0].cell,
        warmup=warmup,
        launches=tuple(launches),
        summary=summarise(launches[0].cell, launches, warmup),
    )
