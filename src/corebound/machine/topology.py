"""A machine's topology: CPUs, cores, caches, nodes and sockets, and its tree as text."""

from collections.abc import Iterable, Iterator
from html import escape
from typing import Annotated, Literal, NewType

from msgspec import Meta, Struct

from corebound import units
from corebound.bounded_numbers import Count, Positive, Signed

# The kernel's own limit (CONFIG_NR_CPUS) is 8,192 on x86-64. A list beyond this is a
# typing error and must not exhaust memory.
MOST_CPUS = 65_536

CpuId = NewType(
    "CpuId", Annotated[int, Meta(ge=0, le=MOST_CPUS)]
)  # the kernel's number for a logical CPU
NodeId = NewType(
    "NodeId", Annotated[int, Meta(ge=0, le=MOST_CPUS)]
)  # a NUMA node, never a machine; may have gaps

CoreKind = Literal["performance", "efficiency"]


class CoreKey(Struct, frozen=True, kw_only=True, order=True):
    """The physical core that a CPU belongs to.

    A `core_id` alone repeats across packages and dies, and is not a CPU number. Only all
    three numbers together identify a core.
    """

    package: Signed
    die: Signed
    core: Signed


class Cpu(Struct, frozen=True, kw_only=True):
    """One logical CPU that is online.

    Attributes:
        id: The kernel's number.
        core: The physical core it is a hardware thread of.
        node: The NUMA node it belongs to; None if the kernel shows none.
        cache: Index into `Topology.caches` of its last-level cache; None
            if the kernel shows no shared data cache.
        kind: Core kind on hybrid processors, else None.
        allowed: Whether affinity and cgroups allow us to run on it.
    """

    id: CpuId
    core: CoreKey
    node: NodeId | None
    cache: Count | None
    kind: CoreKind | None
    allowed: bool


class Cache(Struct, frozen=True, kw_only=True):
    """A last-level (outermost data or unified) cache and the CPUs that share it."""

    level: Count
    size_bytes: Count | None
    cpus: tuple[CpuId, ...]


class Node(Struct, frozen=True, kw_only=True):
    """A NUMA node; it may have no CPUs, or no memory (`memory_bytes` 0).

    `distances` pairs every node with the kernel's relative distance from this one (10 is
    local). `allowed` is whether we may allocate memory here.
    """

    id: NodeId
    cpus: tuple[CpuId, ...]
    memory_bytes: Count | None
    distances: tuple[tuple[NodeId, Count], ...]
    allowed: bool


class Topology(Struct, frozen=True, kw_only=True):
    """All online CPUs with their location, and the numbers of the offline CPUs.

    Attributes:
        cpu_quota: The CPU time that our cgroups allow us, in CPUs; None if no quota is known.
        quota_unknown: Why there may be another quota; None if there is none.
        memory_bytes: The memory of the machine, as far as the kernel manages it; None if unknown.
        memory_note: Why that is not the sum of the nodes. The sizes of several nodes are then
            unknown.
        notes: What the machine's files contradict, and what follows from it, in sentences.
    """

    cpus: tuple[Cpu, ...]
    offline: tuple[CpuId, ...]
    nodes: tuple[Node, ...]
    caches: tuple[Cache, ...]
    cpu_quota: Positive | None = None
    memory_bytes: Count | None = None
    memory_note: str | None = None
    notes: tuple[str, ...] = ()
    quota_unknown: str | None = None

    @property
    def allowed(self) -> tuple[Cpu, ...]:
        """The CPUs a launch may use, by number."""
        return tuple(cpu for cpu in self.cpus if cpu.allowed)

    @property
    def has_smt(self) -> bool:
        """Whether any core shows more than one online CPU."""
        return len({cpu.core for cpu in self.cpus}) < len(self.cpus)

    def __str__(self) -> str:
        """The machine as a tree: packages, nodes, caches, cores with their CPUs."""
        notes = (f"note: {note}" for note in (self.memory_note, *self.notes) if note)
        return "\n".join((_headline(self), *_packages(self), *_without_cpus(self), *notes))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def cpu_list(cpus: Iterable[int]) -> str:
    """Format CPU numbers as the kernel does: `0-3,8`; empty for none.

    >>> cpu_list([8, 0, 1, 2, 3])
    '0-3,8'
    """
    ranges: list[list[int]] = []
    for cpu in sorted(set(cpus)):
        if ranges and cpu == ranges[-1][1] + 1:
            ranges[-1][1] = cpu
        else:
            ranges.append([cpu, cpu])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def parse_cpu_list(text: str) -> tuple[CpuId, ...]:
    """Parse the kernel's list format (`0-3,8`) into sorted numbers without duplicates.

    Raises:
        ValueError: `text` is not a CPU list.

    >>> parse_cpu_list("8,0-3")
    (0, 1, 2, 3, 8)
    """
    cpus: set[int] = set()
    for part in filter(None, (piece.strip() for piece in text.strip().split(","))):
        low, dash, high = part.partition("-")
        if not (low.isdecimal() and (high.isdecimal() if dash else not high)):
            raise ValueError(f"`{part}` is not a CPU number or a range")
        first, last = int(low), int(high) if dash else int(low)
        if last < first or last > MOST_CPUS:
            raise ValueError(f"`{part}` is not a range of CPU numbers")
        cpus.update(range(first, last + 1))
    return tuple(CpuId(cpu) for cpu in sorted(cpus))


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
