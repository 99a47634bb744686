"""A topology as boxes to draw, and the same as a table."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import TypeVar

from corebound.model.topology import Cpu, CpuId, Topology, cpu_list
from corebound.report.charts.topology import Box
from corebound.units import size

_Key = TypeVar("_Key")
NOT_ALLOWED = "not allowed"
OFFLINE = "offline"


def boxes_of(topology: Topology, *, taken: Container[CpuId] = frozenset()) -> tuple[Box, ...]:
    """Sockets, in them nodes, in them last-level caches, in them cores and their CPUs.

    A level that the kernel does not show, or that has but one part beside all others of its
    kind, is still drawn: what is not known is not drawn as one.

    Args:
        topology: The machine.
        taken: CPUs to mark as those that a setting uses.
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
