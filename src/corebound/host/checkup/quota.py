"""How much CPU time cgroups ration, from our own group up to the root that is shown.

Source: Documentation/admin-guide/cgroup-v2.rst (cpu.max),
Documentation/scheduler/sched-bwc.rst (v1), cgroup_namespaces(7).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from msgspec import Struct

from corebound.host.checkup.judged import command
from corebound.host.checkup.reading import content, integer, number
from corebound.model.files import Tree


class _Mount(Struct, frozen=True, kw_only=True):
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
    mounts = _mounts(tree)
    if not mounts:
        return None
    return [
        quota
        for mount in mounts
        for folder in _upwards(mount)
        if (quota := _quota(tree, folder, v2=mount.v2))
    ]


def cpus_worth(tree: Tree) -> float:
    """So many CPUs' time our groups give us: infinite without a quota."""
    return min((quota.cpus for quota in quotas(tree) or ()), default=math.inf)


def _mounts(tree: Tree) -> list[_Mount]:
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
                _Mount(
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


def _upwards(mount: _Mount) -> Iterator[str]:
    parts = _parts(mount.group)
    for depth in range(len(parts), -1, -1):
        yield "/".join((mount.folder, *parts[:depth]))


def _quota(tree: Tree, folder: str, *, v2: bool) -> Quota | None:
    """The quota of one group; None where it has none, as the hierarchy's root."""
    if v2:
        text = content(tree, f"{folder}/cpu.max") or ""
        words = text.split()
        quota_us, period_us = (integer(word) for word in words) if len(words) == 2 else (None, None)
        path, free, held = f"{folder}/cpu.max", "max", text
    else:
        path = f"{folder}/cpu.cfs_quota_us"
        quota_us = number(tree, path)
        period_us = number(tree, f"{folder}/cpu.cfs_period_us")
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
