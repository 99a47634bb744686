"""Reads the kernel's data on processes, threads, CPU time and pressure under /proc (proc(5)).

Uses only the standard library, because the supervisor process imports it. A function that
takes text also works on a saved machine.
"""

import contextlib
import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def read(path: str) -> bytes:
    """The content of a file; empty if it does not exist or cannot be read."""
    return readable(path) or b""


def readable(path: str, *, is_short: bool = False) -> bytes | None:
    """The content of a file; None if it does not exist or cannot be read.

    Args:
        is_short: Whether it has less than 4 KiB, so that one call reads it: half as much time.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        parts = [os.read(descriptor, 1 << 16)]
        while parts[-1] and not is_short:
            parts.append(os.read(descriptor, 1 << 16))
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return b"".join(parts)


def line_value(text: bytes, start: bytes) -> bytes | None:
    r"""The value on the line that starts with `start`, without colon and spaces; None if absent.

    Other lines are not parsed.

    >>> line_value(b"Name:\tx\nTracerPid:\t12\nUid:\t0\t0\n", b"TracerPid")
    b'12'
    >>> line_value(b"name (1)\nse.nr_migrations   :   12\n", b"se.nr_migrations ")
    b'12'
    """
    _, found, rest = (b"\n" + text).partition(b"\n" + start)
    return rest.partition(b"\n")[0].lstrip(b" :\t").rstrip() if found else None


def line_number(text: bytes, start: bytes) -> int | None:
    r"""The number at the beginning of `line_value`; None if the line is absent.

    >>> line_number(b"Name:\tx\nVmHWM:\t   12 kB\n", b"VmHWM")
    12
    """
    value = line_value(text, start)
    return int(value.split(maxsplit=1)[0]) if value else None


class ProcessStat:
    """The fields of a process's or a thread's `stat`, each parsed when it is accessed.

    Times are in clock ticks. Accessing a field that is not a number raises ValueError.

    >>> stat = ProcessStat(b"7 (a) b) S 1 7 7 0 -1 0 5 50 2 20 9 8 3 1 20 0 1 0 99 4096 6")
    >>> stat.name, stat.state, stat.parent, stat.started, stat.rss_bytes // stat.page_bytes
    ('a) b', 'S', 1, 99, 6)
    """

    __slots__ = ("_fields", "_head")
    page_bytes = _PAGE_BYTES

    def __init__(self, line: bytes) -> None:
        """Split the line.

        Raises:
            ValueError: the line is incomplete.
        """
        # The name may contain any character, spaces and brackets included.
        self._head, _, tail = line.rpartition(b")")
        # `_fields[0]` is field 3 of proc(5).
        self._fields = tail.split()
        if len(self._fields) < 20:
            raise ValueError("not a complete stat")

    @property
    def name(self) -> str:
        """The name of the program or thread (comm)."""
        return self._head.partition(b"(")[2].decode(errors="replace")

    @property
    def state(self) -> str:
        """One letter: `R` running, `S` sleeping, `T` stopped, `t` traced, `Z` zombie, …"""
        return self._fields[0].decode()

    @property
    def parent(self) -> int:
        """The id of the parent process."""
        return int(self._fields[1])

    @property
    def faults(self) -> tuple[int, int]:
        """Minor and major page faults, including those of children it waited for."""
        minor, of_children, major, major_of_children = map(int, self._fields[7:11])
        return minor + of_children, major + major_of_children

    @property
    def own_faults(self) -> tuple[int, int]:
        """Minor and major page faults of its own."""
        return int(self._fields[7]), int(self._fields[9])

    @property
    def own_ticks(self) -> tuple[int, int]:
        """User and system time."""
        return int(self._fields[11]), int(self._fields[12])

    @property
    def children_ticks(self) -> tuple[int, int]:
        """User and system time of the children it waited for."""
        return int(self._fields[13]), int(self._fields[14])

    @property
    def is_kernel(self) -> bool:
        """Whether it is a thread of the kernel (PF_KTHREAD)."""
        return bool(int(self._fields[6]) & 0x0020_0000)

    @property
    def nice(self) -> int:
        """Its nice value."""
        return int(self._fields[16])

    @property
    def policy(self) -> int:
        """The kernel's number of its scheduling policy."""
        return int(self._fields[38])

    @property
    def started(self) -> int:
        """The start time since the machine started."""
        return int(self._fields[19])

    @property
    def rss_bytes(self) -> int:
        """The resident memory."""
        return int(self._fields[21]) * self.page_bytes

    @property
    def cpu(self) -> int:
        """The CPU it last ran on."""
        return int(self._fields[36])


def process_stat(pid: int | str, proc: str = "/proc") -> ProcessStat | None:
    """The stat of a process, or of a thread as `PID/task/TID`; None if it has ended.

    Args:
        proc: The folder that contains it.
    """
    try:
        return ProcessStat(readable(f"{proc}/{pid}/stat", is_short=True) or b"")
    except ValueError:
        return None


def thread_ids(pid: int, proc: str = "/proc") -> list[int]:
    """The ids of a process's threads, including its main thread; empty if it has ended."""
    try:
        return list(map(int, os.listdir(f"{proc}/{pid}/task")))
    except OSError:
        return []


def running(proc: str = "/proc") -> dict[int, ProcessStat]:
    """The stat of every process that is no zombie, by id. This costs milliseconds."""
    stats = {}
    for entry in os.listdir(proc):
        # None if it ended after the folder was listed.
        if entry.isdecimal() and (stat := process_stat(entry, proc)) and stat.state not in "ZX":
            stats[int(entry)] = stat
    return stats


def below(roots: Iterable[int], stats: Mapping[int, ProcessStat]) -> set[int]:
    """The descendants of some processes, among running ones."""
    found: set[int] = set()
    generation = set(roots)
    while generation:
        generation = {pid for pid, stat in stats.items() if stat.parent in generation} - found
        found |= generation
    return found


def processes_below(root: int) -> dict[int, str]:
    """The names of all descendants of `root`, by process id; excludes `root` itself.

    Reads all of /proc, which costs milliseconds; zombies do not count.
    """
    stats = running()
    return {pid: stats[pid].name for pid in below((root,), stats)}


def descendants(root: int) -> set[int]:
    """The process ids of all descendants of `root`, excluding `root` itself.

    Reads the kernel's list of each thread's children, which costs about 10 µs per thread.
    Without that list (CONFIG_PROC_CHILDREN), it reads all of /proc, which costs milliseconds.
    A child whose sibling ends at that moment may be missed once (proc(5)).
    """
    if not os.path.exists(f"/proc/self/task/{os.getpid()}/children"):
        return set(processes_below(root))
    below: set[int] = set()
    generation = [root]
    while generation:
        children = [child for pid in generation for child in _children(pid)]
        generation = [child for child in children if child not in below]
        below.update(generation)
    return below


def _children(pid: int) -> list[int]:
    lists = (read(f"/proc/{pid}/task/{tid}/children") for tid in thread_ids(pid))
    return [int(child) for children in lists for child in children.split()]


class ResourceUsage(NamedTuple):
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


# The CPU time of a process that ends is added to its parent, which may have been read
# already. All processes are then read again; this is the maximum number of attempts.
_ATTEMPTS = 3


def resource_usage(processes: Callable[[], Iterable[int]]) -> ResourceUsage:
    """The resources that processes, and the children they waited for, have used.

    Args:
        processes: Lists the processes. It is called again if one of them ends meanwhile.
    """
    for _ in range(_ATTEMPTS):
        usages = [_usage_of(pid) for pid in processes()]
        if None not in usages:
            break
    live = [usage for usage in usages if usage is not None]
    return ResourceUsage(*map(sum, zip(*live, strict=True))) if live else _NOTHING_USED


_NOTHING_USED = ResourceUsage(0, 0, 0, 0, 0, 0)


def _usage_of(pid: int) -> ResourceUsage | None:
    """The resources that one process has used; None if it has ended."""
    stat = process_stat(pid)
    if stat is None:
        return None
    try:
        # Its own CPU time is known to the nanosecond; that of ended children in ticks.
        own_ns = time.clock_gettime_ns(_clock(pid))
    except OSError:
        return None
    user, system = stat.own_ticks
    children_user, children_system = stat.children_ticks
    minor, major = stat.faults
    return ResourceUsage(
        cpu_ns=own_ns + (children_user + children_system) * TICK_NS,
        user_ns=(user + children_user) * TICK_NS,
        system_ns=(system + children_system) * TICK_NS,
        minor_faults=minor,
        major_faults=major,
        rss_bytes=stat.rss_bytes,
    )


def _clock(pid: int) -> int:
    """The id of a process's CPU-time clock, as in clock_getcpuclockid(3) (CPUCLOCK_SCHED)."""
    return (~pid << 3) | 2


def cpu_clocks_ns(processes: Iterable[int]) -> dict[int, int]:
    """CPU time of each live process so far in nanoseconds, without its children."""
    clocks_ns = {}
    for pid in processes:
        with contextlib.suppress(OSError):  # it has ended
            clocks_ns[pid] = time.clock_gettime_ns(_clock(pid))
    return clocks_ns


def cpu_ns_by_process(processes: Iterable[int]) -> dict[int, int]:
    """CPU time of each live process so far, including children that it has waited for."""
    stats = {pid: process_stat(pid) for pid in processes}
    return {
        pid: sum((*stat.own_ticks, *stat.children_ticks)) * TICK_NS
        for pid, stat in stats.items()
        if stat is not None
    }


def schedstat(content: bytes) -> tuple[int, int] | None:
    """Run time and run-queue wait of a thread in nanoseconds; None if there is none.

    >>> schedstat(b"12 34 5")
    (12, 34)
    """
    fields = content.split()
    return (int(fields[0]), int(fields[1])) if len(fields) > 1 else None


class CpuTicks(NamedTuple):
    """CPU time since the machine started, in clock ticks summed over `cpus` CPUs.

    `busy` is user, nice and system time, `idle` includes waiting for I/O. `steal` is the time
    that the hypervisor gave to other guests; `steal_of_each` is that of each CPU, in the order of
    the file, and empty for a sum over the whole host.
    """

    cpus: int
    busy: int
    interrupts: int
    idle: int
    steal: int
    steal_of_each: tuple[int, ...] = ()

    @property
    def resting(self) -> int:
        """Idle time and interrupts.

        Interrupts count as neither program's time, because kernels differ in whether they
        charge them to the interrupted program.
        """
        return self.idle + self.interrupts

    @property
    def total(self) -> int:
        """All time."""
        return self.busy + self.interrupts + self.idle + self.steal


def cpu_ticks(stat: bytes, cpus: Collection[int] | None = None) -> CpuTicks | None:
    r"""Sum the ticks of CPUs in /proc/stat.

    Columns: user nice system idle iowait irq softirq steal.

    Args:
        cpus: The CPUs; None: all CPUs.

    Returns:
        None if a CPU is missing (offline) or the content is malformed.

    >>> cpu_ticks(b"cpu 9 9\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu1 0 0 0 9 0 0 0 1\nintr 5", {0, 1})
    CpuTicks(cpus=2, busy=6, interrupts=13, idle=54, steal=9, steal_of_each=(8, 1))
    """
    busy = interrupts = idle = listed = 0
    steal: list[int] = []
    try:
        for line in stat.split(b"\n"):
            if not line.startswith(b"cpu"):
                break
            name, _, rest = line.partition(b" ")
            listed += name != b"cpu"
            if (name != b"cpu") if cpus is None else (name == b"cpu" or int(name[3:]) not in cpus):
                continue
            columns = rest.split(maxsplit=8)
            if len(columns) < 8:
                continue
            ticks = [int(column) for column in columns[:8]]
            busy += ticks[0] + ticks[1] + ticks[2]
            idle += ticks[3] + ticks[4]
            interrupts += ticks[5] + ticks[6]
            steal.append(ticks[7])
    except ValueError:
        return None
    if not listed or len(steal) != (1 if cpus is None else len(cpus)):
        return None
    return CpuTicks(
        cpus=listed if cpus is None else len(steal),
        busy=busy,
        interrupts=interrupts,
        idle=idle,
        steal=sum(steal),
        steal_of_each=() if cpus is None else tuple(steal),
    )


class Pressure(NamedTuple):
    """Stall information of a resource: the last 10 s in percent, and the total since boot."""

    last_10s_percent: float
    total_us: int


_PRESSURE = re.compile(rb"some avg10=([0-9]{1,3}\.[0-9]{1,6}) .*total=([0-9]{1,18})")


def pressure(text: bytes) -> Pressure | None:
    r"""The stalls of some tasks, from a PSI file; None if the content is malformed.

    >>> pressure(b"some avg10=0.25 avg60=0.00 avg300=0.00 total=1234\nfull total=9\n")
    Pressure(last_10s_percent=0.25, total_us=1234)
    """
    match = _PRESSURE.match(text)
    return None if match is None else Pressure(float(match[1]), int(match[2]))


def node_bytes(processes: Iterable[int]) -> dict[int, int]:
    """Memory of processes in bytes by NUMA node; empty if the kernel does not report it.

    The kernel walks every page table, which takes milliseconds and blocks the process.
    Call this outside measured intervals.
    """
    total: dict[int, int] = {}
    for pid in processes:
        # Empty if it has ended, or if the kernel was built without NUMA support.
        text = read(f"/proc/{pid}/numa_maps").decode(errors="replace")
        for node, size_bytes in parse_numa_maps(text).items():
            total[node] = total.get(node, 0) + size_bytes
    return total


class HugePageSizes(NamedTuple):
    """The transparent huge pages of a process's own memory, in bytes.

    `unadvised` are those in regions for which the program has not asked for them.
    """

    total: int
    unadvised: int


def parse_smaps(text: str) -> HugePageSizes:
    r"""The transparent huge pages of a process, from its smaps.

    >>> parse_smaps(
    ...     "7f00-7f99 rw-p 0 00:00 0\nAnonHugePages:  2048 kB\nVmFlags: rd wr hg\n"
    ...     "8f00-8f99 rw-p 0 00:00 0\nAnonHugePages:  4096 kB\nVmFlags: rd wr\n")
    HugePageSizes(total=6291456, unadvised=4194304)
    """
    total = unadvised = size_bytes = 0
    for line in text.splitlines():
        if line.startswith("AnonHugePages:"):
            size_bytes = int(line.split()[1]) * 1024
            total += size_bytes
        elif line.startswith("VmFlags:") and "hg" not in line.split():
            unadvised += size_bytes
    return HugePageSizes(total=total, unadvised=unadvised)


def mapped_files(pid: int) -> set[str]:
    """The names, without folders, of the files that a process has mapped, such as libraries."""
    lines = read(f"/proc/{pid}/maps").decode(errors="replace").splitlines()
    return {line.rpartition("/")[2] for line in lines if "/" in line}


def parse_numa_maps(text: str) -> dict[int, int]:
    r"""A process's own memory in bytes by NUMA node, from its numa_maps.

    Excludes mapped files: their pages stay on the node of the process that first read them.

    >>> parse_numa_maps(
    ...     "7f00 default anon=3 N0=2 N1=1 kernelpagesize_kB=4\n7f01 default file=/x N1=9\n")
    {0: 8192, 1: 4096}
    """
    total: dict[int, int] = {}
    for line in text.splitlines():
        fields = line.split()
        if any(field.startswith("file=") for field in fields):
            continue
        pairs = dict(field.split("=", 1) for field in fields[2:] if "=" in field)
        page_kb = pairs.get("kernelpagesize_kB", "4")
        for name, count in pairs.items():
            if name[:1] == "N" and name[1:].isdecimal() and count.isdecimal():
                size_bytes = int(count) * int(page_kb) * 1024 if page_kb.isdecimal() else 0
                total[int(name[1:])] = total.get(int(name[1:]), 0) + size_bytes
    return total


def cpuinfo(text: str) -> tuple[dict[str, str], ...]:
    r"""The fields of each block of /proc/cpuinfo; x86 and ARM have a block for each CPU.

    >>> cpuinfo("processor\t: 0\nmodel name\t: X\n\nprocessor\t: 1\n")
    ({'processor': '0', 'model name': 'X'}, {'processor': '1'})
    """
    blocks = []
    for part in text.split("\n\n"):
        lines = (line.partition(":") for line in part.splitlines() if ":" in line)
        if block := {name.strip(): value.strip() for name, _, value in lines}:
            blocks.append(block)
    return tuple(blocks)
