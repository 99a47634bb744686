"""Resolve the names of runs and commits that the user typed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from corebound.errors import InputError
from corebound.records import jsonl
from corebound.records.run_record import Commit, Run


def commit_of(name: str, folder: Path | None = None) -> str | None:
    """Resolve a name to the hash of a commit in a repository.

    Args:
        name: The name as typed.
        folder: Any folder of the repository; the current one by default.

    Returns:
        The hash; None if there is no such commit, no repository, or no git.
    """
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    try:
        done = subprocess.run(
            ("git", *words), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except (OSError, ValueError):  # git is not installed, or the name contains a NUL
        return None
    # Older versions of git echo the option.
    said = done.stdout.decode(errors="replace").split()
    return said[-1] if done.returncode == 0 and said else None


class StoredRun(Struct, frozen=True, kw_only=True):
    """A run and its file, with launches unread: only two of all runs are compared."""

    file: Path
    run: Run


def meant_pair(
    before: str, after: str, kept: Sequence[StoredRun], records: Path
) -> tuple[StoredRun, StoredRun]:
    """Resolve two names to two runs; for commits, the latest of each, on one host if possible.

    Args:
        before: The first name, as typed.
        after: The second name.
        kept: All recorded runs.
        records: The folder of records, for messages.

    Raises:
        InputError: A name matches no run, or matches several.
    """
    ones, twos = _meant(before, kept, records), _meant(after, kept, records)
    pairs = [
        (one, two)
        for one in ones
        for two in twos
        if one.run.host.id == two.run.host.id and one.run.id != two.run.id
    ]
    if not pairs:
        return ones[-1], twos[-1]
    return max(pairs, key=lambda pair: (pair[1].run.started_at, pair[0].run.started_at))


def _meant(name: str, kept: Sequence[StoredRun], records: Path) -> list[StoredRun]:
    """List every run that a name can refer to, oldest first.

    Raises:
        InputError: No run matches, or several run ids begin with the name.
    """
    if Path(name).is_file():
        return [StoredRun(file=Path(name), run=jsonl.read_run(Path(name)))]
    exact = [one for one in kept if one.run.id == name]
    begun = [one for one in kept if name and one.run.id.startswith(name)]
    of_commit = [
        one for one in kept if one.run.commit is not None and _is_called(one.run.commit, name)
    ]
    if not exact and len({one.run.id for one in begun}) > 1:
        raise InputError(
            what=f"several runs begin so: {', '.join(one.run.id for one in begun[:5])}.",
            where=name,
            mend="Give more of the id.",
        )
    shas = {one.run.commit.sha + (one.run.commit.tree or "") for one in of_commit if one.run.commit}
    if not exact and not begun and len(shas) > 1:
        raise InputError(
            what=f"several commits begin so: {', '.join(sorted(shas)[:5])}.",
            where=name,
            mend="Give more of it.",
        )
    found = exact or begun or of_commit or _of_revision(name, kept, records)
    return sorted(found, key=lambda one: (one.run.started_at, one.run.id))


def _is_called(commit: Commit, name: str) -> bool:
    """Whether a commit's hash starts with this; a plain hash never matches a dirty tree."""
    if len(name) < 4:
        return False
    if commit.tree is not None:
        return "+" in name and f"{commit.sha[:10]}+dirty.{commit.tree}".startswith(name.lower())
    return commit.sha.startswith(name.lower())


def _of_revision(name: str, kept: Sequence[StoredRun], records: Path) -> list[StoredRun]:
    """List every run of the commit that git knows by that name.

    Raises:
        InputError: git knows no such commit, or no run measured it.
    """
    known = commit_of(name)
    found = [
        one
        for one in kept
        if one.run.commit and one.run.commit.sha == known and one.run.commit.tree is None
    ]
    if found:
        return found
    if known is not None:
        raise InputError(
            what=f"it is commit {known[:10]} here, and no run of the records measured it.",
            where=f"{name}, in {records}",
            mend="Name one that was measured; --records names another folder.",
        )
    raise InputError(
        what="no run and no commit of the records begins so, and no file is called so.",
        where=f"{name}, in {records}",
        mend="Name a run by its id or its file, or a commit that was measured by at least 4 "
        "letters of its hash, or by a tag or a branch in the clone that has it; "
        "--records names another folder.",
    )
