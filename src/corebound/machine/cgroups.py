"""Read the limits that cgroups set on this process: CPUs, memory nodes and CPU time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from msgspec import Struct

from corebound.machine.doctor.check import command
from corebound.machine.sysfs import Tree, content, integer, integer_of, listed, text_of
from corebound.machine.topology import CpuId


class _Mount(Struct, frozen=True, kw_only=True):
    """Where to read cpusets: a directory and a file name, in which `{}` is the resource."""

    directory: str
    file: str


_V2 = "cpuset.{}.effective"
_V1 = "cpuset.{}"
_CPUSET = "{}"  # the cpuset file system that preceded cgroups, and cgroup v1's `noprefix`


def allowed(tree: Tree) -> tuple[frozenset[CpuId] | None, frozenset[CpuId] | None]:
    """The CPUs and memory nodes that our cgroup may use; None if they are not limited.

    A group without its own file has its parent's limits. This happens in cgroup v2 if the
    controller is not delegated, and in containers whose mount begins below the
    hierarchy's root.
    """
    mount = next(_mounts(tree), None)
    if mount is None:
        return None, None
    groups = tuple(_upwards(_group(tree, mount)))
    cpus, mems = (
        next(
            (found for group in groups if (found := listed(tree, _path(mount, group, resource)))),
            None,
        )
        for resource in ("cpus", "mems")
    )
    return cpus, mems


def _path(mount: _Mount, group: str, resource: str) -> str:
    return "/".join(filter(None, (mount.directory, group, mount.file.format(resource))))


def _mounts(tree: Tree) -> Iterator[_Mount]:
    usual = (
        _Mount(directory="sys/fs/cgroup", file=_V2),
        _Mount(directory="sys/fs/cgroup/cpuset", file=_V1),
        _Mount(directory="dev/cpuset", file=_CPUSET),
    )
    for mount in usual:
        if tree.read(_path(mount, "", "cpus")) is not None:
            yield mount
    for line in (tree.read("proc/mounts") or "").splitlines():
        found = _mounted(tree, line.split())
        if found:
            yield found


def _mounted(tree: Tree, words: list[str]) -> _Mount | None:
    """The mount on one line of /proc/mounts, if it contains cpusets."""
    if len(words) < 4:
        return None
    directory = _inside(words[1].replace("\\040", " "))
    options = words[3].split(",")
    if words[2] == "cgroup2":
        controllers = (tree.read(f"{directory}/cgroup.controllers") or "").split()
        return _Mount(directory=directory, file=_V2) if "cpuset" in controllers else None
    if words[2] == "cpuset" or (words[2] == "cgroup" and {"cpuset", "noprefix"} <= set(options)):
        return _Mount(directory=directory, file=_CPUSET)
    if words[2] == "cgroup" and "cpuset" in options:
        return _Mount(directory=directory, file=_V1)
    return None


def _group(tree: Tree, mount: _Mount) -> str:
    """Our group's path below the mount, from /proc/self/cpuset or else /proc/self/cgroup."""
    name = content(tree, "proc/self/cpuset")
    if name:
        return _inside(name)
    for line in (tree.read("proc/self/cgroup") or "").splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if mount.file == _V2 and hierarchy == "0" and not controllers:
            return _inside(path)
        if mount.file != _V2 and "cpuset" in controllers.split(","):
            return _inside(path)
    return ""


def _inside(path: str) -> str:
    """A path relative to the root; `/..` appears if a namespace hides the rest."""
    return "/".join(part for part in path.split("/") if part not in {"", ".", ".."})


def _upwards(group: str) -> Iterator[str]:
    yield group
    while group:
        group = group.rpartition("/")[0]
        yield group


class _CpuMount(Struct, frozen=True, kw_only=True):
    """A hierarchy that can limit CPU time: its mount point and our group below it."""

    v2: bool
    folder: str
    group: str


class Quota(Struct, frozen=True, kw_only=True):
    """A CPU-time quota, in CPUs, and the commands that remove it and set it again."""

    cpus: float
    folder: str
    throttled: int | None
    lift: str
    again: str


def quotas(tree: Tree) -> list[Quota] | None:
    """All quotas that apply to us; None if no cgroup with the CPU controller is mounted."""
    mounts = _cpu_mounts(tree)
    if not mounts:
        return None
    return [
        quota
        for mount in mounts
        for folder in _folders_upwards(mount)
        if (quota := _quota(tree, folder, v2=mount.v2))
    ]


def cpus_worth(tree: Tree) -> float:
    """The CPU time that our groups allow, in CPUs; infinite without a quota."""
    return min((quota.cpus for quota in quotas(tree) or ()), default=math.inf)


def _cpu_mounts(tree: Tree) -> list[_CpuMount]:
    groups = _groups(tree.read("proc/self/cgroup") or "")
    found = []
    for line in (tree.read("proc/self/mountinfo") or "").splitlines():
        head, _, tail = line.partition(" - ")
        mounted, kind = head.split(), tail.split()
        if len(mounted) < 6 or len(kind) < 3:
            continue
        v2 = kind[0] == "cgroup2"
        if not v2 and not (kind[0] == "cgroup" and "cpu" in kind[2].split(",")):
            continue
        controller = "" if v2 else "cpu"
        if controller in groups:
            found.append(
                _CpuMount(
                    v2=v2,
                    folder=_unescaped(mounted[4]).strip("/"),
                    group=_below(groups[controller], _unescaped(mounted[3])),
                )
            )
    return found


def _groups(text: str) -> dict[str, str]:
    """Our group for each controller; the key of cgroup v2 is empty."""
    groups = {}
    for line in text.splitlines():
        hierarchy, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        for controller in controllers.split(",") if hierarchy != "0" else [""]:
            groups[controller] = path
    return groups


def _unescaped(path: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def _below(group: str, root: str) -> str:
    """Our group's path below the mount's root; a container often mounts only its own group."""
    parts, top = _parts(group), _parts(root)
    if ".." in group.split("/"):
        return ""  # above what the namespace shows
    return "/".join(parts[len(top) :] if parts[: len(top)] == top else ())


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", ".", ".."}]


def _folders_upwards(mount: _CpuMount) -> Iterator[str]:
    parts = _parts(mount.group)
    for depth in range(len(parts), -1, -1):
        yield "/".join((mount.folder, *parts[:depth]))


def _quota(tree: Tree, folder: str, *, v2: bool) -> Quota | None:
    """The quota of one group; None if it has none, like the hierarchy's root."""
    if v2:
        text = text_of(tree, f"{folder}/cpu.max") or ""
        words = text.split()
        quota_us, period_us = (integer(word) for word in words) if len(words) == 2 else (None, None)
        path, free, held = f"{folder}/cpu.max", "max", text
    else:
        path = f"{folder}/cpu.cfs_quota_us"
        quota_us = integer_of(tree, path)
        period_us = integer_of(tree, f"{folder}/cpu.cfs_period_us")
        free, held = "-1", str(quota_us)
    if quota_us is None or period_us is None or quota_us < 0 or period_us <= 0:
        return None
    stat = tree.read(f"{folder}/cpu.stat") or ""
    throttled = re.search(r"^nr_throttled ([0-9]{1,18})$", stat, re.MULTILINE)
    return Quota(
        cpus=quota_us / period_us,
        folder=folder,
        throttled=int(throttled[1]) if throttled else None,
        lift=command([(path, free)]),
        again=command([(path, held)]),
    )
