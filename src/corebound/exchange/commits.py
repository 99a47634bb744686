"""What a git repository says of commits that another tool only has the hashes of."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from corebound.errors import InputError
from corebound.model.run import Commit

_MEND = "Name a clone of the project's repository with --repo, or leave it out."


def described(repo: Path, hashes: Iterable[str]) -> dict[str, Commit]:
    """The commits that the repository has, by hash; the others are missing.

    Raises:
        InputError: git cannot read the repository.
    """
    # Anything but a hash would be looked up as a name, or be a line of its own.
    wanted = sorted({name for name in hashes if name.isalnum() and name.isascii()})
    try:
        done = subprocess.run(
            ("git", "-C", str(repo), "cat-file", "--batch"),
            input="".join(f"{name}\n" for name in wanted).encode(),
            capture_output=True,
            check=False,
            # Of a clone that is partial nothing is to be fetched.
            env=os.environ | {"GIT_NO_LAZY_FETCH": "1"},
        )
    except OSError as error:
        raise InputError(
            what=f"git cannot be started: {error.strerror}.", where=str(repo), mend=_MEND
        ) from error
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip()
        raise InputError(what=f"git cannot read it: {said}", where=str(repo), mend=_MEND)
    found = {}
    rest = done.stdout
    for name in wanted:
        header, _, rest = rest.partition(b"\n")
        # `<hash> commit <bytes>`, or `<name> missing`.
        words = header.split()
        if len(words) != 3:
            continue
        size = int(words[2])
        if words[1] == b"commit" and words[0].decode() == name:
            found[name] = _commit(name, rest[:size])
        rest = rest[size + 1 :]
    return found


def origin(repo: Path) -> str | None:
    """Where a repository was cloned from; None where it does not tell, or there is no git."""
    words = ("git", "-C", str(repo), "remote", "get-url", "origin")
    try:
        done = subprocess.run(words, capture_output=True, check=False)
    except OSError:
        return None
    return done.stdout.decode(errors="replace").strip() or None


def _commit(sha: str, content: bytes) -> Commit:
    """A commit object: headers, an empty line, the message.

    Source: gitformat-commit: `committer NAME <EMAIL> SECONDS ZONE`.
    """
    head, _, message = content.partition(b"\n\n")
    committer = next(line for line in head.split(b"\n") if line.startswith(b"committer "))
    committed_s = int(committer.split()[-2])
    subject = message.lstrip(b"\n").partition(b"\n")[0].decode(errors="replace")
    return Commit(
        sha=sha,
        subject=subject,
        committed_at=f"{np.datetime64(committed_s, 's')}Z",
        dirty=False,
    )
