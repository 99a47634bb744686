"""Reads and parses the kernel's data on processes and the host under /proc."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound.launch.supervisor import processes_below


class Ticks(Struct, frozen=True, kw_only=True):
    """Rest and steal time of CPUs since boot, in clock ticks.

    `resting` is idle time, I/O wait and interrupts. Interrupts count as neither program's
    time, because kernels differ in whether they charge them to the interrupted program.
    `steal` is the time that the hypervisor gave to other guests.
    """

    resting: int
    steal: int


def cpu_ticks(stat: bytes, cpus: Collection[int]) -> Ticks | None:
    r"""Sum the ticks of `cpus` in /proc/stat; None if one of them is missing (offline).

    Columns: user nice system idle iowait irq softirq steal (proc(5)).

    >>> cpu_ticks(b"cpu 9 9\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu1 0 0 0 9 0 0 0 1\nintr 5", {0, 1})
    Ticks(resting=67, steal=9)
    """
    resting = steal = seen = 0
    for line in stat.split(b"\n"):
        if not line.startswith(b"cpu"):
            break
        name, _, rest = line.partition(b" ")
        if name == b"cpu" or int(name[3:]) not in cpus:
            continue
        columns = rest.split(maxsplit=8)
        if len(columns) < 8:
            continue
        seen += 1
        resting += sum(int(column) for column in columns[3:7])
        steal += int(columns[7])
    return Ticks(resting=resting, steal=steal) if seen == len(cpus) else None


def pressure_us(text: bytes) -> int | None:
    r"""Total stall time since boot in microseconds, from the first line of a PSI file.

    >>> pressure_us(b"some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull total=9\n")
    1234
    """
    first = text.partition(b"\n")[0]
    if not first.startswith(b"some"):
        return None
    for word in first.split():
        if word.startswith(b"total="):
            return int(word[6:])
    return None


def throttled(text: bytes) -> tuple[int, int] | None:
    r"""The number of periods in which a cgroup was throttled, and the duration in nanoseconds.

    Parses cpu.stat of both cgroup versions: microseconds in v2, nanoseconds in v1.

    >>> throttled(b"nr_periods 9\nnr_throttled 3\nthrottled_usec 200\n")
    (3, 200000)
    >>> throttled(b"nr_periods 9\nnr_throttled 3\nthrottled_time 200\n")
    (3, 200)
    """
    values = dict(pair for line in text.split(b"\n") if len(pair := line.split()) == 2)
    periods = values.get(b"nr_throttled")
    if b"throttled_usec" in values and periods is not None:
        return int(periods), int(values[b"throttled_usec"]) * 1000
    if b"throttled_time" in values and periods is not None:
        return int(periods), int(values[b"throttled_time"])
    return None


def cgroup_folders(mountinfo: str, cgroup: str, controller: str) -> tuple[str, ...]:
    r"""The folders of a process's cgroup under a controller, then of that cgroup's ancestors.

    Args:
        mountinfo: /proc/self/mountinfo.
        cgroup: /proc/PID/cgroup.
        controller: For example `cpu` or `freezer`; version 2 has one hierarchy for all.

    >>> v2 = "32 31 0:29 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
    >>> cgroup_folders(v2, "0::/a/b\n", "cpu")
    ('/sys/fs/cgroup/a/b', '/sys/fs/cgroup/a', '/sys/fs/cgroup')
    >>> v1 = "3 1 0:9 / /c/cpu rw - cgroup cgroup rw,cpu\n"
    >>> cgroup_folders(v1, "4:cpu,cpuacct:/x\n0::/\n", "cpu")
    ('/c/cpu/x', '/c/cpu')
    """
    ours: dict[str, str] = {}
    for line in cgroup.splitlines():
        number, controllers, path = [*line.split(":", 2), "", ""][:3]
        if number == "0":
            ours["cgroup2"] = path
        elif controller in controllers.split(","):
            ours["cgroup"] = path
    folders: list[str] = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, options = after.split()[0] if after else "", after.split()[-1] if after else ""
        if kind not in ours or (kind == "cgroup" and controller not in options.split(",")):
            continue
        root, mount = before.split()[3:5]
        below = ours[kind]
        if root != "/" and (below + "/").startswith(root + "/"):
            below = below[len(root) :]
        parts = [part for part in below.split("/") if part and part != ".."]
        folders += ["/".join((mount, *parts[:end])) for end in range(len(parts), -1, -1)]
    return tuple(folders)


def is_frozen(events: bytes) -> bool:
    r"""Whether a cgroup's processes are frozen, by its cgroup.events (v2) or freezer.state (v1).

    >>> is_frozen(b"populated 1\nfrozen 1\n"), is_frozen(b"FROZEN\n"), is_frozen(b"THAWED\n")
    (True, True, False)
    """
    return events.startswith(b"FROZEN") or b"frozen 1" in events.split(b"\n")


def has_nodes() -> bool:
    """Whether this host has more than one NUMA node."""
    try:
        text = Path("/sys/devices/system/node/online").read_text(encoding="ascii")
    except OSError:
        return False
    return text.strip() not in {"", "0"}


def node_bytes(processes: Iterable[int]) -> dict[int, int]:
    """Memory of processes in bytes by NUMA node; empty if the kernel does not report it.

    The kernel walks every page table, which takes milliseconds and blocks the process.
    Call this outside measured intervals.
    """
    found: dict[int, int] = {}
    for pid in processes:
        try:
            text = Path(f"/proc/{pid}/numa_maps").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it has ended, or the kernel was built without NUMA support
        for node, size in parse(text).items():
            found[node] = found.get(node, 0) + size
    return found


def parse(text: str) -> dict[int, int]:
    r"""A process's own memory in bytes by NUMA node, from its numa_maps.

    Excludes mapped files: their pages stay on the node of the process that first read them.

    >>> parse("7f00 default anon=3 N0=2 N1=1 kernelpagesize_kB=4\n7f01 default file=/x N1=9\n")
    {0: 8192, 1: 4096}
    """
    found: dict[int, int] = {}
    for line in text.splitlines():
        words = line.split()
        if any(word.startswith("file=") for word in words):
            continue
        pairs = dict(word.split("=", 1) for word in words[2:] if "=" in word)
        page_kb = pairs.get("kernelpagesize_kB", "4")
        for name, count in pairs.items():
            if name[:1] == "N" and name[1:].isdecimal() and count.isdecimal():
                size = int(count) * int(page_kb) * 1024 if page_kb.isdecimal() else 0
                found[int(name[1:])] = found.get(int(name[1:]), 0) + size
    return found


_TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# The CPU time of a process that ends is added to its parent, which may have been read
# already. All processes are then read again; this is the maximum number of attempts.
_TRIES = 3


class Used(Struct, frozen=True, kw_only=True):
    """Resources used by processes, and by children they waited for, since they started.

    `user_ns` and `system_ns` are the kernel's split of `cpu_ns`, in whole ticks. `rss_bytes`
    is the current resident memory of the processes.
    """

    cpu_ns: int
    user_ns: int
    system_ns: int
    minor_faults: int
    major_faults: int
    rss_bytes: int


def below(root: int) -> set[int]:
    """The process ids of all descendants of `root`, excluding `root` itself.

    Reads the kernel's list of each thread's children, which costs about 10 µs per thread.
    Without that list (CONFIG_PROC_CHILDREN), it reads all of /proc, which costs milliseconds.
    A child whose sibling ends at that moment may be missed once (proc(5)).
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
    """The ids of a process's threads, including its main thread; empty if it has ended."""
    try:
        return list(map(int, os.listdir(f"/proc/{pid}/task")))
    except OSError:
        return []


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for tid in threads_of(pid):
        with contextlib.suppress(OSError):  # it ended in the meantime
            children = Path(f"/proc/{pid}/task/{tid}/children").read_bytes()
            found += map(int, children.split())
    return found


def used(processes: Callable[[], Iterable[int]]) -> Used:
    """The resources that processes, and the children they waited for, have used.

    Args:
        processes: Lists the processes. It is called again if one of them ends meanwhile.
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
    """The resources that one process has used; None if it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        # Its own CPU time is known to the nanosecond; that of ended children in ticks.
        own_ns = time.clock_gettime_ns(_clock(pid))
    except OSError:
        return None
    told = parse_stat(stat, tick_ns=_TICK_NS, page_bytes=_PAGE_BYTES)
    return replace(told, cpu_ns=own_ns + told.cpu_ns)


def _clock(pid: int) -> int:
    """The id of a process's CPU-time clock, as in clock_getcpuclockid(3) (CPUCLOCK_SCHED)."""
    return (~pid << 3) | 2


def parse_stat(stat: bytes, *, tick_ns: int, page_bytes: int) -> Used:
    """Parse a process's stat; includes its ended children, and `cpu_ns` covers only those.

    Uses fields 10 to 17 and 24 of stat in proc(5); field 10 is the 8th after the name.

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
