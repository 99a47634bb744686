"""Snapshots of a host: the difference of two shows which processes used the CPUs.

Source: proc(5), /proc/stat and /proc/pid/stat; both count in clock ticks.
"""

from __future__ import annotations

import re

from msgspec import Struct

from corebound.machine.sysfs import Tree, integer, integer_of, numbers_in_order

_CPUS = "sys/devices/system/cpu"
_KTHREADD = "2"  # the parent of the kernel's threads
# A core has its own count; all CPUs of a package show the package's count.
_THROTTLES = ("core_throttle_count", "package_throttle_count")


class Ticks(Struct, frozen=True, kw_only=True):
    """CPU time since the machine started, in ticks summed over `cpus` CPUs."""

    cpus: int
    total: int
    busy: int
    steal: int


class Process(Struct, frozen=True, kw_only=True):
    """A process and the CPU time that it has used, in ticks.

    `started` is its start time in ticks since the machine started: process ids are reused.
    `kernel` marks a kernel thread, which cannot be stopped.
    """

    pid: int
    name: str
    started: int
    ticks: int
    kernel: bool


class Moment(Struct, frozen=True, kw_only=True):
    """A host at one moment; a field is None if the host does not show it.

    Attributes:
        swapped_pages: Pages read from and written to swap since the machine started.
        throttles: Number of thermal throttling events since the machine started.
    """

    ticks: Ticks | None
    processes: tuple[Process, ...]
    swapped_pages: int | None
    throttles: int | None


def take(tree: Tree) -> Moment:
    """Take a snapshot."""
    found = (_process(tree, pid) for pid in numbers_in_order(tree, "proc", ""))
    return Moment(
        ticks=_ticks(tree.read("proc/stat") or ""),
        processes=tuple(process for process in found if process is not None),
        swapped_pages=_swapped(tree.read("proc/vmstat") or ""),
        throttles=_throttles(tree),
    )


def _ticks(stat: str) -> Ticks | None:
    """Parse the line `cpu`: user nice system idle iowait irq softirq steal guest guest_nice."""
    line = re.search(r"^cpu +([0-9]{1,18}(?: [0-9]{1,18}){7})", stat, re.MULTILINE)
    cpus = len(re.findall(r"^cpu[0-9]+ ", stat, re.MULTILINE))
    if line is None or not cpus:
        return None
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, line[1].split(" "))
    busy = user + nice + system + irq + softirq
    return Ticks(cpus=cpus, total=busy + idle + iowait + steal, busy=busy, steal=steal)


def _process(tree: Tree, pid: int) -> Process | None:
    """Read a process; its name may contain any character, spaces and brackets included."""
    head, _, tail = (tree.read(f"proc/{pid}/stat") or "").rpartition(")")
    fields = tail.split()
    if len(fields) < 20:
        return None
    # Fields 14, 15 and 22 of the line, and 4, the parent. `fields[0]` is field 3.
    user, system, started = (integer(fields[index]) for index in (11, 12, 19))
    if user is None or system is None or started is None:
        return None
    return Process(
        pid=pid,
        name=head.partition("(")[2],
        started=started,
        ticks=user + system,
        kernel=fields[1] == _KTHREADD,
    )


def _swapped(vmstat: str) -> int | None:
    found = re.findall(r"^pswp(?:in|out) ([0-9]{1,18})$", vmstat, re.MULTILINE)
    return sum(map(int, found)) if len(found) == 2 else None


def _throttles(tree: Tree) -> int | None:
    counts = [
        count
        for cpu in numbers_in_order(tree, _CPUS, "cpu")
        for name in _THROTTLES
        if (count := integer_of(tree, f"{_CPUS}/cpu{cpu}/thermal_throttle/{name}")) is not None
    ]
    return sum(counts) if counts else None
