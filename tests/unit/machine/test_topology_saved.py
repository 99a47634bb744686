"""Real machines, saved: our reading against hwloc's recorded answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corebound.machine.discovery import saved_topology, topology
from corebound.machine.topology import Node, Topology
from support.hwloc import HWLOC_ANSWERS, agree, our_answers
from support.machine_trees import machine_files, memory_tree, saved_machines, write_files

RECORDED: dict[str, Any] = json.loads(HWLOC_ANSWERS.read_text(encoding="utf-8"))


def read(machine: str) -> Topology:
    return topology(memory_tree(machine_files(machine)), where=machine)


def test_every_saved_machine_has_recorded_answers() -> None:
    assert tuple(RECORDED) == saved_machines()
    assert len(RECORDED) == 12


@pytest.mark.parametrize("machine", saved_machines())
def test_our_reading_of_a_saved_machine_is_hwlocs(machine: str) -> None:
    ours, theirs = our_answers(read(machine)), RECORDED[machine]

    assert agree(ours, theirs), (ours, theirs)


def test_files_on_a_disk_read_as_the_same_files_in_memory(tmp_path: Path) -> None:
    machine = "hwloc_16amd64-8n2c-cpusets"

    assert saved_topology(write_files(machine_files(machine), tmp_path)) == read(machine)


def test_a_bare_sys_tree_is_read_without_cgroups(tmp_path: Path) -> None:
    machine = "hwloc_16amd64-8n2c-cpusets"
    host = saved_topology(write_files(machine_files(machine), tmp_path) / "sys")

    assert len(host.allowed) == len(host.cpus) == 15  # of 16 one is offline
    assert all(node.allowed for node in host.nodes)


def test_the_hybrid_processor_shows_both_kinds_of_core() -> None:
    host = read("hwloc_20em64t-hybrid-1p6c2t+2ca4co1t")  # 6 cores × 2 and 8 × 1, by its name

    assert [cpu.id for cpu in host.cpus if cpu.kind == "performance"] == list(range(12))
    assert [cpu.id for cpu in host.cpus if cpu.kind == "efficiency"] == list(range(12, 20))


def test_nodes_keep_their_memory_and_distances() -> None:
    nodes: dict[int, Node] = {
        node.id: node for node in read("hwloc_fakememinitiators-1np2c+1npp+gi").nodes
    }
    far: dict[int, int] = dict(nodes[0].distances)

    assert nodes[0].cpus == (0, 1)
    assert nodes[0].memory_bytes == 0
    assert nodes[5].memory_bytes == 97_447_340 << 10
    assert far[5] == 11
    assert [node.id for node in nodes.values() if node.allowed] == [5, 6, 7, 8, 9, 10]


def test_the_cpus_of_a_cpu_that_is_offline_are_listed_as_such() -> None:
    host = read("hwloc_offline-cpu0-node0")

    assert host.offline == (0, 1, 2, 3, 21, 22, 23)
    assert host.cpus[0].id == 4
    assert host.cpus[0].node is None  # the kernel took node 0 away with its memory
