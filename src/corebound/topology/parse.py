"""A machine's own description, as texts, read into a `Topology`.

What decides is what decides for the kernel itself: the lists of siblings,
not the numbers beside them, which repeat across packages, are -1 on some
machines and contradict the lists on others. Anything missing or malformed is
taken as absent, so that an odd machine is at worst a flat one.

Source: Documentation/ABI/stable/sysfs-devices-system-cpu and -node, and
hwloc's reading of the same files, whose answers ours must equal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from corebound.errors import HostError
from corebound.model.files import Tree
from corebound.model.topology import Cache, CoreKey, Cpu, CpuId, Node, NodeId, Topology
from corebound.topology.cpuset import allowed
from corebound.topology.kinds import core_kinds
from corebound.topology.tree import content, listed, masked, number, numbered, size_bytes

_CPUS = "sys/devices/system/cpu"
_NODES = "sys/devices/system/node"


def topology(
    tree: Tree,
    *,
    where: str,
    affinity: frozenset[int] | None = None,
    memory_nodes: frozenset[int] | None = None,
) -> Topology:
    """Read a machine.

    Args:
        tree: Its files.
        where: How to name the tree in an error.
        affinity: CPUs our process is bound to, if it is one of this machine.
        memory_nodes: Nodes our process may take memory on, likewise.

    Raises:
        HostError: the tree shows no CPU that is online.
    """
    online, offline = _online(tree)
    if not online:
        raise HostError(
            what=f"{_CPUS} shows no CPU that is online.",
            where=where,
            mend="Name a directory that holds a saved `sys/`, or is itself a `/sys`.",
        )
    cores = _cores(tree, online)
    caches = _caches(tree, online, cores)
    group_cpus, group_nodes = allowed(tree)
    limits = [limit for limit in (group_cpus, affinity) if limit is not None]
    may = frozenset(online).intersection(*limits)
    node_limits = [limit for limit in (group_nodes, memory_nodes) if limit is not None]
    nodes = _nodes(tree, frozenset(online), node_limits)
    node_of = {cpu: node.id for node in reversed(nodes) for cpu in node.cpus}
    cache_of = {cpu: index for index, cache in enumerate(caches) for cpu in cache.cpus}
    kinds = core_kinds(tree, online)
    return Topology(
        cpus=tuple(
            Cpu(
                id=cpu,
                core=cores[cpu],
                node=node_of.get(cpu),
                cache=cache_of.get(cpu),
                kind=kinds.get(cpu),
                allowed=cpu in may,
            )
            for cpu in online
        ),
        offline=offline,
        nodes=nodes,
        caches=caches,
    )


def _online(tree: Tree) -> tuple[tuple[CpuId, ...], tuple[CpuId, ...]]:
    """The CPUs that are online and those that are not, each by number."""
    present = frozenset(map(CpuId, numbered(tree, _CPUS, "cpu")))
    online = listed(tree, f"{_CPUS}/online")
    if online is None:
        online = frozenset(
            cpu for cpu in present if content(tree, f"{_CPUS}/cpu{cpu}/online") != "0"
        )
    elif present:
        online &= present
    # The kernel takes away the topology of a CPU that goes offline; on kernels
    # that have no `online` file this is how one sees it.
    described = frozenset(cpu for cpu in online if tree.names(f"{_CPUS}/cpu{cpu}/topology"))
    usable = described or online
    return tuple(sorted(usable)), tuple(sorted(present - usable))


class _Ids(Struct, frozen=True, kw_only=True):
    """The numbers beside the lists of siblings, None where the kernel has none."""

    package: int | None
    die: int | None
    core: int | None


def _ids(tree: Tree, cpu: CpuId) -> _Ids:
    folder = f"{_CPUS}/cpu{cpu}/topology"
    return _Ids(
        package=number(tree, f"{folder}/physical_package_id"),
        die=number(tree, f"{folder}/die_id"),
        core=number(tree, f"{folder}/core_id"),
    )


def _siblings(tree: Tree, cpu: CpuId, new: str, old: str) -> frozenset[CpuId] | None:
    """The CPUs that share something with one, by the file's new name or its old one."""
    folder = f"{_CPUS}/cpu{cpu}/topology"
    for name in (new, old):
        for found in (listed(tree, f"{folder}/{name}_list"), masked(tree, f"{folder}/{name}")):
            if found is not None:
                return found
    return None


def _cores(tree: Tree, cpus: tuple[CpuId, ...]) -> dict[CpuId, CoreKey]:
    """Give every physical core one key, and every CPU its core's."""
    ids = {cpu: _ids(tree, cpu) for cpu in cpus}
    package = _packages(tree, ids)
    groups = _core_groups(tree, ids, package)
    places = [(package[group[0]], ids[group[0]].die or 0) for group in groups]
    told = [ids[group[0]].core for group in groups]
    # Where core numbers are missing or repeat within a die, the lowest CPU
    # number names the core instead, for all of that die.
    seen = Counter(zip(places, told, strict=True))
    vague = {place for (place, core), count in seen.items() if core is None or count > 1}
    keys: dict[CpuId, CoreKey] = {}
    for group, place, core in zip(groups, places, told, strict=True):
        name = group[0] if core is None or place in vague else core
        key = CoreKey(package=place[0], die=place[1], core=name)
        keys.update(dict.fromkeys(group, key))
    return keys


def _core_groups(
    tree: Tree, ids: Mapping[CpuId, _Ids], package: Mapping[CpuId, int]
) -> list[tuple[CpuId, ...]]:
    """The CPUs of each physical core, by number, no CPU in two of them."""
    groups: list[tuple[CpuId, ...]] = []
    left = dict.fromkeys(ids)
    alike: dict[tuple[int, _Ids], set[CpuId]] = {}
    for cpu, mine in ids.items():
        alike.setdefault((package[cpu], mine), set()).add(cpu)
    while left:
        cpu = next(iter(left))
        siblings: AbstractSet[CpuId] | None = _siblings(tree, cpu, "core_cpus", "thread_siblings")
        if siblings is None and ids[cpu].core is not None:
            siblings = alike[package[cpu], ids[cpu]]
        group = tuple(sorted((left.keys() & (siblings or ())) | {cpu}))
        if len({ids[other].core for other in group}) > 1 and _has_compute_units(tree):
            group = (cpu,)
        groups.append(group)
        for member in group:
            del left[member]
    return groups


def _has_compute_units(tree: Tree) -> bool:
    """Whether old kernels call two cores of one AMD compute unit siblings.

    Families 21 and 22 share a front end and a cache, yet have integer cores
    of their own, which their numbers tell apart.
    """
    text = (tree.read("proc/cpuinfo") or "").partition("\n\n")[0]
    fields = dict(re.findall(r"^([^\t:]+?)\s*:\s*(.*?)\s*$", text, re.MULTILINE))
    amd = fields.get("vendor_id") == "AuthenticAMD"
    return amd and fields.get("cpu family") in {"21", "22"}


def _packages(tree: Tree, ids: Mapping[CpuId, _Ids]) -> dict[CpuId, int]:
    """Number the packages: the kernel's number where it is one's own, else a free one."""
    groups: list[tuple[CpuId, ...]] = []
    left = dict.fromkeys(ids)
    while left:
        first = next(iter(left))
        siblings = _siblings(tree, first, "package_cpus", "core_siblings")
        if siblings is None:
            group = tuple(cpu for cpu in left if ids[cpu].package == ids[first].package)
        else:
            group = tuple(sorted((left.keys() & siblings) | {first}))
        groups.append(group)
        for cpu in group:
            del left[cpu]
    names: dict[int, tuple[CpuId, ...]] = {}
    nameless = []
    for group in groups:
        name = ids[group[0]].package
        if name is None or name in names:
            nameless.append(group)
        else:
            names[name] = group
    for group in nameless:
        names[next(free for free in range(len(names) + 1) if free not in names)] = group
    return {cpu: name for name, group in names.items() for cpu in group}


def _caches(
    tree: Tree, cpus: tuple[CpuId, ...], cores: Mapping[CpuId, CoreKey]
) -> tuple[Cache, ...]:
    """The last-level caches; a CPU found behind one is not asked again."""
    caches: list[Cache] = []
    left = dict.fromkeys(cpus)
    while left:
        cpu = next(iter(left))
        found = _last_level(tree, cpu)
        behind = {cpu}
        if found is not None:
            # Some IA-64 kernels leave the map empty; the core is what they mean.
            behind |= found.behind or {other for other in left if cores[other] == cores[cpu]}
        members = tuple(sorted(left.keys() & behind))
        for member in members:
            del left[member]
        if found is not None:
            caches.append(Cache(level=found.level, size_bytes=found.size_bytes, cpus=members))
    return tuple(caches)


class _LastLevel(Struct, frozen=True, kw_only=True):
    level: int
    size_bytes: int | None
    behind: frozenset[CpuId]


def _last_level(tree: Tree, cpu: CpuId) -> _LastLevel | None:
    """The outermost data or unified cache that says which CPUs share it."""
    folder = f"{_CPUS}/cpu{cpu}/cache"
    levels = []
    for index in sorted(numbered(tree, folder, "index")):
        base = f"{folder}/index{index}"
        level = number(tree, f"{base}/level")
        if level and content(tree, f"{base}/type") != "Instruction":
            levels.append((level, base))
    for level, base in sorted(levels, key=lambda each: -each[0]):
        size = size_bytes(tree, f"{base}/size")
        behind = listed(tree, f"{base}/shared_cpu_list")
        if behind is None:
            behind = masked(tree, f"{base}/shared_cpu_map")
        # Xeon Phi shows its memory-side cache as an L3 of no size.
        if behind is not None and size != 0:
            return _LastLevel(level=level, size_bytes=size, behind=behind)
    return None


def _nodes(
    tree: Tree, cpus: frozenset[CpuId], limits: Sequence[frozenset[int]]
) -> tuple[Node, ...]:
    numbers = listed(tree, f"{_NODES}/online") or numbered(tree, _NODES, "node")
    ids = tuple(NodeId(node) for node in sorted(numbers))
    nodes = []
    for node in ids:
        folder = f"{_NODES}/node{node}"
        on = listed(tree, f"{folder}/cpulist")
        if on is None:
            on = masked(tree, f"{folder}/cpumap")
        if on is None:
            continue
        total = re.search(r"MemTotal:\s+([0-9]{1,18}) kB", tree.read(f"{folder}/meminfo") or "")
        distances = (content(tree, f"{folder}/distance") or "").split()
        # One figure for each node that is online, in their order, gaps left out.
        known = len(distances) == len(ids) and all(
            re.fullmatch(r"[0-9]{1,9}", d) for d in distances
        )
        nodes.append(
            Node(
                id=node,
                cpus=tuple(sorted(on & cpus)),
                memory_bytes=int(total[1]) << 10 if total else None,
                distances=tuple(zip(ids, map(int, distances), strict=True)) if known else (),
                allowed=all(node in limit for limit in limits),
            )
        )
    return tuple(nodes)
