"""Processes below one: which there are, and what they have used so far."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound.launch.supervisor import processes_below

_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# A process that ends while others are read leaves its time to its parent, which may have
# been read before: then all are read again, so often at most.
_TRIES = 3


class Used(Struct, frozen=True, kw_only=True):
    """What processes and the children they waited for have used since they began.

    `user_ns` and `system_ns` are how the kernel splits `cpu_ns`, in its ticks. `rss_bytes`
    is what the processes hold now.
    """

    cpu_ns: int
    user_ns: int
    system_ns: int
    minor_faults: int
    major_faults: int
    rss_bytes: int


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


def threads_of(pid: int) -> list[int]:
    """The threads of a process, the one it began with among them; none if it is gone."""
    try:
        return list(map(int, os.listdir(f"/proc/{pid}/task")))
    except OSError:
        return []


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for tid in threads_of(pid):
        with contextlib.suppress(OSError):  # it ended under our eyes
            children = Path(f"/proc/{pid}/task/{tid}/children").read_bytes()
            found += map(int, children.split())
    return found


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
        **{name: sum(getattr(one, name) for one in known) for name in Used.__struct_fields__}
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
    told = parse_stat(stat, tick_ns=_TICK_NS, page_bytes=_PAGE_BYTES)
    return replace(told, cpu_ns=own_ns + told.cpu_ns)


def _clock(pid: int) -> int:
    """The CPU-time clock of a process, as clock_getcpuclockid(3) makes it (CPUCLOCK_SCHED)."""
    return (~pid << 3) | 2


def parse_stat(stat: bytes, *, tick_ns: int, page_bytes: int) -> Used:
    """What a process's stat says, with its ended children; `cpu_ns` is of these alone.

    Fields 10 to 17 and 24 of proc(5)'s stat, the 8th and following after the name.

    >>> parse_stat(b"7 (a) b) S 1 7 7 0 -1 0 5 50 2 20 9 8 3 1 20 0 1 0 99 4096 6",
    ...            tick_ns=10, page_bytes=4096)  # doctest: +NORMALIZE_WHITESPACE
    Used(cpu_ns=40, user_ns=120, system_ns=90, minor_faults=55, major_faults=22,
         rss_bytes=24576)
    """
    words = stat.rpartition(b")")[2].split()
    minor, of_children, major, major_of_children, user, system, user_of_children, rest = map(
        int, words[7:15]
    )
    return Used(
        cpu_ns=(user_of_children + rest) * tick_ns,
        user_ns=(user + user_of_children) * tick_ns,
        system_ns=(system + rest) * tick_ns,
        minor_faults=minor + of_children,
        major_faults=major + major_of_children,
        rss_bytes=int(words[21]) * page_bytes,
    )
