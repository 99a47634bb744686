"""The output of `corebound topology`: the machine as text."""

from __future__ import annotations

from collections.abc import Iterator

from corebound import units
from corebound.analysis.wording import count
from corebound.machine.topology import CoreKey, Cpu, Topology, cpu_list


def describe(host: Topology) -> str:
    """Render the machine as a tree: packages, nodes, caches, cores with their CPUs."""
    return "\n".join((_headline(host), *_packages(host), *_rest(host)))


def _headline(host: Topology) -> str:
    parts = [
        count(len({cpu.core.package for cpu in host.cpus}), "package"),
        count(len(host.nodes), "node"),
        count(len({cpu.core for cpu in host.cpus}), "core"),
        count(len(host.cpus), "CPU"),
    ]
    parts.append("SMT" if host.has_smt else "no SMT")
    if len(host.allowed) < len(host.cpus):
        parts.append(f"allowed {cpu_list(cpu.id for cpu in host.allowed)}")
    return ", ".join(parts)


def _packages(host: Topology) -> Iterator[str]:
    for package in sorted({cpu.core.package for cpu in host.cpus}):
        yield f"package {package}"
        inside = [cpu for cpu in host.cpus if cpu.core.package == package]
        for node in sorted({cpu.node for cpu in inside}, key=lambda node: (node is None, node)):
            here = [cpu for cpu in inside if cpu.node == node]
            if node is not None:
                yield f"  node {node}{_memory(host, node)}"
            for cache in dict.fromkeys(cpu.cache for cpu in here):
                yield from _cache(host, [cpu for cpu in here if cpu.cache == cache], cache)


def _memory(host: Topology, node: int) -> str:
    size = next((one.memory_bytes for one in host.nodes if one.id == node), None)
    return "" if size is None else f", {units.size(size)}"


def _cache(host: Topology, cpus: list[Cpu], cache: int | None) -> Iterator[str]:
    indent = "    "
    if cache is not None:
        found = host.caches[cache]
        size = "" if found.size_bytes is None else f", {units.size(found.size_bytes)}"
        yield f"{indent}L{found.level}{size}"
        indent += "  "
    cores: dict[CoreKey, list[Cpu]] = {}
    for cpu in cpus:
        cores.setdefault(cpu.core, []).append(cpu)
    for key, threads in cores.items():
        kind = f", {threads[0].kind}" if threads[0].kind else ""
        barred = [cpu.id for cpu in threads if not cpu.allowed]
        note = f", not allowed: {cpu_list(barred)}" if barred else ""
        noun = "CPU" if len(threads) == 1 else "CPUs"
        yield f"{indent}core {key.core}: {noun} {cpu_list(cpu.id for cpu in threads)}{kind}{note}"


def _rest(host: Topology) -> Iterator[str]:
    for node in host.nodes:
        if not node.cpus:
            yield f"node {node.id}{_memory(host, node.id)}, no CPUs"
    if host.offline:
        yield f"offline: {cpu_list(host.offline)}"
