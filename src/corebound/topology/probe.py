"""Read a machine: this one, or one whose `/sys` was saved as a directory."""

from __future__ import annotations

import os
import re
from pathlib import Path

from corebound.errors import HostError
from corebound.model.topology import Topology, parse_cpu_list
from corebound.topology import parse

# The longest of these files, a map of 8,192 CPUs, has 2,304 characters, and
# /proc/mounts grows by a line for each container; what a saved tree holds
# beyond this is none of them.
_MOST_BYTES = 1 << 20


class Files:
    """A `Tree` of real files below a root that holds `sys/`, or is itself a `/sys`."""

    def __init__(self, root: Path) -> None:
        is_sys = not (root / "sys").is_dir() and (root / "devices/system/cpu").is_dir()
        self._root = root
        self._prefix = "sys/" if is_sys else ""

    def read(self, path: str) -> str | None:
        """The text of a file, or None where it is absent or cannot be read."""
        if not path.startswith(self._prefix):
            return None
        try:
            with (self._root / path.removeprefix(self._prefix)).open("rb") as file:
                return file.read(_MOST_BYTES).decode("utf-8", errors="replace")
        except (OSError, ValueError):  # a CPU may go offline meanwhile; a name may hold a NUL
            return None

    def names(self, path: str) -> tuple[str, ...]:
        """What a directory holds, in any order; empty where there is none."""
        if not path.startswith(self._prefix):
            return ()
        try:
            below = (self._root / path.removeprefix(self._prefix)).iterdir()
            return tuple(name.name for name in below)
        except (OSError, ValueError):
            return ()


def probe(root: Path) -> Topology:
    """Read a saved machine.

    Args:
        root: A directory that holds `sys/` (and `proc/`, and whatever cgroups
            were mounted on), or one that is itself a copy of `/sys`.

    Raises:
        HostError: there is no such directory, or it shows no CPU.
    """
    if not root.is_dir():
        raise HostError(
            what="there is no such directory.",
            where=str(root),
            mend="Name a directory that holds a saved `sys/`, or is itself a `/sys`.",
        )
    return parse.topology(Files(root), where=str(root))


def live() -> Topology:
    """Read this machine, and what of it our affinity and cgroups allow.

    Raises:
        HostError: `/sys` is not there, as in some containers.
    """
    files = Files(Path("/"))
    status = re.search(
        r"^Mems_allowed_list:(.*)$", files.read("proc/self/status") or "", re.MULTILINE
    )
    return parse.topology(
        files,
        where="/",
        affinity=frozenset(os.sched_getaffinity(0)),
        memory_nodes=frozenset(parse_cpu_list(status[1])) if status else None,
    )
