"""Placements on real machines, held against hwloc's recorded view of them."""

import json
from functools import cache
from typing import Any, get_args

import pytest

from corebound.machine.discovery import topology
from corebound.machine.topology import Topology, cpu_list, parse_cpu_list
from corebound.planning.models import CannotRun, Placement
from corebound.planning.placement import place
from corebound.scenario.cell import Binding, BindingMode, Threads
from support.build import a_cell
from support.hwloc import HWLOC_ANSWERS
from support.machine_trees import machine_files, memory_tree, saved_machines

RECORDED: dict[str, Any] = json.loads(HWLOC_ANSWERS.read_text(encoding="utf-8"))


@cache
def host(machine: str) -> Topology:
    return topology(memory_tree(machine_files(machine)), where=machine)


def cpus(mode: BindingMode, machine: str) -> str | None:
    placement = place(a_cell(binding=Binding(mode=mode)), host(machine))
    return cpu_list(placement.slots[0].cpus) if isinstance(placement, Placement) else None


@pytest.mark.parametrize("machine", saved_machines())
def test_physical_cores_are_the_first_pu_of_each_of_hwlocs_cores(machine: str) -> None:
    firsts = cpu_list(parse_cpu_list(core)[0] for core in RECORDED[machine]["cores"])

    assert cpus("physical-cores", machine) == firsts


@pytest.mark.parametrize("machine", saved_machines())
def test_logical_cpus_are_hwlocs_allowed_pus(machine: str) -> None:
    assert cpus("logical-cpus", machine) == cpus("none", machine) == RECORDED[machine]["pus"]


@pytest.mark.parametrize("machine", saved_machines())
def test_a_node_a_socket_and_a_cache_are_each_one_of_hwlocs(machine: str) -> None:
    recorded = RECORDED[machine]

    assert cpus("node", machine) in recorded["nodes"].values()
    assert cpus("socket", machine) in recorded["packages"]
    if recorded["caches"]:
        assert cpus("cache", machine) in recorded["caches"]
    else:
        assert cpus("cache", machine) is None


@pytest.mark.parametrize("machine", saved_machines())
def test_smt_siblings_are_all_pus_of_hwlocs_cores_with_more_than_one(machine: str) -> None:
    cores = [parse_cpu_list(core) for core in RECORDED[machine]["cores"]]
    shared = cpu_list(cpu for core in cores if len(core) > 1 for cpu in core)

    assert (cpus("smt-siblings", machine) or "") == shared


@pytest.mark.parametrize("machine", saved_machines())
def test_every_mode_is_placed_or_rejected_on_every_machine(machine: str) -> None:
    for mode in get_args(BindingMode):
        for rule in (1, 2, 48, "default", "per-core", "per-cpu", "host-cores"):
            for workers in (1, 3):
                cell = a_cell(
                    binding=Binding(mode=mode), threads=Threads(rule=rule), workers=workers
                )
                assert isinstance(place(cell, host(machine)), Placement | CannotRun)
