"""A machine as nested boxes: sockets, nodes, caches, cores, CPUs.

The drawing consists of nested lists that the style sheet formats. Numbers therefore keep their size
on a phone, and a machine of 512 CPUs wraps. A screen reader would read each CPU as a list of one
within four others. It therefore gets a single image with a name, which lists how many parts of each
kind there are, which are used, and which are unavailable.
"""

from collections.abc import Container
from html import escape

from corebound.analysis.wording import count
from corebound.groups import grouped
from corebound.machine.topology import Cpu, CpuId, Topology, cpu_list
from corebound.report.charts.svg import img_attributes
from corebound.units import size

NOT_ALLOWED, OFFLINE = "not allowed", "offline"


def topology_html(topology: Topology, taken: Container[CpuId] = frozenset()) -> str:
    """Draw sockets, nodes, last-level caches, cores and CPUs; the taken CPUs are filled.

    A level that the kernel does not report has no box of its own; its parts are drawn directly. A
    known level has a box even if it is the only one of its kind.
    """
    drawn = [
        _box("package", f"socket {package}", _nodes(topology, cpus, taken))
        for package, cpus in grouped(topology.cpus, lambda cpu: cpu.core.package).items()
    ]
    if topology.offline:
        offline = "".join(_box("cpu", str(cpu), off=OFFLINE) for cpu in topology.offline)
        drawn.append(_box("group", OFFLINE, offline))
    if bare := [node for node in topology.nodes if not node.cpus]:
        nodes = "".join(_box("node", _node_name(topology, node.id)) for node in bare)
        drawn.append(_box("group", "nodes without CPUs", nodes))
    return (
        f"<div{img_attributes(describe_topology(topology, taken))}>"
        f'<ul class="machine" aria-hidden="true">{"".join(drawn)}</ul></div>'
    )


def describe_topology(topology: Topology, taken: Container[CpuId] = frozenset()) -> str:
    """A machine and the used part of it: `1 socket, 2 cores, 2 CPUs; used: CPUs 0-1`."""
    cpus = topology.cpus
    bare = sum(not node.cpus for node in topology.nodes)
    numbers = {
        "socket": len({cpu.core.package for cpu in cpus}),
        "node": len({cpu.node for cpu in cpus} - {None}) + bare,
        "last-level cache": len({cpu.cache for cpu in cpus} - {None}),
        "core": len({cpu.core for cpu in cpus}),
        "CPU": len(cpus) + len(topology.offline),
    }
    held = ", ".join(count(number, noun) for noun, number in numbers.items() if number)
    states = {
        "used": [cpu.id for cpu in cpus if cpu.id in taken],
        NOT_ALLOWED: [cpu.id for cpu in cpus if not cpu.allowed],
        OFFLINE: topology.offline,
    }
    return "; ".join(
        [held, *(f"{state}: CPUs {cpu_list(own)}" for state, own in states.items() if own)]
    )


def _box(kind: str, name: str, inner: str = "", *, off: str = "", is_taken: bool = False) -> str:
    """A part of a machine with those in it; `off` is why it cannot be used."""
    classes = f"{kind}{' off' if off else ''}{' taken' if is_taken else ''}"
    title = f"<span>{escape(name)}</span>" if name else ""
    return f'<li class="{classes}">{title}{f"<ul>{inner}</ul>" if inner else ""}</li>'


def _nodes(topology: Topology, cpus: list[Cpu], taken: Container[CpuId]) -> str:
    drawn = ""
    for node, own in grouped(cpus, lambda cpu: cpu.node).items():
        caches = _caches(topology, own, taken)
        drawn += caches if node is None else _box("node", _node_name(topology, node), caches)
    return drawn


def _node_name(topology: Topology, number: int) -> str:
    node = next(node for node in topology.nodes if node.id == number)
    memory = "" if node.memory_bytes is None else f", {size(node.memory_bytes)}"
    barred = "" if node.allowed else ", memory not allowed"
    return f"node {number}{memory}{barred}"


def _caches(topology: Topology, cpus: list[Cpu], taken: Container[CpuId]) -> str:
    drawn = ""
    for index, own in grouped(cpus, lambda cpu: cpu.cache).items():
        cores = "".join(
            _core(siblings, taken) for siblings in grouped(own, lambda cpu: cpu.core).values()
        )
        if index is None:
            drawn += cores
            continue
        cache = topology.caches[index]
        large = "" if cache.size_bytes is None else f" {size(cache.size_bytes)}"
        drawn += _box("cache", f"L{cache.level}{large}", cores)
    return drawn


def _core(cpus: list[Cpu], taken: Container[CpuId]) -> str:
    kind = cpus[0].kind
    siblings = (
        _box(
            "cpu",
            str(cpu.id),
            off="" if cpu.allowed else NOT_ALLOWED,
            is_taken=cpu.id in taken,
        )
        for cpu in cpus
    )
    return _box("core", "" if kind is None else kind[0].upper(), "".join(siblings))


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
