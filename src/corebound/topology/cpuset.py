"""What cgroups leave us of a machine: CPUs and memory nodes.

Sources: cpuset(7), cgroups(7), Documentation/admin-guide/cgroup-v2.rst. The
order in which mounts are tried is hwloc's, whose answers ours must equal.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from corebound.model.files import Tree
from corebound.model.topology import CpuId
from corebound.topology.tree import content, listed


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
