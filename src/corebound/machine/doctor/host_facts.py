"""The facts that the host checks judge: a host's files, and two snapshots taken a moment apart.

The difference of two snapshots shows which processes used the CPUs.
"""

import re
from collections.abc import Mapping

from msgspec import Struct

from corebound.machine import procfs
from corebound.machine.procfs import CpuTicks, ProcessStat
from corebound.machine.sysfs import Tree, numbered_entries, read_integer
from corebound.machine.topology import Topology

# Long enough that one tick (10 ms) of a CPU is 2 %.
SNAPSHOT_INTERVAL_S = 0.5
_CPUS = "sys/devices/system/cpu"
_KTHREADD = 2  # the parent of the kernel's threads
# A core has its own count; all CPUs of a package show the package's count.
_THROTTLES = ("core_throttle_count", "package_throttle_count")


class Process(Struct, frozen=True, kw_only=True):
    """A process and the CPU time that it has used, in clock ticks.

    `started` is its start time in ticks since the machine started: process ids are reused.
    `is_kernel_thread` marks a kernel thread, which cannot be stopped.
    """

    pid: int
    name: str
    started: int
    ticks: int
    is_kernel_thread: bool


class Snapshot(Struct, frozen=True, kw_only=True):
    """A host at one moment; a field is None if the host does not show it.

    Attributes:
        swapped_pages: Pages read from and written to swap since the machine started.
        throttles: Number of thermal throttling events since the machine started.
    """

    ticks: CpuTicks | None
    processes: tuple[Process, ...]
    swapped_pages: int | None
    throttles: int | None


class HostFacts(Struct, frozen=True, kw_only=True):
    """The input of the checks: a host's files, two snapshots, and facts from other modules.

    Attributes:
        topology: The host's topology; None if the host shows no CPUs.
        before, after: Two snapshots taken a moment apart.
        pid: Our own process, which does not count as a disturbance.
        sudo: Whether the checks run under sudo, so that another user than root will measure.
        tools: The programs of `checks_system.PROGRAMS` that exist; None if not checked.
        needed: The programs that are missed if they do not exist; None: all.
        environments: Whether each environment has been made; None if not checked.
    """

    tree: Tree
    topology: Topology | None
    before: Snapshot
    after: Snapshot
    pid: int
    sudo: bool = False
    tools: frozenset[str] | None = None
    needed: frozenset[str] | None = None
    environments: Mapping[str, bool] | None = None


def take_snapshot(tree: Tree) -> Snapshot:
    """Read the counters and processes of a host."""
    processes = (_process(tree, pid) for pid in numbered_entries(tree, "proc", ""))
    return Snapshot(
        ticks=procfs.cpu_ticks((tree.read("proc/stat") or "").encode()),
        processes=tuple(process for process in processes if process is not None),
        swapped_pages=_swapped_pages(tree.read("proc/vmstat") or ""),
        throttles=_throttles(tree),
    )


def _process(tree: Tree, pid: int) -> Process | None:
    try:
        stat = ProcessStat((tree.read(f"proc/{pid}/stat") or "").encode(errors="replace"))
        return Process(
            pid=pid,
            name=stat.name,
            started=stat.started,
            ticks=sum(stat.own_ticks),
            is_kernel_thread=stat.parent == _KTHREADD,
        )
    except ValueError:  # it has ended
        return None


def _swapped_pages(vmstat: str) -> int | None:
    counts = re.findall(r"^pswp(?:in|out) ([0-9]{1,18})$", vmstat, re.MULTILINE)
    return sum(map(int, counts)) if len(counts) == 2 else None


def _throttles(tree: Tree) -> int | None:
    counts = [
        count
        for cpu in numbered_entries(tree, _CPUS, "cpu")
        for name in _THROTTLES
        if (count := read_integer(tree, f"{_CPUS}/cpu{cpu}/thermal_throttle/{name}")) is not None
    ]
    return sum(counts) if counts else None
