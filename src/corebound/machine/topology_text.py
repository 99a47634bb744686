"""A machine as a tree of text, as `corebound topology`, `print` and notebooks show it."""

from __future__ import annotations

from collections.abc import Iterator

from corebound import units
from corebound.machine.topology import CoreKey, Cpu, Topology, cpu_list


def describe(host: Topology) -> str:
    """Render the machine as a tree: packages, nodes, caches, cores with their CPUs."""
    notes = (f"note: {note}" for note in (host.memory_note, *host.notes) if note)
    return "\n".join((_headline(host), *_packages(host), *_without_cpus(host), *notes))


def _headline(host: Topology) -> str:
    counted = {
        "package": len({cpu.core.package for cpu in host.cpus}),
        "node": len(host.nodes),
        "core": len({cpu.core for cpu in host.cpus}),
        "CPU": len(host.cpus),
    }
    parts = [f"{number:,} {noun}{'s' * (number != 1)}" for noun, number in counted.items()]
    parts.append("SMT" if host.has_smt else "no SMT")
    if host.memory_bytes is not None:
        parts.append(units.size(host.memory_bytes))
    if len(host.allowed) < len(host.cpus):
        parts.append(f"allowed {cpu_list(cpu.id for cpu in host.allowed)}")
    if host.cpu_quota is not None:
        parts.append(f"CPU quota of {units.cpu_quota(host.cpu_quota)}")
    if host.quota_unknown is not None:
        parts.append(f"CPU quota unknown ({host.quota_unknown})")
    return ", ".join(parts)


def _packages(host: Topology) -> Iterator[str]:
    for package in sorted({cpu.core.package for cpu in host.cpus}):
        yield f"package {package}"
        in_package = [cpu for cpu in host.cpus if cpu.core.package == package]
        for node in sorted({cpu.node for cpu in in_package}, key=lambda node: (node is None, node)):
            on_node = [cpu for cpu in in_package if cpu.node == node]
            if node is not None:
                yield f"  node {node}{_memory(host, node)}"
            for cache in dict.fromkeys(cpu.cache for cpu in on_node):
                yield from _cores(host, [cpu for cpu in on_node if cpu.cache == cache], cache)


def _memory(host: Topology, node_id: int) -> str:
    size = next((node.memory_bytes for node in host.nodes if node.id == node_id), None)
    return "" if size is None else f", {units.size(size)}"


def _cores(host: Topology, cpus: list[Cpu], cache_index: int | None) -> Iterator[str]:
    """The cores that share a cache, below the cache if it is known."""
    indent = "    "
    if cache_index is not None:
        cache = host.caches[cache_index]
        size = "" if cache.size_bytes is None else f", {units.size(cache.size_bytes)}"
        yield f"{indent}L{cache.level}{size}"
        indent += "  "
    cores: dict[CoreKey, list[Cpu]] = {}
    for cpu in cpus:
        cores.setdefault(cpu.core, []).append(cpu)
    for key, threads in cores.items():
        kind = f", {threads[0].kind}" if threads[0].kind else ""
        forbidden = [cpu.id for cpu in threads if not cpu.allowed]
        note = f", not allowed: {cpu_list(forbidden)}" if forbidden else ""
        noun = "CPU" if len(threads) == 1 else "CPUs"
        yield f"{indent}core {key.core}: {noun} {cpu_list(cpu.id for cpu in threads)}{kind}{note}"


def _without_cpus(host: Topology) -> Iterator[str]:
    """Memory nodes without CPUs, and CPUs that are offline."""
    for node in host.nodes:
        if not node.cpus:
            yield f"node {node.id}{_memory(host, node.id)}, no CPUs"
    if host.offline:
        yield f"offline: {cpu_list(host.offline)}"
