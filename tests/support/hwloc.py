"""hwloc's answers about saved machines, and ours to the same questions.

    python tests/support/hwloc.py

asks hwloc and writes tests/data/topologies/oracle.json; see the README there.
"""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from corebound.machine.topology import Topology, cpu_list
from support.machine_trees import ARCHIVES, machine_files, saved_machines, write_files

HWLOC_ANSWERS = ARCHIVES / "oracle.json"

# Data and unified caches, as hwloc writes them; instruction caches are 2.
_DATA_OR_UNIFIED = {"0", "1"}


def cpu_lists(sets: Iterable[Iterable[int]]) -> list[str]:
    """Sets of CPUs in one order and notation, without empty ones."""
    return [cpu_list(cpus) for cpus in sorted(sorted(cpus) for cpus in sets) if cpus]


def hwloc_answers(root: Path | None) -> dict[str, Any]:
    """What hwloc sees of a saved machine, or of this one where `root` is None.

    Every list is of what is allowed only: `pus`, and the PUs behind each of
    `cores`, `packages` and last-level `caches`; `nodes` by number, those that
    have no CPU of their own with the CPUs hwloc thinks nearest.
    """
    environment = {**os.environ, "HWLOC_COMPONENTS": "-x86", "HWLOC_HIDE_ERRORS": "2"}
    # Of a live machine hwloc shows all that cgroups allow; our affinity may be narrower.
    limits = ["--restrict", "binding"] if root is None else []
    if root is not None:
        environment["HWLOC_FSROOT"] = str(root)
    xml = subprocess.run(
        ["lstopo-no-graphics", "--no-io", *limits, "--of", "xml"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    objects = [
        dict(re.findall(r'(\w+)="([^"]*)"', attributes))
        for attributes in re.findall(r"<object ([^>]*)>", xml)
    ]
    return _answers(objects)


def _answers(objects: list[dict[str, str]]) -> dict[str, Any]:
    allowed = _bits(objects[0]["allowed_cpuset"])

    def of(kind: str) -> list[frozenset[int]]:
        return [_bits(each["cpuset"]) & allowed for each in objects if each["type"] == kind]

    caches = sorted(
        (
            (int(each["depth"]), _bits(each["cpuset"]) & allowed)
            for each in objects
            if "cache_size" in each and each["cache_type"] in _DATA_OR_UNIFIED
        ),
        key=lambda cache: -cache[0],
    )
    outermost = {
        next((behind for _, behind in caches if cpu in behind), frozenset[int]()) for cpu in allowed
    }
    return {
        "pus": cpu_list(allowed),
        "cores": cpu_lists(of("Core")),
        "packages": cpu_lists(of("Package")),
        "caches": cpu_lists(outermost),
        "nodes": {
            each["os_index"]: cpu_list(_bits(each["cpuset"]) & allowed)
            for each in objects
            if each["type"] == "NUMANode"
        },
    }


def _bits(text: str) -> frozenset[int]:
    """hwloc's own notation: `0x00000001,,0x3`, groups of 32 bits, zero where empty."""
    bits = 0
    for group in text.split(","):
        bits = bits << 32 | int(group or "0", 16)
    return frozenset(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def our_answers(host: Topology) -> dict[str, Any]:
    """The same questions, answered by our own reading.

    Nodes that have no CPU of their own are left as such; a machine whose
    kernel knows no nodes is one node 0, as it is to hwloc.
    """
    mine = host.allowed
    cores: dict[object, set[int]] = {}
    packages: dict[object, set[int]] = {}
    caches: dict[object, set[int]] = {}
    for cpu in mine:
        cores.setdefault(cpu.core, set()).add(cpu.id)
        packages.setdefault(cpu.core.package, set()).add(cpu.id)
        if cpu.cache is not None:
            caches.setdefault(cpu.cache, set()).add(cpu.id)
    allowed = {cpu.id for cpu in mine}
    nodes = {str(node.id): cpu_list(allowed & {*node.cpus}) for node in host.nodes if node.allowed}
    return {
        "pus": cpu_list(allowed),
        "cores": cpu_lists(cores.values()),
        "packages": cpu_lists(packages.values()),
        "caches": cpu_lists(caches.values()),
        "nodes": nodes if host.nodes else {"0": cpu_list(allowed)},
    }


def agree(ours: dict[str, Any], theirs: dict[str, Any]) -> bool:
    """Whether both say the same, but for where hwloc puts nodes that have no CPU."""
    nodes, their_nodes = ours["nodes"], theirs["nodes"]
    return {**ours, "nodes": None} == {**theirs, "nodes": None} and all(
        number in nodes and nodes[number] in {"", cpus} for number, cpus in their_nodes.items()
    )


if __name__ == "__main__":
    answers = {}
    for machine in saved_machines():
        with tempfile.TemporaryDirectory() as folder:
            answers[machine] = hwloc_answers(write_files(machine_files(machine), Path(folder)))
    HWLOC_ANSWERS.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n", encoding="utf-8")
