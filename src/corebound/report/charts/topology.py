"""A machine as nested boxes: sockets, nodes, caches, cores, CPUs.

The drawing consists of nested lists that the style sheet formats. Numbers therefore keep their size
on a phone, and a machine of 512 CPUs wraps. A screen reader would read each CPU as a list of one
within four others. It therefore gets a single image with a name, which lists how many parts of each
kind there are, which are used, and which are unavailable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from html import escape
from typing import Literal, TypeVar

from msgspec import Struct

from corebound.machine.topology import Cpu, CpuId, Topology, cpu_list
from corebound.report.charts.alt_text import img_attributes
from corebound.units import size

# The name of each kind, singular and plural; a group has none.
_KINDS = (
    ("package", "socket", "sockets"),
    ("node", "node", "nodes"),
    ("cache", "last-level cache", "last-level caches"),
    ("core", "core", "cores"),
    ("cpu", "CPU", "CPUs"),
)


class Box(Struct, frozen=True, kw_only=True):
    """A part of a machine.

    Attributes:
        kind: Its kind; the parts of a core are its CPUs.
        name: Its label.
        off: Why it cannot be used, such as `not allowed`; empty if it can.
        parts: The boxes in it.
        taken: Whether a configuration's threads may run there.
    """

    kind: Literal["package", "node", "cache", "core", "cpu", "group"]
    name: str
    off: str
    parts: tuple[Box, ...]
    taken: bool = False


def topology_html(boxes: tuple[Box, ...]) -> str:
    """Draw the outermost boxes and their contents."""
    drawn = "".join(_box(box) for box in boxes)
    return (
        f"<div{img_attributes(describe_topology(boxes))}>"
        f'<ul class="machine" aria-hidden="true">{drawn}</ul></div>'
    )


def describe_topology(boxes: tuple[Box, ...]) -> str:
    """A machine and the used part of it: `1 socket, 2 cores, 2 CPUs; used: CPUs 0-1`."""
    nested = [part for box in boxes for part in _nested(box)]
    kinds: Counter[str] = Counter(part.kind for part in nested)
    held = ", ".join(
        f"{kinds[kind]:,} {name if kinds[kind] == 1 else many}"
        for kind, name, many in _KINDS
        if kinds[kind]
    )
    cpus: dict[str, list[int]] = {}
    for part in nested:
        if part.kind == "cpu":
            for state in filter(None, (part.off, "used" if part.taken else "")):
                cpus.setdefault(state, []).append(int(part.name))
    return "; ".join([held, *(f"{state}: CPUs {cpu_list(own)}" for state, own in cpus.items())])


def _nested(box: Box) -> Iterator[Box]:
    yield box
    for part in box.parts:
        yield from _nested(part)


def _box(box: Box) -> str:
    kind = f"{box.kind}{' off' if box.off else ''}{' taken' if box.taken else ''}"
    inner = "".join(_box(part) for part in box.parts)
    held = f"<ul>{inner}</ul>" if inner else ""
    name = f"<span>{escape(box.name)}</span>" if box.name else ""
    return f'<li class="{kind}">{name}{held}</li>'


_Key = TypeVar("_Key")


NOT_ALLOWED = "not allowed"


OFFLINE = "offline"


def topology_boxes(topology: Topology, *, taken: Container[CpuId] = frozenset()) -> tuple[Box, ...]:
    """The machine as nested boxes: sockets, nodes, last-level caches, cores and CPUs.

    A level that the kernel does not report has no box of its own; its parts are drawn directly. A
    known level has a box even if it is the only one of its kind.

    Args:
        topology: The machine.
        taken: CPUs to mark as used by a configuration.
    """
    drawn = [
        Box(
            kind="package",
            name=f"socket {package}",
            off="",
            parts=_node_boxes(topology, cpus, taken),
        )
        for package, cpus in _group_cpus(topology.cpus, lambda cpu: cpu.core.package)
    ]
    if topology.offline:
        boxes = tuple(
            Box(kind="cpu", name=str(cpu), off=OFFLINE, parts=()) for cpu in topology.offline
        )
        drawn.append(Box(kind="group", name=OFFLINE, off="", parts=boxes))
    bare = [node for node in topology.nodes if not node.cpus]
    if bare:
        boxes = tuple(
            Box(kind="node", name=_node_name(topology, node.id), off="", parts=()) for node in bare
        )
        drawn.append(Box(kind="group", name="nodes without CPUs", off="", parts=boxes))
    return tuple(drawn)


def _node_boxes(topology: Topology, cpus: list[Cpu], taken: Container[CpuId]) -> tuple[Box, ...]:
    boxes: list[Box] = []
    for node, own in _group_cpus(cpus, lambda cpu: -1 if cpu.node is None else int(cpu.node)):
        caches = _cache_boxes(topology, own, taken)
        if node < 0:
            boxes += caches
        else:
            boxes.append(Box(kind="node", name=_node_name(topology, node), off="", parts=caches))
    return tuple(boxes)


def _node_name(topology: Topology, number: int) -> str:
    node = next(one for one in topology.nodes if one.id == number)
    memory = "" if node.memory_bytes is None else f", {size(node.memory_bytes)}"
    barred = "" if node.allowed else ", memory not allowed"
    return f"node {number}{memory}{barred}"


def _cache_boxes(topology: Topology, cpus: list[Cpu], taken: Container[CpuId]) -> tuple[Box, ...]:
    boxes: list[Box] = []
    for index, own in _group_cpus(cpus, lambda cpu: -1 if cpu.cache is None else cpu.cache):
        cores = tuple(
            _core_box(siblings, taken) for _, siblings in _group_cpus(own, lambda cpu: cpu.core)
        )
        if index < 0:
            boxes += cores
            continue
        cache = topology.caches[index]
        large = "" if cache.size_bytes is None else f" {size(cache.size_bytes)}"
        boxes.append(Box(kind="cache", name=f"L{cache.level}{large}", off="", parts=cores))
    return tuple(boxes)


def _core_box(cpus: list[Cpu], taken: Container[CpuId]) -> Box:
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


def _group_cpus(cpus: Iterable[Cpu], key: Callable[[Cpu], _Key]) -> list[tuple[_Key, list[Cpu]]]:
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
