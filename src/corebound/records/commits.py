"""Read commits from git repositories."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from corebound import git
from corebound.errors import InputError
from corebound.records.run_record import Commit

_COMMITTER = re.compile(rb"^committer .* (-?\d{1,18}) [-+]\d+$", re.MULTILINE)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# The years 1 to 9999.
_EARLIEST_S = -62_135_596_800
_LATEST_S = 253_402_300_800


def checked_out(folder: Path) -> Commit | None:
    """The commit checked out in `folder`; None if there is none."""
    output = git.query(folder, "log", "-1", "--format=%H%x00%s%x00%cI")
    if output is None:
        return None  # no git, no repository, or no commit yet
    sha, subject, committed_at = output.split("\0")
    changed = git.query(folder, "status", "--porcelain", "--untracked-files=no")
    return Commit(sha=sha, subject=subject, committed_at=committed_at, dirty=bool(changed))


def origin(repository: Path) -> str | None:
    """The address a repository was cloned from; None if unknown or if git is not installed."""
    return git.query(repository, "remote", "get-url", "origin") or None


def read_commits(repository: Path, hashes: Iterable[str]) -> dict[str, Commit]:
    """Read the commits that the repository has, by hash; unknown ones are missing.

    Raises:
        InputError: git cannot read the repository.
        HostError: git is not installed.
    """
    # git would look up other text as a name, or read a newline as the next request.
    valid = sorted({sha for sha in hashes if sha.isalnum() and sha.isascii()})
    result = git.run(
        repository,
        "cat-file",
        "--batch",
        stdin="".join(f"{sha}\n" for sha in valid).encode(),
        # Do not fetch missing objects into a partial clone.
        environment={"GIT_NO_LAZY_FETCH": "1"},
    )
    if not result.succeeded:
        raise InputError(
            what=f"git cannot read it: {result.error}",
            where=str(repository),
            fix="Name a clone of the project's repository with --repo, or omit the option.",
        )
    commits: dict[str, Commit] = {}
    rest = result.stdout
    for sha in valid:
        header, _, rest = rest.partition(b"\n")
        # `<hash> commit <bytes>`, or `<name> missing`.
        fields = header.split()
        if len(fields) != 3:
            continue
        size = int(fields[2])
        if fields[1] == b"commit" and fields[0].decode() == sha:
            commit = _parse(sha, rest[:size])
            commits |= {} if commit is None else {sha: commit}
        rest = rest[size + 1 :]
    return commits


def _parse(sha: str, content: bytes) -> Commit | None:
    """Parse a commit object: headers, an empty line, the message; None if it has no date.

    git accepts any date, but ISO 8601 ends with the year 9999.

    Source: gitformat-commit: `committer NAME <EMAIL> SECONDS ZONE`.
    """
    headers, _, message = content.partition(b"\n\n")
    committer = _COMMITTER.search(headers)
    committed_s = int(committer[1]) if committer else _LATEST_S
    if not _EARLIEST_S <= committed_s < _LATEST_S:
        return None
    subject = message.lstrip(b"\n").partition(b"\n")[0].decode(errors="replace")
    committed_at = (_EPOCH + timedelta(seconds=committed_s)).replace(tzinfo=None).isoformat()
    return Commit(sha=sha, subject=subject, committed_at=f"{committed_at}Z", dirty=False)
