"""A site that may be published: a whole one, and which files are of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from corebound.errors import InputError

# In every published site, so that nothing else is ever replaced by one.
MARKER = "corebound-site.json"
INDEX = "index.html"


class Site(Struct, frozen=True, kw_only=True):
    """A folder that `corebound report` has written.

    `at` is the moment of publishing, ISO 8601.
    """

    folder: Path
    at: str

    def files(self) -> Iterator[tuple[str, Path]]:
        """Each file, by its path within the site; hidden ones are being written."""
        for file in sorted(self.folder.rglob("*")):
            name = file.relative_to(self.folder)
            if file.is_file() and not any(part.startswith(".") for part in name.parts):
                yield name.as_posix(), file

    def note(self) -> str:
        """What stands in the marker: when, and a hash of all there is."""
        digest = hashlib.sha256()
        for name, file in self.files():
            digest.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
        return f"{json.dumps({'published_at': self.at, 'sha256': digest.hexdigest()})}\n"


def opened(folder: Path, at: str) -> Site:
    """Look whether there is a site.

    Raises:
        InputError: there is none.
    """
    if not (folder / INDEX).is_file():
        raise InputError(
            what="there is no site here.",
            where=str(folder),
            mend="Write it with `corebound report`, or name another with --site.",
        )
    return Site(folder=folder, at=at)
