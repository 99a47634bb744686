"""Results of scenarios as if measured, with the placements and commands that planning makes."""

import random
from collections.abc import Mapping

from msgspec.structs import replace

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_results
from corebound.machine.topology import Topology
from corebound.planning.commands import command
from corebound.planning.models import Placement
from corebound.planning.placement import place
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import expand
from corebound.scenario.models import Scenario
from support.build import a_host, a_launch, a_run, a_worker

PYTHON = "/environments/a/bin/python"
BLOCKS = 8


def a_result(
    scenario: Scenario,
    ms: Mapping[str, float],
    *,
    host: Topology | None = None,
    blocks: int = BLOCKS,
    spread: float = 0.01,
    run: Run | None = None,
) -> ScenarioResult:
    """The result of a scenario whose cells take so many milliseconds, give or take the spread.

    Args:
        scenario: The scenario.
        ms: The time of an iteration, by the key of each cell that was launched.
        host: The host that its cells are placed on; by default two cores.
        blocks: How many launches of each cell there are.
        spread: The standard deviation of their logarithms.
        run: The run; its scenario has to be this one.
    """
    topology = host or a_host()
    launches = tuple(
        launch
        for cell in expand(scenario, "s.yaml")
        if cell.key in ms
        for launch in _launches(cell, ms[cell.key], topology, blocks, spread)
    )
    return latest_results([(run or a_run(scenarios=(scenario,)), launches)])[0]


def _launches(cell: Cell, ms: float, host: Topology, blocks: int, spread: float) -> list[Launch]:
    placement = place(cell, host)
    assert isinstance(placement, Placement)
    slots = range(len(placement.slots))
    noise = random.Random(cell.id)  # no secret
    launches = []
    for block in range(blocks):
        wall_ns = (round(ms * 1e6 * noise.lognormvariate(0, spread)),) * 30
        launch = a_launch(
            cell=cell,
            block=block,
            placement=placement,
            workers=tuple(
                a_worker(slot=slot, wall_ns=wall_ns, threads_asked=placement.threads)
                for slot in slots
            ),
        )
        commands = tuple(command(cell, placement, slot, PYTHON) for slot in slots)
        launches.append(replace(launch, id=f"{cell.id}-{block}", commands=commands))
    return launches
