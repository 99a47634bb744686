"""CPU affinity: where a configuration's threads may run, drawn on the machine."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import TypeVar

from msgspec import Struct

from corebound.analysis.commands import CommandLine, plan_command
from corebound.analysis.scenario_result import CellStudy, ScenarioResult
from corebound.analysis.wording import Label, count, label
from corebound.machine.topology import Cpu, CpuId, Topology, cpu_list
from corebound.report.charts.topology import Box
from corebound.units import size

_Key = TypeVar("_Key")
NOT_ALLOWED = "not allowed"
OFFLINE = "offline"


def boxes_of(topology: Topology, *, taken: Container[CpuId] = frozenset()) -> tuple[Box, ...]:
    """The machine as nested boxes: sockets, nodes, last-level caches, cores and CPUs.

    A level that the kernel does not report has no box of its own; its parts are drawn directly. A
    known level has a box even if it is the only one of its kind.

    Args:
        topology: The machine.
        taken: CPUs to mark as used by a configuration.
    """
    drawn = [
        Box(kind="package", name=f"socket {package}", off="", parts=_nodes(topology, cpus, taken))
        for package, cpus in _grouped(topology.cpus, lambda cpu: cpu.core.package)
    ]
    if topology.offline:
        parts = tuple(
            Box(kind="cpu", name=str(cpu), off=OFFLINE, parts=()) for cpu in topology.offline
        )
        drawn.append(Box(kind="group", name=OFFLINE, off="", parts=parts))
    bare = [node for node in topology.nodes if not node.cpus]
    if bare:
        parts = tuple(
            Box(kind="node", name=_node_name(topology, node.id), off="", parts=()) for node in bare
        )
        drawn.append(Box(kind="group", name="nodes without CPUs", off="", parts=parts))
    return tuple(drawn)


def _nodes(topology: Topology, cpus: list[Cpu], taken: Container[CpuId]) -> tuple[Box, ...]:
    parts: list[Box] = []
    for node, own in _grouped(cpus, lambda cpu: -1 if cpu.node is None else int(cpu.node)):
        caches = _caches(topology, own, taken)
        if node < 0:
            parts += caches
        else:
            parts.append(Box(kind="node", name=_node_name(topology, node), off="", parts=caches))
    return tuple(parts)


def _node_name(topology: Topology, number: int) -> str:
    node = next(one for one in topology.nodes if one.id == number)
    memory = "" if node.memory_bytes is None else f", {size(node.memory_bytes)}"
    barred = "" if node.allowed else ", memory not allowed"
    return f"node {number}{memory}{barred}"


def _caches(topology: Topology, cpus: list[Cpu], taken: Container[CpuId]) -> tuple[Box, ...]:
    parts: list[Box] = []
    for index, own in _grouped(cpus, lambda cpu: -1 if cpu.cache is None else cpu.cache):
        cores = tuple(_core(siblings, taken) for _, siblings in _grouped(own, lambda cpu: cpu.core))
        if index < 0:
            parts += cores
            continue
        cache = topology.caches[index]
        large = "" if cache.size_bytes is None else f" {size(cache.size_bytes)}"
        parts.append(Box(kind="cache", name=f"L{cache.level}{large}", off="", parts=cores))
    return tuple(parts)


def _core(cpus: list[Cpu], taken: Container[CpuId]) -> Box:
    kind = cpus[0].kind
    return Box(
        kind="core",
        name="" if kind is None else kind[0].upper(),
        off="",
        parts=tuple(
            Box(
                kind="cpu",
                name=str(cpu.id),
                off="" if cpu.allowed else NOT_ALLOWED,
                parts=(),
                taken=cpu.id in taken,
            )
            for cpu in cpus
        ),
    )


def _grouped(cpus: Iterable[Cpu], key: Callable[[Cpu], _Key]) -> list[tuple[_Key, list[Cpu]]]:
    """CPUs by a key, in the order of the first CPU of each."""
    groups: dict[_Key, list[Cpu]] = {}
    for cpu in cpus:
        groups.setdefault(key(cpu), []).append(cpu)
    return list(groups.items())


def node_rows(topology: Topology) -> tuple[tuple[str, str, str, str], ...]:
    """The drawing as a table: node, its CPUs, its memory, distances to all nodes in order."""
    return tuple(
        (
            f"node {node.id}",
            cpu_list(node.cpus) or "none",
            "unavailable" if node.memory_bytes is None else size(node.memory_bytes),
            " ".join(str(distance) for _, distance in node.distances) or "unavailable",
        )
        for node in topology.nodes
    )


class Placed(Struct, frozen=True, kw_only=True):
    """A configuration on the machine: `says` lists its CPUs per worker.

    `command` shows where it would be placed, without launching it.
    """

    label: Label
    boxes: tuple[Box, ...]
    says: str
    command: CommandLine


def placed(study: ScenarioResult) -> tuple[Placed, ...]:
    """The best alternative and its baseline on the machine; empty if no placement was recorded."""
    best = study.leader
    chosen = [best.cell, best.baseline] if best else [study.baseline]
    drawn = (_placed(study, one) for one in chosen if one is not None)
    return tuple(one for one in drawn if one is not None)


def _placed(study: ScenarioResult, cell: CellStudy) -> Placed | None:
    placement = cell.placement
    if placement is None:
        return None
    cpus = frozenset(cpu for slot in placement.slots for cpu in slot.cpus)
    slots = "; ".join(dict.fromkeys(cpu_list(slot.cpus) for slot in placement.slots))
    workers = f", {count(len(placement.slots), 'worker')}" if len(placement.slots) > 1 else ""
    threads = "" if placement.threads is None else f", {count(placement.threads, 'thread')} each"
    return Placed(
        label=label(cell.cell),
        boxes=boxes_of(study.run.host.topology, taken=cpus),
        says=f"CPUs {slots}{workers}{threads}",
        command=plan_command(study, cell.cell),
    )
