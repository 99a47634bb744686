"""Which runs and commits are meant by what was typed."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from corebound.errors import InputError
from corebound.records import jsonl
from corebound.records.run_record import Commit, Run


def commit_of(name: str, folder: Path | None = None) -> str | None:
    """The hash of the commit that a name has in a repository.

    Args:
        name: As typed.
        folder: Somewhere in the repository; the current one by default.

    Returns:
        None where it names none, there is no repository, or no git.
    """
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    try:
        done = subprocess.run(
            ("git", *words), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except (OSError, ValueError):  # no git, and no program takes a name with a NUL
        return None
    # Older versions say the option back.
    said = done.stdout.decode(errors="replace").split()
    return said[-1] if done.returncode == 0 and said else None


class StoredRun(Struct, frozen=True, kw_only=True):
    """A run and its file, whose launches are unread: two of all runs are compared."""

    file: Path
    run: Run


def meant_pair(
    before: str, after: str, kept: Sequence[StoredRun], records: Path
) -> tuple[StoredRun, StoredRun]:
    """The two runs that are meant: of two commits, the latest of each on one host where there is.

    Args:
        before: The one, as typed.
        after: The other.
        kept: Every run of the records.
        records: Their folder, to name it.

    Raises:
        InputError: none is meant, or one of several.
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
    """Every run that a name may mean, oldest first.

    Raises:
        InputError: none is meant, or one of several runs by the beginning of their ids.
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
    """Whether a hash begins so; one alone never means a working tree with changes."""
    if len(name) < 4:
        return False
    if commit.tree is not None:
        return "+" in name and f"{commit.sha[:10]}+dirty.{commit.tree}".startswith(name.lower())
    return commit.sha.startswith(name.lower())


def _of_revision(name: str, kept: Sequence[StoredRun], records: Path) -> list[StoredRun]:
    """Every run of the commit that git knows by that name.

    Raises:
        InputError: it knows none, or no run measured it.
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
