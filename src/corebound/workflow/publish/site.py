"""A site that can be published: a check that it is complete, and its list of files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from corebound.errors import InputError

# A file in every published site; only a folder that contains it is ever replaced.
MARKER = "corebound-site.json"
INDEX = "index.html"


class Site(Struct, frozen=True, kw_only=True):
    """A folder written by `corebound report`.

    `at` is the time of publication, ISO 8601.
    """

    folder: Path
    at: str

    def files(self) -> Iterator[tuple[str, Path]]:
        """Each file, by its path within the site; hidden files are incomplete and left out."""
        for file in sorted(self.folder.rglob("*")):
            name = file.relative_to(self.folder)
            if file.is_file() and not any(part.startswith(".") for part in name.parts):
                yield name.as_posix(), file

    def note(self) -> str:
        """The marker's content: the time, and a hash of all files."""
        digest = hashlib.sha256()
        for name, file in self.files():
            digest.update(f"{name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
        return f"{json.dumps({'published_at': self.at, 'sha256': digest.hexdigest()})}\n"


def opened(folder: Path, at: str) -> Site:
    """Check that a folder contains a site.

    Raises:
        InputError: It does not.
    """
    if not (folder / INDEX).is_file():
        raise InputError(
            what="there is no site here.",
            where=str(folder),
            mend="Write it with `corebound report`, or name another with --site.",
        )
    return Site(folder=folder, at=at)
