"""Reads a process's cgroups: allowed CPUs and memory nodes, CPU and memory limits, freezing."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from msgspec import Struct

from corebound.machine.procfs import line_number
from corebound.machine.sysfs import Tree, parse_integer, read_cpu_list, read_integer, read_text
from corebound.machine.topology import CpuId

QuotaTool = Literal["cgroup", "systemd-run"]


class QuotaSupport(Struct, frozen=True, kw_only=True):
    """How a CPU quota can be set on a host.

    Attributes:
        tool: `cgroup`: by making a cgroup; `systemd-run`: by a scope of systemd; None: not.
        reason: Why neither works, in words, and how to fix it, in a sentence.
    """

    tool: QuotaTool | None = "cgroup"
    reason: str = ""
    fix: str = ""


class _Mount(Struct, frozen=True, kw_only=True):
    """A mounted hierarchy: its mount point, and the cgroup that is mounted there.

    `kind` is `cgroup2`, `cgroup` or `cpuset`, the file system that preceded cgroups.
    `controllers` are those of cgroup v1, and other mount options.
    """

    kind: str
    folder: str
    root: str = ""
    controllers: tuple[str, ...] = ()


def _mounts(tree: Tree) -> Iterable[_Mount]:
    """The mounted hierarchies. A mount hides those that were mounted on its folder before."""
    return {mount.folder: mount for mount in _all_mounts(tree)}.values()


def _all_mounts(tree: Tree) -> Iterator[_Mount]:
    """Every mount; saved machines may have only /proc/mounts, which shows no roots."""
    for line in (tree.read("proc/self/mountinfo") or "").splitlines():
        head, _, tail = line.partition(" - ")
        fields, kind = head.split(), tail.split()
        if len(fields) >= 6 and len(kind) >= 3:
            yield _mount(kind[0], fields[4], kind[2], root=fields[3])
    if tree.read("proc/self/mountinfo") is None:
        for line in (tree.read("proc/mounts") or "").splitlines():
            if len(fields := line.split()) >= 4:
                yield _mount(fields[2], fields[1], fields[3])


def _mount(kind: str, folder: str, options: str, *, root: str = "") -> _Mount:
    return _Mount(
        kind=kind,
        folder="/".join(_parts(_unescaped(folder))),
        root=_unescaped(root),
        controllers=tuple(options.split(",")),
    )


def _unescaped(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _groups(text: str) -> dict[str, str]:
    """A process's cgroup for each controller, from its `cgroup`; the key of cgroup v2 is empty."""
    groups = {}
    for line in text.splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(",") if hierarchy != "0" else [""]:
            groups[controller] = path
    return groups


def _folders(mount: _Mount, group: str) -> tuple[str, ...]:
    """The folder of a cgroup below a mount, then those of its ancestors up to the mount.

    A container often mounts only its own cgroup, so the mount's root is removed from the path.
    Empty if the mount does not show the cgroup. In a path or a root outside of our cgroup
    namespace, `..` stands for names that the kernel hides.
    """
    parts, root = _parts(group), _parts(mount.root)
    if ".." in (*parts, *root) or parts[: len(root)] != root:
        return ()
    below = parts[len(root) :]
    return tuple("/".join((mount.folder, *below[:end])) for end in range(len(below), -1, -1))


def cgroup_folders(
    tree: Tree, controller: str, *, process: str = "self"
) -> tuple[tuple[str, ...], ...]:
    """The folders of a process's cgroup and its ancestors, for each hierarchy of a controller.

    Args:
        controller: For example `cpu` or `freezer`; version 2 has one hierarchy for all.
        process: The process's id.
    """
    return tuple(folders for _, folders in _hierarchies(tree, controller, process) if folders)


def _hierarchies(
    tree: Tree, controller: str, process: str = "self"
) -> Iterator[tuple[_Mount, tuple[str, ...]]]:
    groups = _groups(tree.read(f"proc/{process}/cgroup") or "")
    for mount in _mounts(tree):
        name = "" if mount.kind == "cgroup2" else controller
        is_mounted = mount.kind == "cgroup2" or (
            mount.kind == "cgroup" and controller in mount.controllers
        )
        if is_mounted and name in groups:
            yield mount, _folders(mount, groups[name])


# Where cpusets are usually mounted, in the order of preference.
_USUAL = (
    _Mount(kind="cgroup2", folder="sys/fs/cgroup"),
    _Mount(kind="cgroup", folder="sys/fs/cgroup/cpuset", controllers=("cpuset",)),
    _Mount(kind="cpuset", folder="dev/cpuset"),
)


class Cpuset(NamedTuple):
    """The CPUs and memory nodes that a cgroup may use; None if they are not limited.

    `is_effective`: whether the kernel lists only what is online.
    """

    cpus: frozenset[CpuId] | None = None
    nodes: frozenset[CpuId] | None = None
    is_effective: bool = False


def hierarchy_folders(tree: Tree) -> tuple[str, ...]:
    """Where hierarchies are mounted."""
    return tuple(mount.folder for mount in _mounts(tree) if mount.kind.startswith("cgroup"))


def cpuset(tree: Tree, *, process: str = "self") -> Cpuset:
    """The CPUs and memory nodes that the cgroup of a process may use: by default, of ours.

    A group without its own file has its parent's limits. This happens in cgroup v2 if the
    controller is not delegated, and in containers whose mount begins below the
    hierarchy's root.
    """
    mount = next(_cpuset_mounts(tree), None)
    if mount is None:
        return Cpuset()
    folders = _folders(mount, _cpuset_group(tree, mount, process)) or (mount.folder,)
    file = _cpuset_file(mount)
    cpus, nodes = (
        next(
            (
                limit
                for folder in folders
                if (limit := read_cpu_list(tree, f"{folder}/{file.format(resource)}"))
            ),
            None,
        )
        for resource in ("cpus", "mems")
    )
    return Cpuset(cpus=cpus, nodes=nodes, is_effective=mount.kind == "cgroup2")


def _cpuset_mounts(tree: Tree) -> Iterator[_Mount]:
    for mount in _USUAL:
        if tree.read(f"{mount.folder}/{_cpuset_file(mount).format('cpus')}") is not None:
            yield mount
    for mount in _mounts(tree):
        if mount.kind == "cgroup2":
            controllers = (tree.read(f"{mount.folder}/cgroup.controllers") or "").split()
            if "cpuset" in controllers:
                yield mount
        elif mount.kind == "cpuset" or (mount.kind == "cgroup" and "cpuset" in mount.controllers):
            yield mount


def _cpuset_file(mount: _Mount) -> str:
    """The name of a cpuset's files, in which `{}` is the resource."""
    if mount.kind == "cgroup2":
        return "cpuset.{}.effective"
    return "{}" if mount.kind == "cpuset" or "noprefix" in mount.controllers else "cpuset.{}"


def _cpuset_group(tree: Tree, mount: _Mount, process: str) -> str:
    """A process's cpuset, from its `cpuset` in /proc or else its `cgroup`."""
    groups = _groups(tree.read(f"proc/{process}/cgroup") or "")
    controller = "" if mount.kind == "cgroup2" else "cpuset"
    return read_text(tree, f"proc/{process}/cpuset") or groups.get(controller, "")


class CpuGroup(Struct, frozen=True, kw_only=True):
    """The cgroup that limits a process's CPU time.

    Attributes:
        folders: Its folder, then those of its ancestors as far as they are mounted.
        is_v2: Whether the hierarchy is of version 2 of cgroups.
    """

    folders: tuple[str, ...]
    is_v2: bool


def cpu_group(tree: Tree) -> CpuGroup | None:
    """Our cgroup in the hierarchy of the CPU controller; None if no mount shows it."""
    return next(iter(_cpu_groups(tree, "self")[0]), None)


def hidden_group(tree: Tree) -> str | None:
    """Why no mount shows the cgroup that limits our CPU time; None if one does."""
    return _cpu_groups(tree, "self")[1]


def _cpu_groups(tree: Tree, process: str) -> tuple[list[CpuGroup], str | None]:
    """A process's cgroup in each mount that shows it, or why none does."""
    groups = _groups(tree.read(f"proc/{process}/cgroup") or "")
    # A controller belongs to one hierarchy at a time.
    is_v2 = "cpu" not in groups
    mounted = [
        (mount, folders)
        for mount, folders in _hierarchies(tree, "cpu", process)
        if (mount.kind == "cgroup2") == is_v2
    ]
    shown = [CpuGroup(folders=folders, is_v2=is_v2) for _, folders in mounted if folders]
    if shown:
        return shown, None
    if not groups:
        return [], f"/proc/{process}/cgroup: shows no cgroup"
    if not mounted:
        return [], "/proc/self/mountinfo: no cgroup with the CPU controller is mounted"
    path, root = groups["" if is_v2 else "cpu"], mounted[0][0].root
    return [], (
        f"/proc/self/mountinfo: the mount of {root!r} does not show {path!r}, the cgroup in"
        f" /proc/{process}/cgroup"
    )


def group_of(tree: Tree, *, process: str) -> str:
    """The path of a process's cgroup that shares CPU time, as in /proc/PID/cgroup."""
    groups = _groups(tree.read(f"proc/{process}/cgroup") or "")
    return groups.get("cpu", groups.get("", ""))


class Throttling(NamedTuple):
    """What a cgroup's quota did so far.

    `throttled_ns` is summed over the CPUs on which threads were stopped. `periods` counts those
    in which the group ran.
    """

    throttled_periods: int
    throttled_ns: int
    periods: int


class Quota(Struct, frozen=True, kw_only=True):
    """A CPU-time quota.

    Attributes:
        cpus: The CPU time that it allows, in CPUs.
        period_us: The period in which it allows that time.
        folder: The cgroup's folder.
        throttling: What it did until it was read; None if unknown.
        file: The file that sets it; value: its content; unlimited: the content that lifts it.
    """

    cpus: float
    period_us: int
    folder: str
    throttling: Throttling | None
    file: str
    value: str
    unlimited: str


class Quotas(Struct, frozen=True, kw_only=True):
    """The CPU-time quotas that apply to a process.

    Attributes:
        known: Those that can be read, the process's own cgroup first.
        unknown: Why there may be others: a file, and what is wrong with it; None if there are none.
        own: The folder of the process's own cgroup; None if no mount shows it.
    """

    known: tuple[Quota, ...]
    unknown: str | None
    own: str | None = None

    @property
    def tightest(self) -> Quota | None:
        """The smallest. Groups are nested, and it limits all of them."""
        return min(self.known, key=lambda quota: quota.cpus, default=None)


def quotas(tree: Tree, *, process: str = "self") -> Quotas:
    """All quotas that apply to a process.

    Args:
        process: The process's id.
    """
    groups, unknown = _cpu_groups(tree, process)
    known: list[Quota] = []
    for group in groups:
        for folder in group.folders:
            try:
                quota = _quota(tree, folder, is_v2=group.is_v2)
            except ValueError as error:
                unknown = unknown or str(error)
            else:
                known += () if quota is None else (quota,)
    return Quotas(known=tuple(known), unknown=unknown, own=groups[0].folders[0] if groups else None)


def quota_cpus(tree: Tree) -> float | None:
    """The CPU time that our groups allow, in CPUs; None if no quota is known."""
    tightest = quotas(tree).tightest
    return tightest.cpus if tightest else None


# The weight of a group without a setting of its own, in cgroup v1 and v2.
_DEFAULT_SHARES, DEFAULT_WEIGHT = 1024, 100


class CpuWeight(NamedTuple):
    """The CPU weight of a cgroup, as of cgroup v2; 0 for one that runs only when others idle."""

    weight: float
    folder: str


def lowest_weight(tree: Tree, *, process: str = "self") -> CpuWeight | None:
    """The lowest CPU weight of a process's group and its ancestors; None if none is known."""
    weights = [
        CpuWeight(weight, folder)
        for group in _cpu_groups(tree, process)[0]
        for folder in group.folders
        if (weight := _weight(tree, folder, is_v2=group.is_v2)) is not None
    ]
    return min(weights, default=None)


def _weight(tree: Tree, folder: str, *, is_v2: bool) -> float | None:
    if read_integer(tree, f"{folder}/cpu.idle") == 1:
        return 0
    if is_v2:
        return read_integer(tree, f"{folder}/cpu.weight")
    shares = read_integer(tree, f"{folder}/cpu.shares")
    return None if shares is None else shares * DEFAULT_WEIGHT / _DEFAULT_SHARES


# What the kernel accepts for a quota and its period, in microseconds, and its default period.
# Source: Linux, kernel/sched/core.c, `max_bw_quota_period_us` and `tg_set_cfs_bandwidth`.
_QUOTA_US = range(1_000, 1 << 44)
_PERIOD_US = range(1_000, 1_000_001)
_DEFAULT_PERIOD = "100000"


def _quota(tree: Tree, folder: str, *, is_v2: bool) -> Quota | None:
    """The quota of one group; None if it has none, like the hierarchy's root."""
    file, unlimited = ("cpu.max", "max") if is_v2 else ("cpu.cfs_quota_us", "-1")
    file = f"{folder}/{file}"
    if tree.read(file) is None:
        return None
    value = read_text(tree, file) or ""
    fields = value.split()
    if not is_v2:
        fields.append(read_text(tree, f"{folder}/cpu.cfs_period_us") or "")
    elif len(fields) == 1 and value != unlimited:
        fields.append(_DEFAULT_PERIOD)  # some container runtimes show the quota alone
    numbers = map(parse_integer, fields) if len(fields) == 2 else (None, None)
    quota_us, period_us = (number or 0 for number in numbers)
    if period_us in _PERIOD_US and fields[0] == unlimited:
        return None
    if quota_us not in _QUOTA_US or period_us not in _PERIOD_US:
        raise ValueError(f"/{file} is malformed: {' '.join(fields)[:40]!r}")
    return Quota(
        cpus=quota_us / period_us,
        period_us=period_us,
        folder=folder,
        throttling=throttling(tree.read(f"{folder}/cpu.stat") or ""),
        file=file,
        value=value,
        unlimited=unlimited,
    )


# The files of a group's memory limit, its use, and the statistic of its page cache that can be
# dropped, for cgroup v2 and v1.
_MEMORY_FILES = {
    True: ("memory.max", "memory.current", "inactive_file"),
    False: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def available_memory_bytes(tree: Tree) -> float:
    """The memory that we can still use; infinite if it is unknown.

    The least of what the host has available and what the limits of our groups leave.
    """
    host_kb = line_number((tree.read("proc/meminfo") or "").encode(), b"MemAvailable")
    available = [math.inf if host_kb is None else host_kb * 1024]
    for mount, folders in _hierarchies(tree, "memory"):
        limit_file, use_file, cache = _MEMORY_FILES[mount.kind == "cgroup2"]
        for folder in folders:
            limit = read_integer(tree, f"{folder}/{limit_file}")
            used = read_integer(tree, f"{folder}/{use_file}")
            if limit is not None and used is not None:
                counts = _counts(tree.read(f"{folder}/memory.stat") or "")
                available.append(limit - used + counts.get(cache, 0))
    return min(available)


def _counts(text: str) -> Mapping[str, int]:
    """The counts in a file such as cpu.stat, by name."""
    pairs = (line.split() for line in text.splitlines())
    return {
        pair[0]: count
        for pair in pairs
        if len(pair) == 2 and (count := parse_integer(pair[1])) is not None
    }


def throttling(cpu_stat: str) -> Throttling | None:
    r"""Parse cpu.stat of either cgroup version: microseconds in v2, nanoseconds in v1.

    >>> throttling("nr_periods 9\nnr_throttled 3\nthrottled_usec 200\n")
    Throttling(throttled_periods=3, throttled_ns=200000, periods=9)
    >>> throttling("nr_periods 9\nnr_throttled 3\nthrottled_time 200\n").throttled_ns
    200
    """
    counts = _counts(cpu_stat)
    periods, throttled_periods = counts.get("nr_periods"), counts.get("nr_throttled")
    duration_us = counts.get("throttled_usec")
    duration_ns = counts.get("throttled_time") if duration_us is None else duration_us * 1000
    if periods is None or throttled_periods is None or duration_ns is None:
        return None
    return Throttling(throttled_periods, duration_ns, periods)


def is_frozen(tree: Tree, pid: int) -> bool:
    """Whether a process's cgroup, or an ancestor of it, is frozen."""
    return any(
        is_frozen_state(tree.read(f"{folder}/{name}") or "")
        for folders in cgroup_folders(tree, "freezer", process=str(pid))
        for folder in folders
        for name in ("cgroup.events", "freezer.state")
    )


def is_frozen_state(events: str) -> bool:
    r"""Whether a cgroup's processes are frozen, by its cgroup.events (v2) or freezer.state (v1).

    >>> is_frozen_state("populated 1\nfrozen 1\n"), is_frozen_state("FROZEN\n")
    (True, True)
    >>> is_frozen_state("THAWED\n")
    False
    """
    return events.startswith("FROZEN") or "frozen 1" in events.splitlines()
