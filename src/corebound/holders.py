"""Who holds a lock, in words for whoever is refused."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path

from corebound.foreign import one_line

# A command line can have megabytes; its beginning says which it is.
_LONGEST = 200


def of_file(descriptor: int) -> str:
    """The process that holds the flock of an open file, as `process` describes it.

    Source: proc_locks(5). A holder on another host, or in a container whose processes are hidden
    from here, has no line there.
    """
    pid = next(_with_flock(descriptor), None)
    return "a process that cannot be seen from here" if pid is None else process(pid)


def process(pid: int) -> str:
    """A process by its number, its user, and its command line as far as they can be read.

    The command line may be another user's text: it comes as one line without control characters.
    """
    try:
        user = _user(Path(f"/proc/{pid}").stat().st_uid)
        words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return f"process {pid}"
    command = one_line(b" ".join(words).decode(errors="replace"))
    shown = command if len(command) <= _LONGEST else f"{command[:_LONGEST]}…"
    return f"process {pid} of {user}" + (f", `{shown}`" if shown else "")


def _user(uid: int) -> str:
    try:
        return one_line(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return f"user {uid}"


def _with_flock(descriptor: int) -> Iterator[int]:
    """The processes that hold a flock of the same file, the certain ones only."""
    wanted = os.fstat(descriptor)
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return
    for line in lines:
        words = line.split()
        # A waiting process has `->` before the kind.
        if len(words) < 6 or words[1] != "FLOCK" or not words[5].endswith(f":{wanted.st_ino}"):
            continue
        if words[4].isdecimal() and _has_open(int(words[4]), wanted):
            yield int(words[4])


def _has_open(pid: int, wanted: os.stat_result) -> bool:
    """Whether a process has this very file open; inode numbers repeat between file systems.

    Some file systems, such as overlayfs and Btrfs, show another device number in /proc/locks
    than stat does. Of another user's process this cannot be read; then the number has to do.
    """
    try:
        for one in Path(f"/proc/{pid}/fd").iterdir():
            try:
                found = one.stat()
            except OSError:
                continue  # closed meanwhile
            if os.path.samestat(found, wanted):
                return True
    except PermissionError:
        return True
    except OSError:
        return False
    return False
