"""Finds the processes of a running service: by id, by port, by name or by cgroup."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from corebound.errors import CoreboundError, HostError, InputError
from corebound.machine.cgroups import hierarchy_folders
from corebound.machine.process_readings import ProcessFiles
from corebound.machine.sysfs import Files

_LISTENS = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


def with_descendants(roots: Collection[int], parents: Mapping[int, int]) -> set[int]:
    """Processes and all their descendants, of those that exist.

    Args:
        roots: Their ids.
        parents: The parent of each process.
    """
    found = {pid for pid in roots if pid in parents}
    generation = found
    while generation:
        generation = {pid for pid, parent in parents.items() if parent in generation} - found
        found |= generation
    return found


def of_ids(pids: Collection[int], files: ProcessFiles) -> tuple[int, ...]:
    """The same processes.

    Raises:
        InputError: One does not exist, or is a thread.
        HostError: One exists, but /proc does not show it.
    """
    running = files.processes()
    for pid in pids:
        if pid not in running:
            raise _missing(pid, files)
    return tuple(dict.fromkeys(pids))


def _missing(pid: int, files: ProcessFiles) -> CoreboundError:
    where = f"process {pid}"
    if files.started(pid) is not None:
        return InputError(
            what="this is the id of a thread.",
            where=where,
            fix=f"Name its process: `ps -o pid= -q {pid}`, or `Tgid` in /proc/{pid}/status.",
        )
    try:
        # 0 would be this process.
        os.getpgid(pid or -1)
    except (OSError, OverflowError):
        return InputError(
            what="no such process, or it has ended.",
            where=where,
            fix="`ps -e` lists the processes. Inside a container, ids are those of the container.",
        )
    return HostError(
        what="it exists, but /proc does not show it.",
        where=where,
        fix="Run corebound as root, or mount /proc without `hidepid`. A zombie has ended already.",
    )


def of_name(pattern: str, files: ProcessFiles, *, own: int) -> tuple[int, ...]:
    """Processes whose name or command line matches, without those below another one of them.

    Args:
        pattern: A text that one of them contains, or with `*`, `?` or `[` a pattern of all of it.
        files: The processes.
        own: The id of this process. It and its ancestors do not match.

    Raises:
        InputError: None does.
    """
    running = files.processes()
    excluded = set()
    while own in running and own not in excluded:
        excluded.add(own)
        own = running[own][0]
    is_glob = any(sign in pattern for sign in "*?[")
    glob = pattern if is_glob else f"*{pattern}*"
    found = [
        pid
        for pid, (_, _, name) in running.items()
        if pid not in excluded
        and ((fnmatchcase(name, glob)) or fnmatchcase(" ".join(files.command(pid)), glob))
    ]
    if not found or not pattern:
        raise InputError(
            what="no process has such a name or command line.",
            where=f"--name {pattern}",
            fix="`ps -e -o pid,comm,args` lists them. Signs such as * match any text.",
        )
    return _topmost(found, {pid: parent for pid, (parent, _, _) in running.items()})


def of_cgroup(path: str, files: ProcessFiles, *, root: Path) -> tuple[int, ...]:
    """The processes in a cgroup and in those below it.

    Args:
        path: Its path below a hierarchy's mount, as in /proc/PID/cgroup, or its folder.
        files: The processes.
        root: The folder that contains the mounts.

    Raises:
        InputError: There is no such cgroup, or it is empty.
    """
    mounts = hierarchy_folders(Files(root))
    below = path.strip("/")
    folders = [root / below, *(root / mount / below for mount in mounts)]
    inside = [folder for folder in folders if (folder / "cgroup.procs").is_file()]
    if not inside or ".." in Path(below).parts:
        raise InputError(
            what="no such cgroup.",
            where=f"--cgroup {path}",
            fix="Write its path as in /proc/PID/cgroup, or its folder below /sys/fs/cgroup.",
        )
    running = files.processes()
    for folder in inside:
        pids = {pid for part in (folder, *_folders(folder)) for pid in _procs(part)}
        if found := pids & running.keys():
            parents = {pid: parent for pid, (parent, _, _) in running.items()}
            return _topmost(found, parents)
    raise InputError(
        what="no process is in this cgroup.",
        where=f"--cgroup {path}",
        fix="Name the cgroup of a service that is running: `cat /proc/PID/cgroup`.",
    )


def _folders(folder: Path) -> Iterator[Path]:
    for parent, names, _ in os.walk(folder):
        yield from (Path(parent) / name for name in names)


def _procs(folder: Path) -> Iterator[int]:
    try:
        # A process outside of our PID namespace is 0.
        yield from (int(line) for line in (folder / "cgroup.procs").read_text().split())
    except (OSError, ValueError):
        return


def of_port(port: int, files: ProcessFiles, *, root: Path) -> tuple[int, ...]:
    """The processes that accept connections on a TCP port, in any network that /proc shows.

    Raises:
        InputError: Nothing listens there.
        HostError: Something does, but which process is not visible.
    """
    running = files.processes()
    listening: set[str] = set()
    networks: set[str] = set()
    for pid in running:
        network = _link(root / f"proc/{pid}/ns/net")
        if network is not None and network not in networks:
            networks.add(network)
            listening |= _on_port(root / f"proc/{pid}/net", port)
    if not networks:
        listening = _on_port(root / "proc/self/net", port)
    if not listening:
        raise InputError(
            what="nothing listens on this TCP port, in the networks that are visible here.",
            where=f"--port {port}",
            fix="`ss -ltnp` lists the ports. A port of a container is visible to root only.",
        )
    found = [pid for pid in running if listening & set(_sockets(root / f"proc/{pid}/fd"))]
    if not found:
        raise HostError(
            what="something listens on this port, but the process is not visible.",
            where=f"--port {port}",
            fix="Run corebound as root or as the user of the service, and on the host if the"
            " service is in a container. Or name its PID.",
        )
    return _topmost(found, {pid: parent for pid, (parent, _, _) in running.items()})


def ports_of(pids: Collection[int], *, root: Path) -> tuple[int, ...]:
    """The TCP ports on which processes accept connections, as far as visible."""
    found = set()
    for pid in pids:
        sockets = set(_sockets(root / f"proc/{pid}/fd"))
        ports = _listening(root / f"proc/{pid}/net") if sockets else {}
        found |= {port for inode, port in ports.items() if inode in sockets}
    return tuple(sorted(found))


def _on_port(folder: Path, port: int) -> set[str]:
    return {inode for inode, other in _listening(folder).items() if other == port}


def _listening(folder: Path) -> dict[str, int]:
    """The ports of the sockets that listen, by inode."""
    ports = {}
    for name in ("tcp", "tcp6"):
        try:
            lines = (folder / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if len(fields) > 9 and fields[3] == _LISTENS:
                ports[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return ports


def _sockets(folder: Path) -> Iterator[str]:
    try:
        files = list(folder.iterdir())
    except OSError:
        return
    for file in files:
        if match := _SOCKET.fullmatch(_link(file) or ""):
            yield match[1]


def _link(path: Path) -> str | None:
    try:
        return str(path.readlink())
    except OSError:
        return None


def _topmost(pids: Collection[int], parents: Mapping[int, int]) -> tuple[int, ...]:
    """Those of which no ancestor is among them."""
    chosen = set(pids)
    return tuple(pid for pid in sorted(chosen) if not chosen & set(_ancestors(pid, parents)))


def _ancestors(pid: int, parents: Mapping[int, int]) -> Iterator[int]:
    seen = {pid}
    while (pid := parents.get(pid, 0)) and pid not in seen:
        seen.add(pid)
        yield pid
