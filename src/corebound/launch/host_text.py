"""Pure readings of what the kernel tells of the host: text in, numbers out."""

from __future__ import annotations

from collections.abc import Collection

from msgspec import Struct


class Ticks(Struct, frozen=True, kw_only=True):
    """Of CPUs since the start: not at work for programs, and given to others by the hypervisor.

    `resting` is idle time, waiting for a disk, and interrupts: a kernel may count these
    as the interrupted program's or not, so they are nobody's.
    """

    resting: int
    steal: int


def cpu_ticks(stat: bytes, cpus: Collection[int]) -> Ticks | None:
    r"""Read /proc/stat; None where a CPU is missing, for it went offline.

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
    r"""How long something waited since the start, in microseconds (PSI's first line).

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
    r"""Periods in which a cgroup was throttled, and for how long in nanoseconds.

    Reads cpu.stat of both versions: microseconds in v2, nanoseconds in v1.

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
    r"""The folders of a process's cgroups under a controller, its own first, then those above.

    Args:
        mountinfo: /proc/self/mountinfo.
        cgroup: /proc/PID/cgroup.
        controller: Such as `cpu` or `freezer`; version 2 has one hierarchy for all.

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
