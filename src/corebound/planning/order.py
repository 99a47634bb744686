"""Physical cores in the order in which a binding takes them.

Everything is settled by numbers alone: the group with the most cores first,
the lowest number where these are equal, so that the same host gives the same
CPUs every night.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from corebound.model.topology import Cpu, CpuId, NodeId, Topology


class Core(Struct, frozen=True, kw_only=True):
    """A physical core as far as a cell may use it: one CPU or more, by number."""

    cpus: tuple[Cpu, ...]


Cores = Sequence[Core]
Level = Literal["socket", "node", "cache"]

# Nodes may be parts of a socket, or a node hold several; distance tells the
# first apart, so nodes come before sockets.
_INWARDS: tuple[Level, ...] = ("node", "socket", "cache")
_DOWNWARDS: tuple[Level, ...] = ("socket", "node", "cache")


def cores_of(cpus: Iterable[Cpu]) -> tuple[Core, ...]:
    """Gather CPUs, given by number, into their cores."""
    members: dict[object, list[Cpu]] = {}
    for cpu in cpus:
        members.setdefault(cpu.core, []).append(cpu)
    return tuple(Core(cpus=tuple(core)) for core in members.values())


def alone(cores: Cores) -> tuple[Core, ...]:
    """The same cores with their lowest CPU only."""
    return tuple(replace(core, cpus=core.cpus[:1]) for core in cores)


def capacity(cores: Cores) -> int:
    """How many CPUs the cores have together."""
    return sum(len(core.cpus) for core in cores)


def groups(cores: Cores, level: Level) -> list[tuple[int | None, tuple[Core, ...]]]:
    """The cores of each socket, node or last-level cache, with its number.

    Most cores first, then by number; None, for cores of which the kernel
    does not say where they sit, is a group too and the last of its size.
    """
    found: dict[int | None, list[Core]] = {}
    for core in cores:
        cpu = core.cpus[0]
        number = {"socket": cpu.core.package, "node": cpu.node, "cache": cpu.cache}[level]
        found.setdefault(number, []).append(core)
    ranked = sorted(found.items(), key=lambda each: (-len(each[1]), each[0] is None, each[0] or 0))
    return [(number, tuple(members)) for number, members in ranked]


def packed(cores: Cores, wanted: int | None, host: Topology) -> tuple[Core, ...]:
    """Order cores so that the first ones sit as close together as they can.

    The first node is the one with the most cores that has `wanted` CPUs, the
    other nodes follow by distance from it; within it the same for sockets
    and caches; within a cache, cores with more CPUs come first.
    """
    return _packed(cores, wanted, host, _INWARDS)


def _packed(
    cores: Cores, wanted: int | None, host: Topology, levels: tuple[Level, ...]
) -> tuple[Core, ...]:
    if not levels:
        return tuple(sorted(cores, key=lambda core: (-len(core.cpus), core.cpus[0].id)))
    ranked = groups(cores, levels[0])
    fits = [each for each in ranked if wanted is not None and capacity(each[1]) >= wanted]
    first = (fits or ranked)[0]
    rest = [each for each in ranked if each is not first]
    if levels[0] == "node":
        far = distances(host, first[0])
        rest.sort(key=lambda each: far.get(each[0], _FARTHEST))
    inner = [_packed(first[1], wanted, host, levels[1:])]
    inner += [_packed(members, None, host, levels[1:]) for _, members in rest]
    return tuple(chain.from_iterable(inner))


def dealt(cores: Cores) -> tuple[Core, ...]:
    """Order cores so that neighbours in the order sit as far apart as they can.

    Sockets take turns, within a socket its nodes, within a node its caches.
    """
    return _dealt(cores, _DOWNWARDS)


def _dealt(cores: Cores, levels: tuple[Level, ...]) -> tuple[Core, ...]:
    if not levels:
        return tuple(sorted(cores, key=lambda core: core.cpus[0].id))
    hands = [_dealt(members, levels[1:]) for _, members in groups(cores, levels[0])]
    rounds = zip_longest(*hands)
    return tuple(core for turn in rounds for core in turn if core is not None)


def core_by_core(cores: Cores) -> tuple[CpuId, ...]:
    """All CPUs of the first core, then all of the second."""
    return tuple(cpu.id for core in cores for cpu in core.cpus)


def siblings_last(cores: Cores) -> tuple[CpuId, ...]:
    """One CPU of every core, then a second one of every core that has it."""
    rounds = zip_longest(*(core.cpus for core in cores))
    return tuple(cpu.id for turn in rounds for cpu in turn if cpu is not None)


# Beyond the kernel's own largest distance, 255 (unreachable).
_FARTHEST = 256


def distances(host: Topology, node: int | None) -> dict[int | None, int]:
    """How far every node is from one; empty where the kernel does not say."""
    for each in host.nodes:
        if each.id == node:
            return dict[int | None, int](each.distances)
    return {}


def nearest(host: Topology, node: int | None, among: Sequence[NodeId]) -> NodeId:
    """The node out of `among`, which is not empty, that is nearest to one."""
    far = distances(host, node)
    return min(among, key=lambda other: (far.get(other, _FARTHEST), other))
