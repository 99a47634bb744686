"""Machines as files: saved ones out of their archives, invented ones out of arguments."""

from __future__ import annotations

import posixpath
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath

from support.paths import DATA

ARCHIVES = DATA / "topologies"

# What a saved tree holds besides is devices, none of which say where CPUs sit.
_WANTED = (
    "sys/devices/system/cpu/",
    "sys/devices/system/node/",
    "sys/devices/cpu_",
    "sys/fs/cgroup/",
    "proc/",
    "cgroup/",
    "dev/cpuset/",
)


def saved() -> tuple[str, ...]:
    """The names of all saved machines."""
    return tuple(sorted(path.name.removesuffix(".tar.bz2") for path in ARCHIVES.glob("*.bz2")))


def contents(machine: str) -> dict[str, bytes]:
    """The files of a saved machine that matter here, by path below its root."""
    files = {}
    policies = {}
    with tarfile.open(ARCHIVES / f"{machine}.tar.bz2") as archive:
        for member in archive:
            path = "/".join(PurePosixPath(member.name).parts[1:])
            if member.issym() and path.endswith("/cpufreq"):
                policies[path] = posixpath.normpath(f"{path}/../{member.linkname}")
            elif member.isfile() and path.startswith(_WANTED):
                opened = archive.extractfile(member)
                assert opened is not None
                files[path] = opened.read()
    for link, policy in policies.items():
        for path in [path for path in files if path.startswith(f"{policy}/")]:
            files[link + path.removeprefix(policy)] = files[path]
    return files


def write(files: Mapping[str, bytes], root: Path) -> Path:
    """Write a machine's files below a directory, and return that."""
    made = set()
    for path, data in files.items():
        file = root / path
        if file.parent not in made:
            file.parent.mkdir(parents=True, exist_ok=True)
            made.add(file.parent)
        file.write_bytes(data)
    return root


class Texts:
    """A tree held in memory."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = dict(files)
        self._names: dict[str, set[str]] = {}
        for path in files:
            parts = PurePosixPath(path).parts
            for depth, name in enumerate(parts):
                self._names.setdefault("/".join(parts[:depth]), set()).add(name)

    def read(self, path: str) -> str | None:
        return self._files.get(path)

    def names(self, path: str) -> tuple[str, ...]:
        return tuple(self._names.get(path, ()))


def texts(files: Mapping[str, bytes]) -> Texts:
    """A saved machine's files as a tree."""
    return Texts({path: data.decode("utf-8", errors="replace") for path, data in files.items()})


def mask(cpus: Iterable[int]) -> str:
    """The kernel's mask of CPUs, groups of 32 bits."""
    bits = sum(1 << cpu for cpu in set(cpus))
    groups: list[str] = []
    while bits or not groups:
        groups.append(f"{bits & 0xFFFFFFFF:08x}")
        bits >>= 32
    return ",".join(reversed(groups))


Sharing = Callable[[int], Iterable[int]]


def a_tree(
    *,
    cpus: Iterable[int] = range(4),
    online: str | None = None,
    package: Callable[[int], int] = lambda _: 0,
    core: Callable[[int], int] = lambda cpu: cpu,
    siblings: Sharing = lambda cpu: (cpu,),
    in_package: Sharing | None = None,
    cache: Sharing | None = None,
    nodes: Mapping[int, Iterable[int]] | None = None,
    memory_kb: Mapping[int, int] | None = None,
    extra: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """A `/sys` of an old kernel, masks only: four cores of one package unless told otherwise.

    `extra` adds files or replaces them; an empty text there takes a file away.
    """
    every = tuple(cpus)
    base = "sys/devices/system/cpu"
    files = {} if online is None else {f"{base}/online": f"{online}\n"}
    for cpu in every:
        folder = f"{base}/cpu{cpu}"
        files[f"{folder}/topology/physical_package_id"] = f"{package(cpu)}\n"
        files[f"{folder}/topology/core_id"] = f"{core(cpu)}\n"
        files[f"{folder}/topology/thread_siblings"] = f"{mask(siblings(cpu))}\n"
        inside = in_package(cpu) if in_package else every
        files[f"{folder}/topology/core_siblings"] = f"{mask(inside)}\n"
        if cache:
            files[f"{folder}/cache/index0/level"] = "3\n"
            files[f"{folder}/cache/index0/type"] = "Unified\n"
            files[f"{folder}/cache/index0/size"] = "8192K\n"
            files[f"{folder}/cache/index0/shared_cpu_map"] = f"{mask(cache(cpu))}\n"
    for node, on in (nodes or {}).items():
        folder = f"sys/devices/system/node/node{node}"
        files[f"{folder}/cpumap"] = f"{mask(on)}\n"
        kb = (memory_kb or {}).get(node, 1 << 20)
        files[f"{folder}/meminfo"] = f"Node {node} MemTotal:       {kb} kB\n"
    files.update(extra or {})
    return {path: text for path, text in files.items() if text}
