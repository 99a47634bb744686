"""Reads the topology of this machine, or of one whose /sys was saved as a folder."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import HostError
from corebound.machine import procfs, sysfs
from corebound.machine.cgroups import Cpuset, cpuset, quotas
from corebound.machine.topology import (
    MOST_CPUS,
    Cache,
    CoreKey,
    CoreKind,
    Cpu,
    CpuId,
    Node,
    NodeId,
    Topology,
    cpu_list,
    parse_cpu_list,
)
from corebound.units import size

# Cores of one kind differ by up to this ratio in their maximum frequency, because some
# boost further than others; hwloc uses the same limit.
_SAME_KIND_RATIO = 1.1


def core_kinds(tree: sysfs.Tree, cpus: tuple[CpuId, ...]) -> dict[CpuId, CoreKind]:
    """The kind of each CPU's core; empty if the machine shows one kind only.

    The sources, in order: Intel's two performance-monitoring units, the kernel's
    `cpu_capacity` (ARM), and the maximum frequency. If base frequencies are known, they
    must differ too: a core that only boosts further is not another kind.
    """
    kinds = _by_unit(tree, cpus)
    if kinds:
        return kinds
    folder = "sys/devices/system/cpu/cpu{}/"
    kinds = _by_value(_values(tree, cpus, folder + "cpu_capacity"))
    if kinds:
        return kinds
    kinds = _by_value(_values(tree, cpus, folder + "cpufreq/cpuinfo_max_freq"))
    base = _values(tree, cpus, folder + "cpufreq/base_frequency") if kinds else {}
    if base:
        slow = max(base[cpu] for cpu in cpus if kinds[cpu] == "efficiency")
        fast = min(base[cpu] for cpu in cpus if kinds[cpu] == "performance")
        return kinds if slow < fast else {}
    return kinds


def _by_unit(tree: sysfs.Tree, cpus: tuple[CpuId, ...]) -> dict[CpuId, CoreKind]:
    fast = sysfs.read_cpu_list(tree, "sys/devices/cpu_core/cpus") or frozenset()
    slow = (sysfs.read_cpu_list(tree, "sys/devices/cpu_atom/cpus") or frozenset()) | (
        sysfs.read_cpu_list(tree, "sys/devices/cpu_lowpower/cpus") or frozenset()
    )
    if not fast or not slow:
        return {}
    kinds: dict[CpuId, CoreKind] = {}
    for cpu in cpus:
        if cpu in fast:
            kinds[cpu] = "performance"
        elif cpu in slow:
            kinds[cpu] = "efficiency"
    return kinds


def _values(tree: sysfs.Tree, cpus: tuple[CpuId, ...], path: str) -> dict[CpuId, int]:
    """The number in one file for every CPU; empty if any CPU has none."""
    values: dict[CpuId, int] = {}
    for cpu in cpus:
        value = _count(tree, path.format(cpu))
        if not value:
            return {}
        values[cpu] = value
    return values


def _by_value(values: Mapping[CpuId, int]) -> dict[CpuId, CoreKind]:
    """Split at the widest gap, if it is wider than cores of one kind allow."""
    levels = sorted(set(values.values()))
    if len(levels) < 2:
        return {}
    low, high = max(pairwise(levels), key=lambda pair: pair[1] / pair[0])
    if high / low < _SAME_KIND_RATIO:
        return {}
    return {cpu: "performance" if value >= high else "efficiency" for cpu, value in values.items()}


_CPUS = "sys/devices/system/cpu"
_NODES = "sys/devices/system/node"


def topology(tree: sysfs.Tree, *, where: str, affinity: frozenset[int] | None = None) -> Topology:
    """Read a machine's topology.

    Args:
        where: The tree's name in errors.
        affinity: CPUs that our process is bound to, if it runs on this machine; a saved machine
            has those of its /proc/self/status.

    Raises:
        HostError: the tree shows no online CPU.
    """
    group = cpuset(tree)
    found = _find_cpus(tree, affinity, group)
    online = found.online
    if not online:
        raise HostError(
            what=f"{_CPUS} shows no CPU that is online.",
            where=where,
            fix="Name a directory that holds a saved `sys/`, or is itself a `/sys`.",
        )
    cores = _cores(tree, online)
    caches = _caches(tree, online, cores)
    listed = _cpus_by_node(tree)
    limits = [limit for limit in (group.nodes, _own_list(tree, b"Mems_allowed_list")) if limit]
    nodes = _nodes(tree, listed, frozenset(online), limits)
    node_of = {cpu: node.id for node in reversed(nodes) for cpu in node.cpus}
    cache_of = {cpu: index for index, cache in enumerate(caches) for cpu in cache.cpus}
    kinds = core_kinds(tree, online)
    sized, total_bytes, memory_note = _with_total(nodes, _memory_bytes(tree, "proc/meminfo"))
    limits_on_time = quotas(tree)
    return Topology(
        cpus=tuple(
            Cpu(
                id=cpu,
                core=cores[cpu],
                node=node_of.get(cpu),
                cache=cache_of.get(cpu),
                kind=kinds.get(cpu),
                allowed=cpu in found.allowed,
            )
            for cpu in online
        ),
        offline=found.offline,
        nodes=sized,
        caches=caches,
        cpu_quota=tightest.cpus if (tightest := limits_on_time.tightest) else None,
        # Without /proc, as in a saved /sys, there is nothing to say about it.
        quota_unknown=limits_on_time.unknown if tree.read("proc/self/cgroup") else None,
        memory_bytes=total_bytes,
        memory_note=memory_note,
        notes=(*found.notes, *_contradictions(tree, nodes, listed, found)),
    )


def _count(tree: sysfs.Tree, path: str) -> int | None:
    """The number in a file; None if there is none, or if it is -1, the kernel's "unknown"."""
    value = sysfs.read_integer(tree, path)
    return value if value is not None and value >= 0 else None


def _entries(tree: sysfs.Tree, folder: str, prefix: str) -> tuple[int, ...]:
    """The numbers in a directory's entries, as far as the kernel could use them."""
    return tuple(
        entry for entry in sysfs.numbered_entries(tree, folder, prefix) if entry < MOST_CPUS
    )


class _FoundCpus(NamedTuple):
    """The CPUs by number, those that we may use, and what /sys denies."""

    online: tuple[CpuId, ...]
    offline: tuple[CpuId, ...]
    allowed: frozenset[CpuId]
    notes: tuple[str, ...]


def _find_cpus(tree: sysfs.Tree, affinity: frozenset[int] | None, group: Cpuset) -> _FoundCpus:
    """Find the CPUs that are online; our affinity and cpuset win over a /sys that denies them.

    All CPUs of the affinity of a running process and of a cpuset's effective list are online. A
    saved affinity and a cpuset's other lists may also contain CPUs that are offline.
    """
    folders = frozenset(map(CpuId, _entries(tree, _CPUS, "cpu")))
    # The kernel removes the topology of a CPU that goes offline. On kernels without an
    # `online` file this is the only sign.
    described = frozenset(cpu for cpu in folders if tree.names(f"{_CPUS}/cpu{cpu}/topology"))
    listed = sysfs.read_cpu_list(tree, f"{_CPUS}/online") or frozenset()
    switches = {cpu: sysfs.read_text(tree, f"{_CPUS}/cpu{cpu}/online") for cpu in folders}
    down = (sysfs.read_cpu_list(tree, f"{_CPUS}/offline") or frozenset()) - {
        cpu for cpu, switch in switches.items() if switch == "1"
    } | {cpu for cpu, switch in switches.items() if switch == "0"}
    present = sysfs.read_cpu_list(tree, f"{_CPUS}/present") or frozenset()
    shown = (described or folders or present) - down
    own = _own_list(tree, b"Cpus_allowed_list") if affinity is None else affinity
    limits = [frozenset(map(CpuId, limit)) for limit in (own, group.cpus) if limit]
    running = limits[0] if affinity else frozenset()
    if affinity is None and group.is_effective and group.cpus:
        running = group.cpus - ((folders | down) - shown)
    has_list = tree.read(f"{_CPUS}/online") is not None
    believed = listed & (folders or listed) if has_list else shown
    believed = believed & described or believed
    online = believed
    denied = frozenset().union(*limits) & described - down | running
    if not denied <= online or not all(online & limit for limit in limits) or not online:
        online = shown | running
        for limit in limits:
            known = (limit & cpus - down for cpus in (listed, folders, present, limit))
            online |= frozenset() if online & limit else next(filter(None, known), limit)
    if not tree.names(_CPUS):
        online = frozenset()  # there is no such machine
    may = online.intersection(*limits) or online.intersection(*limits[:1])
    said = f"lists {cpu_list(listed) or 'none'}" if has_list else "is missing"
    note = (
        f"/{_CPUS} does not show that CPUs {cpu_list(online)} are online (`online` {said}): it is"
        " virtual, as in containers with lxcfs, or incomplete. Affinity and cpuset decide which"
        " CPUs are used; cores and caches may be wrong."
    )
    notes = () if online == believed else (note,)
    return _FoundCpus(tuple(sorted(online)), tuple(sorted(folders - online)), may, notes)


def _own_list(tree: sysfs.Tree, name: bytes) -> frozenset[CpuId] | None:
    """A list in /proc/self/status; None if it is absent or malformed."""
    text = procfs.line_value((tree.read("proc/self/status") or "").encode(), name)
    try:
        return frozenset(parse_cpu_list(text.decode())) if text else None
    except ValueError:
        return None


class _Ids(Struct, frozen=True, kw_only=True):
    """The ids that the kernel gives a CPU; None if it gives none."""

    package: int | None
    die: int | None
    core: int | None


def _ids(tree: sysfs.Tree, cpu: CpuId) -> _Ids:
    folder = f"{_CPUS}/cpu{cpu}/topology"
    return _Ids(
        package=_count(tree, f"{folder}/physical_package_id"),
        die=_count(tree, f"{folder}/die_id"),
        core=_count(tree, f"{folder}/core_id"),
    )


def _siblings(tree: sysfs.Tree, cpu: CpuId, new: str, old: str) -> frozenset[CpuId] | None:
    """The CPUs that share something with `cpu`, from the file's new name or its old one."""
    folder = f"{_CPUS}/cpu{cpu}/topology"
    for name in (new, old):
        for found in (
            sysfs.read_cpu_list(tree, f"{folder}/{name}_list"),
            sysfs.read_cpu_mask(tree, f"{folder}/{name}"),
        ):
            if found is not None:
                return found
    return None


def _cores(tree: sysfs.Tree, cpus: tuple[CpuId, ...]) -> dict[CpuId, CoreKey]:
    """The key of each CPU's physical core."""
    ids = {cpu: _ids(tree, cpu) for cpu in cpus}
    package = _packages(tree, ids)
    groups = _core_groups(tree, ids, package)
    dies = [(package[group[0]], ids[group[0]].die or 0) for group in groups]
    numbers = [ids[group[0]].core for group in groups]
    # If core numbers are missing or repeat within a die, the lowest CPU number identifies
    # each core of that die instead.
    counts = Counter(zip(dies, numbers, strict=True))
    ambiguous = {die for (die, core), count in counts.items() if core is None or count > 1}
    keys: dict[CpuId, CoreKey] = {}
    for group, die, core in zip(groups, dies, numbers, strict=True):
        name = group[0] if core is None or die in ambiguous else core
        key = CoreKey(package=die[0], die=die[1], core=name)
        keys.update(dict.fromkeys(group, key))
    return keys


def _core_groups(
    tree: sysfs.Tree, ids: Mapping[CpuId, _Ids], package: Mapping[CpuId, int]
) -> list[tuple[CpuId, ...]]:
    """The CPUs of each physical core, by number; no CPU is in two cores."""
    groups: list[tuple[CpuId, ...]] = []
    remaining = dict.fromkeys(ids)
    same_ids: dict[tuple[int, _Ids], set[CpuId]] = {}
    for cpu, own_ids in ids.items():
        same_ids.setdefault((package[cpu], own_ids), set()).add(cpu)
    while remaining:
        cpu = next(iter(remaining))
        siblings: AbstractSet[CpuId] | None = _siblings(tree, cpu, "core_cpus", "thread_siblings")
        if siblings is None and ids[cpu].core is not None:
            siblings = same_ids[package[cpu], ids[cpu]]
        group = tuple(sorted((remaining.keys() & (siblings or ())) | {cpu}))
        if len({ids[other].core for other in group}) > 1 and _has_compute_units(tree):
            group = (cpu,)
        groups.append(group)
        for member in group:
            del remaining[member]
    return groups


def instructions(tree: sysfs.Tree = sysfs.LIVE) -> frozenset[str]:
    """The instruction sets of the first CPU, by the kernel's names; empty if it shows none."""
    blocks = procfs.cpuinfo(tree.read("proc/cpuinfo") or "")
    block = blocks[0] if blocks else {}
    return frozenset((block.get("flags") or block.get("Features") or "").split())


def _has_compute_units(tree: sysfs.Tree) -> bool:
    """Whether old kernels report two cores of one AMD compute unit as siblings.

    In families 21 and 22 the two share a front end and a cache, but have separate integer
    cores with separate core numbers.
    """
    blocks = procfs.cpuinfo(tree.read("proc/cpuinfo") or "")
    fields = blocks[0] if blocks else {}
    is_amd = fields.get("vendor_id") == "AuthenticAMD"
    return is_amd and fields.get("cpu family") in {"21", "22"}


def _packages(tree: sysfs.Tree, ids: Mapping[CpuId, _Ids]) -> dict[CpuId, int]:
    """Number the packages: by the kernel's number if it is unique, else by a free one."""
    groups: list[tuple[CpuId, ...]] = []
    remaining = dict.fromkeys(ids)
    while remaining:
        first = next(iter(remaining))
        siblings = _siblings(tree, first, "package_cpus", "core_siblings")
        if siblings is None:
            group = tuple(cpu for cpu in remaining if ids[cpu].package == ids[first].package)
        else:
            group = tuple(sorted((remaining.keys() & siblings) | {first}))
        groups.append(group)
        for cpu in group:
            del remaining[cpu]
    numbered_groups: dict[int, tuple[CpuId, ...]] = {}
    unnumbered = []
    for group in groups:
        number = ids[group[0]].package
        if number is None or number in numbered_groups:
            unnumbered.append(group)
        else:
            numbered_groups[number] = group
    for group in unnumbered:
        numbered_groups[
            next(
                candidate
                for candidate in range(len(numbered_groups) + 1)
                if candidate not in numbered_groups
            )
        ] = group
    return {cpu: number for number, group in numbered_groups.items() for cpu in group}


def _caches(
    tree: sysfs.Tree, cpus: tuple[CpuId, ...], cores: Mapping[CpuId, CoreKey]
) -> tuple[Cache, ...]:
    """The last-level caches; a CPU that belongs to one is not examined again."""
    caches: list[Cache] = []
    remaining = dict.fromkeys(cpus)
    while remaining:
        cpu = next(iter(remaining))
        last_level = _last_level(tree, cpu)
        sharing = {cpu}
        if last_level is not None:
            # Some IA-64 kernels leave the map empty and mean the CPU's own core.
            sharing |= last_level.behind or {
                other for other in remaining if cores[other] == cores[cpu]
            }
        members = tuple(sorted(remaining.keys() & sharing))
        for member in members:
            del remaining[member]
        if last_level is not None:
            caches.append(
                Cache(level=last_level.level, size_bytes=last_level.size_bytes, cpus=members)
            )
    return tuple(caches)


class _LastLevel(Struct, frozen=True, kw_only=True):
    level: int
    size_bytes: int | None
    behind: frozenset[CpuId]


def _last_level(tree: sysfs.Tree, cpu: CpuId) -> _LastLevel | None:
    """The outermost data or unified cache with a list of the CPUs that share it."""
    folder = f"{_CPUS}/cpu{cpu}/cache"
    levels = []
    for index in _entries(tree, folder, "index"):
        base = f"{folder}/index{index}"
        level = _count(tree, f"{base}/level")
        if level and sysfs.read_text(tree, f"{base}/type") != "Instruction":
            levels.append((level, base))
    for level, base in sorted(levels, key=lambda candidate: -candidate[0]):
        size = sysfs.read_size_bytes(tree, f"{base}/size")
        behind = sysfs.read_cpu_list(tree, f"{base}/shared_cpu_list")
        if behind is None:
            behind = sysfs.read_cpu_mask(tree, f"{base}/shared_cpu_map")
        # Xeon Phi reports its memory-side cache as an L3 of size 0.
        if behind is not None and size != 0:
            return _LastLevel(level=level, size_bytes=size, behind=behind)
    return None


def _cpus_by_node(tree: sysfs.Tree) -> dict[NodeId, frozenset[CpuId]]:
    """The CPUs that each node lists."""
    numbers = sysfs.read_cpu_list(tree, f"{_NODES}/online") or _entries(tree, _NODES, "node")
    listed = {}
    for node in map(NodeId, sorted(numbers)):
        cpus = sysfs.read_cpu_list(tree, f"{_NODES}/node{node}/cpulist")
        if cpus is None:
            cpus = sysfs.read_cpu_mask(tree, f"{_NODES}/node{node}/cpumap")
        if cpus is not None:
            listed[node] = cpus
    return listed


def _nodes(
    tree: sysfs.Tree,
    listed: Mapping[NodeId, frozenset[CpuId]],
    online: frozenset[CpuId],
    limits: Sequence[frozenset[int]],
) -> tuple[Node, ...]:
    nodes = []
    numbers = sysfs.read_cpu_list(tree, f"{_NODES}/online") or _entries(tree, _NODES, "node")
    ids = tuple(NodeId(node) for node in sorted(numbers))
    for node, cpus in listed.items():
        folder = f"{_NODES}/node{node}"
        distances = (sysfs.read_text(tree, f"{folder}/distance") or "").split()
        # One distance for each online node, in order, without gaps.
        has_distances = len(distances) == len(ids) and all(
            re.fullmatch(r"[0-9]{1,9}", distance) for distance in distances
        )
        nodes.append(
            Node(
                id=node,
                cpus=tuple(sorted(cpus & online)),
                memory_bytes=_memory_bytes(tree, f"{folder}/meminfo"),
                distances=tuple(zip(ids, map(int, distances), strict=True))
                if has_distances
                else (),
                allowed=all(node in limit for limit in limits),
            )
        )
    return tuple(nodes)


def _memory_bytes(tree: sysfs.Tree, path: str) -> int | None:
    total = re.search(r"MemTotal:\s+([0-9]{1,15}) kB", tree.read(path) or "")
    return int(total[1]) << 10 if total else None


# Older kernels count the memory that describes memory in a node, 1.6 %, but not in the total.
_MOST_MISSING = 0.05


def _with_total(
    nodes: tuple[Node, ...], total: int | None
) -> tuple[tuple[Node, ...], int | None, str | None]:
    """The nodes, the memory of the machine in bytes, and why that is not the sum of the nodes.

    If it is not, the only node with memory has all of it, and the sizes of several are unknown.
    """
    sizes = [node.memory_bytes for node in nodes]
    on_nodes = sum(filter(None, sizes))
    if not nodes or total is None or None in sizes:
        return nodes, total or on_nodes or None, None
    if abs(total - on_nodes) <= _MOST_MISSING * max(total, on_nodes):
        return nodes, total, None
    why = "the rest may be reserved, or above a container's limit"
    if on_nodes < total:
        why = "memory that was added while the machine ran may be missing there"
    stocked = [node for node in nodes if node.memory_bytes] or nodes
    known = total if len(stocked) == 1 else None
    within = (replace(node, memory_bytes=known) if node in stocked else node for node in nodes)
    return tuple(within), total, f"The nodes in /sys have {size(on_nodes)}: {why}."


def _contradictions(
    tree: sysfs.Tree,
    nodes: Sequence[Node],
    listed: Mapping[NodeId, frozenset[CpuId]],
    found: _FoundCpus,
) -> Iterator[str]:
    """What the tables of the nodes contradict."""
    counts = Counter(chain.from_iterable(listed.values()))
    if several := [cpu for cpu, count in counts.items() if count > 1]:
        yield f"CPUs {cpu_list(several)} are listed by several nodes; the first node counts."
    if unknown := counts.keys() - {*found.online, *found.offline}:
        yield f"The nodes list CPUs {cpu_list(unknown)}, which this machine does not have."
    if nodes and (without := set(found.online) - counts.keys()):
        yield f"No node lists CPUs {cpu_list(without)}."
    has_memory = sysfs.read_cpu_list(tree, f"{_NODES}/has_memory")
    stocked = {node.id for node in nodes if node.memory_bytes != 0}
    if has_memory is not None and (wrong := has_memory ^ stocked):
        yield f"/{_NODES}/has_memory and the nodes' sizes disagree about nodes {cpu_list(wrong)}."
    if len(nodes) > 1 and (bare := [node.id for node in nodes if not node.distances]):
        yield f"No valid distances for nodes {cpu_list(bare)}."
    distance = {(node.id, other): far for node in nodes for other, far in node.distances}
    if one_way := {
        node for (node, other), far in distance.items() if distance.get((other, node), far) != far
    }:
        yield f"Distances depend on the direction for nodes {cpu_list(one_way)}."


def saved_topology(root: Path) -> Topology:
    """Read the topology of a saved machine.

    Args:
        root: A directory that contains `sys/` (and `proc/`, and the mount points of
            cgroups), or one that is itself a copy of `/sys`.

    Raises:
        HostError: there is no such directory, or it shows no CPU.
    """
    if not root.is_dir():
        raise HostError(
            what="there is no such directory.",
            where=str(root),
            fix="Name a directory that holds a saved `sys/`, or is itself a `/sys`.",
        )
    return topology(sysfs.Files(root), where=str(root))


def live_topology() -> Topology:
    """Read this machine's topology, and what our affinity and cgroups allow.

    Raises:
        HostError: `/sys` is missing, as in some containers.
    """
    return topology(sysfs.LIVE, where="/", affinity=frozenset(os.sched_getaffinity(0)))
