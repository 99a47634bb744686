"""Finds the processes of a running service: by id, by port, by name or by cgroup."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from corebound.errors import CoreboundError, HostError, InputError
from corebound.machine.cgroups import hierarchy_folders
from corebound.machine.process_readings import command_line
from corebound.machine.procfs import ProcessStat, below, process_stat, running
from corebound.machine.sysfs import LIVE

# States of sockets in /proc/net/tcp.
_ESTABLISHED, _LISTENS = "01", "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")
_ROOT = Path("/")


def of_ids(pids: Iterable[int]) -> tuple[int, ...]:
    """The same processes.

    Raises:
        InputError: One does not exist, has ended, or is a thread or a part of the kernel.
        HostError: One exists, but /proc does not show it.
    """
    stats = _programs(_ROOT)
    for pid in pids:
        if pid not in stats:
            raise _no_program(pid)
    return tuple(dict.fromkeys(pids))


def _programs(root: Path) -> dict[int, ProcessStat]:
    """The processes that run, without those of the kernel."""
    return {pid: stat for pid, stat in running(str(root / "proc")).items() if not stat.is_kernel}


def _no_program(pid: int) -> CoreboundError:
    stat = process_stat(pid)
    if stat is not None and stat.is_kernel:
        what, fix = "this is a part of the kernel.", "Name a program: `ps -e --ppid 2 --deselect`."
    elif stat is not None and stat.state in "ZX":
        what = "it has ended, and its parent has not waited for it yet (a zombie)."
        fix = f"Name its parent, process {stat.parent}, or a service that is running."
    elif stat is not None:
        what = "this is the id of a thread."
        fix = f"Name its process: `ps -o pid= -q {pid}`, or `Tgid` in /proc/{pid}/status."
    else:
        try:
            os.getpgid(pid or -1)  # 0 would be this process
        except (OSError, OverflowError):
            what = "no such process, or it has ended."
            fix = "`ps -e` lists them. Inside a container, ids are those of the container."
        else:
            return HostError(
                what="it exists, but /proc does not show it.",
                where=f"process {pid}",
                fix="Run corebound as root, or mount /proc without `hidepid`.",
            )
    return InputError(what=what, where=f"process {pid}", fix=fix)


def of_name(pattern: str, *, own: int, root: Path = _ROOT) -> tuple[int, ...]:
    """Processes whose name or command line matches, without those below another one of them.

    Args:
        pattern: A text that one of them contains, or with `*`, `?` or `[` a pattern of all of it.
        own: The id of this process. It and its ancestors do not match.
        root: The folder that contains proc/.

    Raises:
        InputError: None does.
    """
    stats, proc = _programs(root), str(root / "proc")
    glob = pattern if any(sign in pattern for sign in "*?[") else f"*{pattern}*"
    found = {
        pid
        for pid, stat in stats.items()
        if fnmatchcase(stat.name, glob) or fnmatchcase(" ".join(command_line(pid, proc)), glob)
    } - {own, *_ancestors(own, stats)}
    if not found or not pattern:
        raise InputError(
            what="no process has such a name or command line.",
            where=f"--name {pattern}",
            fix="`ps -e -o pid,comm,args` lists them. Signs such as * match any text.",
        )
    return _topmost(found, stats)


def of_cgroup(path: str) -> tuple[int, ...]:
    """The processes in a cgroup and in those below it.

    Args:
        path: Its path below a hierarchy's mount, as in /proc/PID/cgroup, or its folder.

    Raises:
        InputError: There is no such cgroup, or it is empty.
    """
    relative = path.strip("/")
    folders = [_ROOT / relative, *(_ROOT / at / relative for at in hierarchy_folders(LIVE))]
    inside = [folder for folder in folders if (folder / "cgroup.procs").is_file()]
    if not inside or ".." in Path(relative).parts:
        raise InputError(
            what="no such cgroup.",
            where=f"--cgroup {path}",
            fix="Write its path as in /proc/PID/cgroup, or its folder below /sys/fs/cgroup.",
        )
    stats = _programs(_ROOT)
    for folder in inside:
        pids = {pid for part, _, _ in os.walk(folder) for pid in _procs(Path(part))}
        if found := pids & stats.keys():
            return _topmost(found, stats)
    raise InputError(
        what="no process is in this cgroup.",
        where=f"--cgroup {path}",
        fix="Name the cgroup of a service that is running: `cat /proc/PID/cgroup`.",
    )


def _procs(folder: Path) -> Iterator[int]:
    try:
        # A process outside of our PID namespace is 0.
        yield from map(int, (folder / "cgroup.procs").read_text().split())
    except (OSError, ValueError):
        return


def of_port(port: int) -> tuple[int, ...]:
    """The processes that accept connections on a TCP port, in any network that /proc shows.

    Raises:
        InputError: Nothing listens there.
        HostError: Something does, but which process is not visible.
    """
    stats = _programs(_ROOT)
    networks = {_link(_ROOT / f"proc/{pid}/ns/net"): pid for pid in stats}
    networks.pop(None, None)
    listening = {
        inode
        for process in networks.values() or ("self",)
        for inode, other in _ports(_ROOT / f"proc/{process}/net").items()
        if other == port
    }
    if not listening:
        raise InputError(
            what="nothing listens on this TCP port, in the networks that are visible here.",
            where=f"--port {port}",
            fix="`ss -ltnp` lists the ports. A port of a container is visible to root only.",
        )
    found = {pid for pid in stats if listening & _sockets(_ROOT / f"proc/{pid}/fd")}
    if not found:
        raise HostError(
            what="something listens on this port, but the process is not visible.",
            where=f"--port {port}",
            fix="Run corebound as root or as the user of the service, and on the host if the"
            " service is in a container. Or name its PID.",
        )
    return _topmost(found, stats)


def ports_of(pids: Collection[int]) -> tuple[int, ...]:
    """The TCP ports on which processes accept connections, as far as visible."""
    found = set()
    for pid in pids:
        sockets = _sockets(_ROOT / f"proc/{pid}/fd")
        ports = _ports(_ROOT / f"proc/{pid}/net") if sockets else {}
        found |= {port for inode, port in ports.items() if inode in sockets}
    return tuple(sorted(found))


def program_of(pid: int) -> str | None:
    """The file that a process runs, also if it was deleted meanwhile; None if it is hidden."""
    path = _link(_ROOT / f"proc/{pid}/exe")
    # A name that is no text must not become half a character in a scenario.
    return path and os.fsencode(path).decode(errors="replace").removesuffix(" (deleted)")


def folder_of(pid: int) -> str | None:
    """The folder in which a process works; None if it is hidden."""
    return _link(_ROOT / f"proc/{pid}/cwd")


def with_connections(pids: Collection[int], port: int) -> set[int]:
    """Those of some processes that hold a connection that was accepted on a TCP port.

    Of several that hold the same one, the youngest: it got it from another, its parent.
    """
    holders: dict[str, int] = {}
    for pid in sorted(pids):
        ports = _ports(_ROOT / f"proc/{pid}/net", _ESTABLISHED)
        accepted = {inode for inode, other in ports.items() if other == port}
        holders |= dict.fromkeys(accepted & _sockets(_ROOT / f"proc/{pid}/fd"), pid)
    return set(holders.values())


def _ports(folder: Path, state: str = _LISTENS) -> dict[str, int]:
    """The own ports of the sockets in a state, by inode; 0 is one that nobody has accepted yet."""
    ports = {}
    for name in ("tcp", "tcp6"):
        try:
            lines = (folder / name).read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if len(fields) > 9 and fields[3] == state:
                ports[fields[9]] = int(fields[1].rpartition(":")[2], 16)
    return ports


def _sockets(folder: Path) -> set[str]:
    try:
        links = [_link(file) or "" for file in folder.iterdir()]
    except OSError:
        return set()
    return {match[1] for link in links if (match := _SOCKET.fullmatch(link))}


def _link(path: Path) -> str | None:
    try:
        return str(path.readlink())
    except OSError:
        return None


def _topmost(pids: Collection[int], stats: Mapping[int, ProcessStat]) -> tuple[int, ...]:
    """Those of which no ancestor is among them."""
    return tuple(sorted(set(pids) - below(pids, stats)))


def _ancestors(pid: int, stats: Mapping[int, ProcessStat]) -> Iterator[int]:
    while pid in stats:
        pid = stats[pid].parent
        yield pid
