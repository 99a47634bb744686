"""A scenario's cells, planned on a made host."""

from typing import Any

from msgspec.structs import replace

from corebound.machine.cgroups import QuotaSupport
from corebound.planning.host_support import HostCapabilities, HugePageSupport
from corebound.planning.plan import PlannedCell, plan_cells
from corebound.scenario.matrix import baselines_of, expand
from support.build import a_host, a_scenario


def block(
    *,
    smt: int = 1,
    quota: QuotaSupport | None = None,
    host_quota: float | None = None,
    huge_pages: HugePageSupport | None = None,
    openmp: dict[str, str] | None = None,
    tools: frozenset[str] = frozenset({"taskset", "numactl"}),
    instructions: frozenset[str] = frozenset(),
    **scenario: Any,
) -> tuple[tuple[PlannedCell, ...], dict[str, str]]:
    """Every cell of a scenario on a host of eight CPUs, and whom each is compared with."""
    loaded = a_scenario(**scenario)
    environment = str(loaded.environment or "host")
    host_topology = a_host(nodes=2, cores_per_node=4 // smt, cpus_per_core=smt)
    host = HostCapabilities(
        topology=replace(host_topology, cpu_quota=host_quota),
        tools=tools,
        instructions=instructions,
        pythons={environment: "/usr/bin/python3"},
        gpus=("0",),
        quota=quota or QuotaSupport(),
        huge_pages=huge_pages or HugePageSupport(),
        openmp={environment: openmp or {}},
    )
    cells = expand(loaded, "a.yaml")
    planned = plan_cells(loaded, cells, host, folder="/suite", profile=None, seed=1)
    baselines = baselines_of(cells, cells, loaded)
    pairs = zip(cells, baselines, strict=True)
    return planned, {cell.key: base.key for cell, base in pairs if base is not None}
