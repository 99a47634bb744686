"""What cgroups leave us of a machine: CPUs, memory nodes and CPU time."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from msgspec import Struct

from corebound.machine.doctor.check import command
from corebound.machine.sysfs import Tree, content, integer, integer_of, listed, text_of
from corebound.machine.topology import CpuId


class _Mount(Struct, frozen=True, kw_only=True):
    """Where cpusets are to be read: a directory and the name of its files, `{}` the resource."""

    directory: str
    file: str


_V2 = "cpuset.{}.effective"
_V1 = "cpuset.{}"
_CPUSET = "{}"  # the file system of its own, before cgroups, and cgroup v1's `noprefix`


def allowed(tree: Tree) -> tuple[frozenset[CpuId] | None, frozenset[CpuId] | None]:
    """The CPUs and the memory nodes our cgroup may use; None where nothing limits them.

    A group without a file of its own has its parent's limits, as in cgroup
    v2 where the controller is not handed down, and in containers whose mount
    begins below the hierarchy's root.
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
    """The mount one line of /proc/mounts tells of, if it holds cpusets."""
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
    """Our group's path below the mount, by /proc/self/cpuset or else /proc/self/cgroup."""
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
    """A path relative to the root; `/..` shows where a namespace hides the rest."""
    return "/".join(part for part in path.split("/") if part not in {"", ".", ".."})


def _upwards(group: str) -> Iterator[str]:
    yield group
    while group:
        group = group.rpartition("/")[0]
        yield group


class _CpuMount(Struct, frozen=True, kw_only=True):
    """A hierarchy that can ration CPU time: where it is mounted and our group below that."""

    v2: bool
    folder: str
    group: str


class Quota(Struct, frozen=True, kw_only=True):
    """So many CPUs' worth of time; and the commands that lift it and set it again."""

    cpus: float
    folder: str
    throttled: int | None
    lift: str
    again: str


def quotas(tree: Tree) -> list[Quota] | None:
    """Each that rations us; None where no cgroup with CPU time is mounted."""
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
    """So many CPUs' time our groups give us: infinite without a quota."""
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
    """Our group by controller; that of cgroup v2 has an empty name."""
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
    """Our group below what is mounted: a container often mounts no more than its own."""
    parts, top = _parts(group), _parts(root)
    if ".." in group.split("/"):
        return ""  # above what a namespace shows
    return "/".join(parts[len(top) :] if parts[: len(top)] == top else ())


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", ".", ".."}]


def _folders_upwards(mount: _CpuMount) -> Iterator[str]:
    parts = _parts(mount.group)
    for depth in range(len(parts), -1, -1):
        yield "/".join((mount.folder, *parts[:depth]))


def _quota(tree: Tree, folder: str, *, v2: bool) -> Quota | None:
    """The quota of one group; None where it has none, as the hierarchy's root."""
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
