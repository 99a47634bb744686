"""The types of a machine's topology: CPUs, cores, caches, nodes and sockets."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Annotated, Literal, NewType

from msgspec import Meta, Struct

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
        # Imported here, because it needs these types.
        from corebound.machine.topology_text import describe  # noqa: PLC0415

        return describe(self)

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
