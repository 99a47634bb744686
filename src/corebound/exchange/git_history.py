"""Look up commits in a git repository that another tool knows only by hash."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from corebound.errors import InputError
from corebound.records.run_record import Commit

_DATED = re.compile(rb"^committer .* (-?\d{1,18}) [-+]\d+$", re.MULTILINE)
# The years 1 to 9999.
_EARLIEST_S = -62_135_596_800
_LATEST_S = 253_402_300_800
_MEND = "Name a clone of the project's repository with --repo, or leave it out."


def described(repo: Path, hashes: Iterable[str]) -> dict[str, Commit]:
    """Read the commits that the repository has, by hash; unknown ones are missing.

    Raises:
        InputError: git cannot read the repository.
    """
    # git would look up other text as a name, or read a newline as the next request.
    wanted = sorted({name for name in hashes if name.isalnum() and name.isascii()})
    try:
        done = subprocess.run(
            ("git", "-C", str(repo), "cat-file", "--batch"),
            input="".join(f"{name}\n" for name in wanted).encode(),
            capture_output=True,
            check=False,
            # Do not fetch missing objects into a partial clone.
            env=os.environ | {"GIT_NO_LAZY_FETCH": "1"},
        )
    except OSError as error:
        raise InputError(
            what=f"git cannot be started: {error.strerror}.", where=str(repo), fix=_MEND
        ) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise InputError(what=f"git cannot read it: {said}", where=str(repo), fix=_MEND)
    found: dict[str, Commit] = {}
    rest = done.stdout
    for name in wanted:
        header, _, rest = rest.partition(b"\n")
        # `<hash> commit <bytes>`, or `<name> missing`.
        words = header.split()
        if len(words) != 3:
            continue
        size = int(words[2])
        if words[1] == b"commit" and words[0].decode() == name:
            commit = _commit(name, rest[:size])
            found |= {} if commit is None else {name: commit}
        rest = rest[size + 1 :]
    return found


def origin(repo: Path) -> str | None:
    """The address a repository was cloned from; None if unknown or if git is not installed."""
    words = ("git", "-C", str(repo), "remote", "get-url", "origin")
    try:
        done = subprocess.run(words, capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout.decode(errors="replace").strip() or None


def _commit(sha: str, content: bytes) -> Commit | None:
    """Parse a commit object: headers, an empty line, the message; None if it has no date.

    git accepts any date, but ISO 8601 ends with the year 9999.

    Source: gitformat-commit: `committer NAME <EMAIL> SECONDS ZONE`.
    """
    head, _, message = content.partition(b"\n\n")
    dated = _DATED.search(head)
    committed_s = int(dated[1]) if dated else _LATEST_S
    if not _EARLIEST_S <= committed_s < _LATEST_S:
        return None
    subject = message.lstrip(b"\n").partition(b"\n")[0].decode(errors="replace")
    return Commit(
        sha=sha,
        subject=subject,
        committed_at=f"{np.datetime64(committed_s, 's')}Z",
        dirty=False,
    )
