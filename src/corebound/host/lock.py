"""One run at a time on a host: two would measure one another."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from corebound.errors import HostError


@contextmanager
def alone(what: str) -> Iterator[None]:
    """Hold the host's lock; the kernel lets go of it however this process ends.

    Args:
        what: Who holds it, for the one who is refused.

    Raises:
        HostError: another run holds it.
    """
    file = _file()
    descriptor = _open(file)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 4096, 0).decode("utf-8", errors="replace").strip()
            raise HostError(
                what=f"another run is measuring on this host: {holder or 'unnamed'}.",
                where=str(file),
                mend="Wait for it to end, or pass --unlocked to measure beside it all the same.",
            ) from None
        if os.access(file, os.W_OK):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()}, {what}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def is_held() -> bool:
    """Whether a run is measuring on this host.

    The lock is looked at and not taken: a run that begins at this moment is not refused.
    Source: proc_locks(5).
    """
    try:
        inode = _file().stat().st_ino
        lines = Path("/proc/locks").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    words = (line.split() for line in lines)
    return any("FLOCK" in one and any(word.endswith(f":{inode}") for word in one) for one in words)


def _file() -> Path:
    # The same place for every user: /tmp is sticky, so nobody can take it away.
    return Path(tempfile.gettempdir()) / "corebound.lock"


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except PermissionError:
        # Another user's: it can be locked all the same, only not signed.
        return os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
