"""Which cores of a hybrid processor are made for speed and which for thrift."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from corebound.model.files import Tree
from corebound.model.topology import CoreKind, CpuId
from corebound.topology.tree import listed, number

# Cores of one kind differ by up to this much in their highest frequency, as
# some boost further than others; hwloc draws the same line.
_SAME_KIND_RATIO = 1.1


def core_kinds(tree: Tree, cpus: tuple[CpuId, ...]) -> dict[CpuId, CoreKind]:
    """The kind of each CPU's core; empty where the machine shows one kind only.

    Told by Intel's two performance-monitoring units, else by the kernel's
    `cpu_capacity` (ARM), else by highest frequency where, if base frequencies
    are known, these differ too: a core that only boosts further is no other kind.
    """
    told = _by_unit(tree, cpus)
    if told:
        return told
    folder = "sys/devices/system/cpu/cpu{}/"
    told = _by_value(_values(tree, cpus, folder + "cpu_capacity"))
    if told:
        return told
    told = _by_value(_values(tree, cpus, folder + "cpufreq/cpuinfo_max_freq"))
    base = _values(tree, cpus, folder + "cpufreq/base_frequency") if told else {}
    if base:
        slow = max(base[cpu] for cpu in cpus if told[cpu] == "efficiency")
        fast = min(base[cpu] for cpu in cpus if told[cpu] == "performance")
        return told if slow < fast else {}
    return told


def _by_unit(tree: Tree, cpus: tuple[CpuId, ...]) -> dict[CpuId, CoreKind]:
    fast = listed(tree, "sys/devices/cpu_core/cpus") or frozenset()
    slow = (listed(tree, "sys/devices/cpu_atom/cpus") or frozenset()) | (
        listed(tree, "sys/devices/cpu_lowpower/cpus") or frozenset()
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


def _values(tree: Tree, cpus: tuple[CpuId, ...], path: str) -> dict[CpuId, int]:
    """One file's number for every CPU; empty as soon as one has none."""
    values: dict[CpuId, int] = {}
    for cpu in cpus:
        value = number(tree, path.format(cpu))
        if not value:
            return {}
        values[cpu] = value
    return values


def _by_value(values: Mapping[CpuId, int]) -> dict[CpuId, CoreKind]:
    """Split at the widest gap, if it is wider than cores of one kind have."""
    steps = sorted(set(values.values()))
    if len(steps) < 2:
        return {}
    low, high = max(pairwise(steps), key=lambda pair: pair[1] / pair[0])
    if high / low < _SAME_KIND_RATIO:
        return {}
    return {cpu: "performance" if value >= high else "efficiency" for cpu, value in values.items()}
