"""Resolve the names of runs and commits that the user typed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from corebound import git
from corebound.analysis.commit_comparison import commits_of
from corebound.errors import InputError
from corebound.records import jsonl
from corebound.records.history import Series
from corebound.records.run_record import Commit, Run


def commit_of(name: str, folder: Path | None = None) -> str | None:
    """Resolve a name to the hash of a commit in a repository.

    Args:
        name: The name as typed.
        folder: Any folder of the repository; the current one by default.

    Returns:
        The hash; None if there is no such commit, no repository, or no git.
    """
    if "\0" in name:
        return None
    arguments = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    output = git.query(folder or Path(), *arguments)
    # Older versions of git echo the option.
    return output.split()[-1] if output else None


class StoredRun(Struct, frozen=True, kw_only=True):
    """A run and its file, with launches unread: only two of all runs are compared."""

    file: Path
    run: Run


def resolve_runs(
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
    ones, twos = _matching_runs(before, kept, records), _matching_runs(after, kept, records)
    pairs = [
        (one, two)
        for one in ones
        for two in twos
        if one.run.host.id == two.run.host.id and one.run.id != two.run.id
    ]
    if not pairs:
        return ones[-1], twos[-1]
    return max(pairs, key=lambda pair: (pair[1].run.started_at, pair[0].run.started_at))


def _matching_runs(name: str, kept: Sequence[StoredRun], records: Path) -> list[StoredRun]:
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
            what=f"several runs match: {', '.join(one.run.id for one in begun[:5])}.",
            where=name,
            fix="Give more letters of the id.",
        )
    shas = {one.run.commit.sha + (one.run.commit.tree or "") for one in of_commit if one.run.commit}
    if not exact and not begun and len(shas) > 1:
        raise InputError(
            what=f"several commits match: {', '.join(sorted(shas)[:5])}.",
            where=name,
            fix="Give more letters of the hash.",
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
            what=f"no run measured this commit, {known[:10]}.",
            where=f"{name}, in {records}",
            fix="Name a measured commit, or use --records for another folder.",
        )
    raise InputError(
        what=f"No run, commit or file matches `{name}`.",
        where=str(records),
        fix="Name a run by its id or its file, or a measured commit by at least 4 letters of its"
        " hash, or by a tag or branch of this repository. Use --records for another folder.",
    )


# A shorter prefix would be ambiguous.
_LEAST_LETTERS = 4
# Resolves a name to the hash that git knows in the current folder, or None.
_Known: TypeAlias = Callable[[str], str | None]


def resolve_commits(
    before: str, after: str, series: Iterable[Series]
) -> tuple[str, str, str] | None:
    """Resolve two names to a project and two hashes; None if no project has either commit.

    Args:
        before: The first name, as typed: the start of a hash, or a name that the repository of
            the current folder knows.
        after: The second name.
        series: All imported series.

    Raises:
        InputError: A prefix is ambiguous, several projects have both commits, or one has only one.
    """
    # Cached because it starts git, whose answer is the same for every project.
    known = cache(commit_of)
    found, halves = [], []
    for project, commits in commits_of(series).items():
        ones, twos = (_named(name, commits, known) for name in (before, after))
        for name, several in ((before, ones), (after, twos)):
            if ones and twos and len(several) > 1:
                raise InputError(
                    what=f"several commits of {project} match: {', '.join(several[:5])}.",
                    where=name,
                    fix="Give more letters of the hash.",
                )
        if ones and twos:
            found.append((project, ones[0], twos[0]))
        elif ones or twos:
            halves.append((project, after if ones else before))
    if len(found) > 1:
        raise InputError(
            what=f"several projects have both commits: {', '.join(one[0] for one in found)}.",
            where=f"{before}, {after}",
            fix="Use --records to name a folder with one of them.",
        )
    if halves and not found:
        raise _unmeasured(*halves[0], known)
    return found[0] if found else None


def _named(name: str, commits: Iterable[str], known: _Known) -> list[str]:
    """The measured commits with that name; a hash takes precedence over a branch of that name."""
    begun = [sha for sha in commits if len(name) >= _LEAST_LETTERS and sha.startswith(name.lower())]
    if begun:
        return begun
    # The length of asv's hashes is configurable.
    here = known(name)
    return [sha for sha in commits if here and here.startswith(sha)]


def _unmeasured(project: str, name: str, known: _Known) -> InputError:
    here = known(name)
    if here is None:
        what = f"no measured commit of {project} matches."
        fix = f"Give at least {_LEAST_LETTERS} letters of its hash, or a tag or branch of this"
        fix += " repository."
    else:
        what = f"this commit, {here[:10]}, was not measured for {project}."
        fix = "Name a measured commit, or run this in a clone of the project."
    return InputError(what=what, where=name, fix=fix)
