"""The folder that a run's launches work in, by a path that leaves room for sockets below it.

A socket's address in the file system has at most 107 bytes. Where the path of the temporary
folder fills them, a server or torch's DataLoader cannot make its sockets; the loaders then
wait for each other until the launch's time is over.
"""

from __future__ import annotations

import os
import secrets
import tempfile
from pathlib import Path

from corebound.errors import HostError

_PREFIX = "corebound-"
# unix(7): 108, of which one ends it.
_ADDRESS_BYTES = 107
# A launch's own temporary folder takes up to 25 of them, and what is known to make sockets
# there, torch's manager of shared memory, up to 34; the rest is to spare.
_BELOW_BYTES = 64
# Where a short name for the folder goes; POSIX has every host keep it for such files. What S108
# warns of, that others lay a file there first, fails: nobody guesses the name, and `symlink`
# never replaces a file.
_SHORT = Path("/tmp")  # noqa: S108 - names below it are drawn, and symlink replaces nothing


def make(short: Path = _SHORT) -> Path:
    """An empty folder below the temporary one; whoever is given it removes it.

    Where its path is too long, what is returned is a link to it, so that the files are still
    on the disk that TMPDIR chooses.

    Args:
        short: Where such a link goes.

    Raises:
        HostError: a link is needed and cannot be made.
    """
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX)).absolute()
    most_bytes = _ADDRESS_BYTES - _BELOW_BYTES
    if len(os.fsencode(folder)) <= most_bytes:
        return folder
    link = short / f"{_PREFIX}{secrets.token_hex(8)}"
    try:
        link.symlink_to(folder)
    except OSError as error:
        folder.rmdir()
        longest_bytes = most_bytes - len(os.fsencode(folder.name)) - 1
        raise HostError(
            what=f"its path is too long for sockets below it, and no short name for it can be "
            f"made in {short} ({error.strerror}).",
            where=str(folder.parent),
            mend=f"Set TMPDIR to a folder whose path has at most {longest_bytes} characters.",
        ) from error
    return link
