"""Processes below one: which there are, and what they have used so far."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from corebound.launch.supervisor import processes_below

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
# A process that ends while others are read leaves its time to its parent, which may have
# been read before: then all are read again, so often at most.
_TRIES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What processes and the children they waited for have used since they began."""

    cpu_ns: int
    minor_faults: int
    major_faults: int


def below(root: int) -> set[int]:
    """Every process descended from `root`, itself not included.

    Asks the kernel for each one's children, which costs some 10 µs a thread; without
    that (CONFIG_PROC_CHILDREN) all of /proc is read, which costs milliseconds. A child
    whose sibling ends at that moment may be missed once (proc(5)).
    """
    if not Path("/proc/self/task", str(os.getpid()), "children").exists():
        return set(processes_below(root))
    found: set[int] = set()
    fresh = [root]
    while fresh:
        children = [child for pid in fresh for child in _children(pid)]
        fresh = [child for child in children if child not in found]
        found.update(fresh)
    return found


def _children(pid: int) -> list[int]:
    task = Path(f"/proc/{pid}/task")
    try:
        return [
            int(word)
            for thread in os.listdir(task)  # noqa: PTH208  # read twice a second beside a measurement
            for word in (task / thread / "children").read_bytes().split()
        ]
    except OSError:
        return []  # it ended under our eyes


def used(processes: Callable[[], Iterable[int]]) -> Used:
    """What processes have used, children they waited for included.

    Args:
        processes: Lists them; asked again if one of them ends meanwhile.
    """
    for _ in range(_TRIES - 1):
        found = _used(processes())
        if None not in found:
            break
    else:
        found = _used(processes())
    known = [one for one in found if one is not None]
    return Used(
        cpu_ns=sum(one.cpu_ns for one in known),
        minor_faults=sum(one.minor_faults for one in known),
        major_faults=sum(one.major_faults for one in known),
    )


def _used(processes: Iterable[int]) -> list[Used | None]:
    return [_of_one(pid) for pid in processes]


def _of_one(pid: int) -> Used | None:
    """What one process has used; None if it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        # Of its own it is told to the nanosecond; of ended children in ticks.
        own_ns = time.clock_gettime_ns(_clock(pid))
    except OSError:
        return None
    children_ns, minor, major = parse_stat(stat, tick_ns=_TICK_NS)
    return Used(cpu_ns=own_ns + children_ns, minor_faults=minor, major_faults=major)


def _clock(pid: int) -> int:
    """The CPU-time clock of a process, as clock_getcpuclockid(3) makes it (CPUCLOCK_SCHED)."""
    return (~pid << 3) | 2


def parse_stat(stat: bytes, *, tick_ns: int) -> tuple[int, int, int]:
    """CPU time of ended children in nanoseconds, and minor and major faults with theirs.

    Fields 10 to 17 of proc(5)'s stat, the 8th and following after the name.

    >>> parse_stat(b"7 (a) b) S 1 7 7 0 -1 0 5 50 2 20 9 9 3 1 20", tick_ns=10)
    (40, 55, 22)
    """
    minor, of_children, major, major_of_children, _, _, user, system = map(
        int, stat.rpartition(b")")[2].split()[7:15]
    )
    return (user + system) * tick_ns, minor + of_children, major + major_of_children
