"""The result of a scenario in which some cells are the same on the host."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from corebound.analysis.scenario_result import ScenarioResult, analyse_scenario
from corebound.scenario.matrix import expand
from support.build import a_launch, a_placement, a_run, a_scenario, a_worker

MATRIX = {"binding": ["none", "node", "one-cpu"], "threads": [2, "per-core"]}
# On two cores without SMT.
DUPLICATES = {
    "binding=none,threads=per-core": "binding=none,threads=2",
    "binding=node,threads=2": "binding=none,threads=2",
    "binding=node,threads=per-core": "binding=none,threads=2",
}


def result_with_duplicates(
    *,
    duplicates: Mapping[str, str] = DUPLICATES,
    launches: int = 6,
    run_id: str = "r1",
    started_at: str = "2026-01-02T03:04:05Z",
    **scenario: Any,
) -> ScenarioResult:
    """Six cells, of which those on one CPU are half as fast, and three are duplicates."""
    loaded = a_scenario(**{"matrix": MATRIX, **scenario})
    run = replace(
        a_run(scenarios=(loaded,), run_id=run_id, started_at=started_at),
        duplicates={loaded.name: dict(duplicates)},
    )
    measured = [
        a_launch(
            run=run_id,
            cell=cell,
            block=block,
            placement=a_placement(cpus=cpus, threads=len(cpus) if rule == "per-core" else 2),
            workers=(a_worker(wall_ns=(20_000_000 // len(cpus),) * 30),),
        )
        for block in range(launches)
        for cell in expand(loaded, "a.yaml")
        if cell.key not in duplicates
        for cpus in [(0,) if cell.binding.mode == "one-cpu" else (0, 1)]
        for rule in [cell.threads.rule]
    ]
    return analyse_scenario(run, run.scenarios[0], measured)
