"""The host lock: it allows one run at a time, because two would disturb each other."""

import errno
import hashlib
import os
import pwd
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from corebound.errors import HostError
from corebound.text import one_line

# A command line can have megabytes; its beginning is enough to identify it.
_LONGEST = 200


def flock_holder(descriptor: int) -> str:
    """The process that holds the flock of an open file, as `process` describes it.

    Source: proc_locks(5). A holder on another host, or in a container whose processes are not
    visible here, has no line there.
    """
    pid = next(_flock_holders(descriptor), None)
    return "a process that cannot be seen from here" if pid is None else describe_process(pid)


def describe_process(pid: int) -> str:
    """Describe a process: its id, its user and its command line, as far as they are readable.

    The command line may be another user's text, so it is returned as one line without
    control characters.
    """
    try:
        user = _user(Path(f"/proc/{pid}").stat().st_uid)
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    except OSError:
        return f"process {pid}"
    command = one_line(b" ".join(arguments).decode(errors="replace"))
    excerpt = command if len(command) <= _LONGEST else f"{command[:_LONGEST]}…"
    return f"process {pid} of {user}" + (f", `{excerpt}`" if excerpt else "")


def _user(uid: int) -> str:
    try:
        return one_line(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return f"user {uid}"


def _flock_holders(descriptor: int) -> Iterator[int]:
    """The processes that certainly hold a flock of the same file."""
    file = os.fstat(descriptor)
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return
    for line in lines:
        fields = line.split()
        # A waiting process has `->` before the kind.
        if len(fields) < 6 or fields[1] != "FLOCK" or not fields[5].endswith(f":{file.st_ino}"):
            continue
        if fields[4].isdecimal() and _has_open(int(fields[4]), file):
            yield int(fields[4])


def _has_open(pid: int, file: os.stat_result) -> bool:
    """Whether a process has this very file open; inode numbers repeat between file systems.

    Some file systems, such as overlayfs and Btrfs, show a different device number in /proc/locks
    than in stat. Another user's open files cannot be read; the inode number must then suffice.
    """
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            try:
                status = entry.stat()
            except OSError:
                continue  # closed meanwhile
            if os.path.samestat(status, file):
                return True
    except PermissionError:
        return True
    except OSError:
        return False
    return False


# Selects another lock: for tests, and for containers that share a network namespace but no CPU.
LOCK_VARIABLE = "COREBOUND_HOST_LOCK"

# The holder listens microseconds after it binds the name; until then it cannot be identified.
_TRIES = 10
_BETWEEN_TRIES_S = 0.01
# How often to check on a holder whose end the kernel does not report.
_POLL_S = 1.0
# The longest single wait: poll(2) counts milliseconds in 32 bits.
_LONGEST_S = 3600.0
# struct ucred of <sys/socket.h>: process, user, group.
_CREDENTIALS = struct.Struct("iII")


@contextmanager
def host_lock(
    *, wait_s: float = 0.0, waiting: Callable[[str], None] = lambda _holder: None
) -> Iterator[None]:
    """Hold the host lock; the kernel releases it however this process ends.

    Args:
        wait_s: How long to wait for another run to end.
        waiting: Called with a description of the holder, each time the wait for a new holder
            begins.

    Raises:
        HostError: another run still holds the lock at the end of the wait.
    """
    until_s = time.monotonic() + wait_s
    announced: str | None = None
    with _socket() as listener:
        attempts = 0
        while not _is_bound(listener):
            with _socket() as probe:
                holder = _holder(probe)
                left_s = until_s - time.monotonic()
                if holder is None and attempts < _TRIES:
                    attempts += 1
                    time.sleep(_BETWEEN_TRIES_S)
                    continue
                holder = holder or "a process that cannot be seen from here"
                if left_s <= 0:
                    raise HostError(
                        what=f"another run is measuring on this host: {holder}.",
                        where="corebound",
                        fix="Try again after that run. Commands that measure can"
                        " wait: `--wait 10m`. Commands with --unlocked can measure at the same"
                        " time.",
                    )
                if holder != announced:
                    waiting(holder)
                    announced = holder
                _wait_for_end(probe, min(left_s, _LONGEST_S))
        # Connections are never answered: the kernel tells the connecting process who listens,
        # and when that process ends.
        listener.listen(socket.SOMAXCONN)
        yield


def is_held() -> bool:
    """Whether a run is measuring on this host.

    This only inspects the lock: a run that starts at the same moment is not refused.
    Source: proc_pid_net(5).
    """
    name = f"@{_name()}".encode()
    try:
        lines = Path("/proc/net/unix").read_bytes().splitlines()
    except OSError:
        return False
    return any(line.split()[-1] == name for line in lines if line)


def _name() -> str:
    variable = os.environ.get(LOCK_VARIABLE)
    # An address is limited to 107 bytes, and the variable may contain any text.
    suffix = f"-{hashlib.sha256(os.fsencode(variable)).hexdigest()[:16]}" if variable else ""
    return f"corebound-host-lock{suffix}"


def _socket() -> socket.socket:
    new = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    new.settimeout(0)
    return new


def _is_bound(listener: socket.socket) -> bool:
    try:
        listener.bind(f"\0{_name()}")
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def _holder(probe: socket.socket) -> str | None:
    """Connect to the lock's holder and describe it; None if it cannot be identified."""
    try:
        probe.connect(f"\0{_name()}")
        credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    except OSError:
        # The holder has just ended, does not listen yet, or has too many connections (EAGAIN).
        return None
    pid, _, _ = _CREDENTIALS.unpack(credentials)
    # 0 means a process in another PID namespace, such as a container's.
    return describe_process(pid) if pid else "a process of another container"


def _wait_for_end(probe: socket.socket, timeout_s: float) -> None:
    """Wait until the process that `probe` is connected to ends, but at most `timeout_s`."""
    try:
        probe.getpeername()
    except OSError:  # not connected: the kernel cannot say when it ends
        time.sleep(min(timeout_s, _POLL_S))
        return
    poll = select.poll()
    poll.register(probe, select.POLLIN)
    poll.poll(timeout_s * 1000)
