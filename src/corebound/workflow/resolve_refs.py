"""Resolve the names of runs and commits that the user typed."""

import shlex
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TypeAlias

from corebound import git
from corebound.analysis.commit_comparison import commits_of
from corebound.errors import InputError
from corebound.records import jsonl
from corebound.records.history import Series
from corebound.records.jsonl import StoredRun
from corebound.records.run_record import Commit


def resolve_revision(name: str, folder: Path | None = None) -> str | None:
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


# Resolves a name to the hash that git knows in the current folder, or None.
_Resolver: TypeAlias = Callable[[str], str | None]


def resolve_runs(
    before: str, after: str, runs: Sequence[StoredRun], records: Path
) -> tuple[StoredRun, StoredRun]:
    """Resolve two names to two runs; for commits, the latest of each, on one host if possible.

    Args:
        before: The first name, as typed.
        after: The second name.
        records: The folder of records, for messages.

    Raises:
        InputError: A name matches no run, or matches several.
    """
    before_runs, after_runs = (
        matching_runs(before, runs, records),
        matching_runs(after, runs, records),
    )
    pairs = [
        (first, second)
        for first in before_runs
        for second in after_runs
        if first.run.host.id == second.run.host.id and first.run.id != second.run.id
    ]
    if not pairs:
        return before_runs[-1], after_runs[-1]
    return max(pairs, key=lambda pair: (pair[1].run.started_at, pair[0].run.started_at))


def resolve_measured_commits(
    before: str, after: str, runs: Sequence[StoredRun]
) -> tuple[StoredRun, Commit, Commit] | None:
    """The latest run that measured both commits, interleaved; None if there is none.

    Args:
        before: The first name, as typed.
        after: The second name.
    """
    if any(Path(name).is_file() for name in (before, after)):
        return None
    resolve = cache(resolve_revision)
    for stored in sorted(runs, key=lambda stored: stored.run.started_at, reverse=True):
        commits = [lock.commit for lock in stored.run.environments if lock.commit is not None]
        if stored.run.commit is not None or len(commits) < 2:
            continue
        first, second = (
            next((commit for commit in commits if _is_named(commit, name, resolve)), None)
            for name in (before, after)
        )
        if first is not None and second is not None and first != second:
            return stored, first, second
    return None


def _is_named(commit: Commit, name: str, resolve: _Resolver) -> bool:
    return _commit_matches(commit, name) or (commit.tree is None and commit.sha == resolve(name))


def matching_runs(name: str, runs: Sequence[StoredRun], records: Path) -> list[StoredRun]:
    """List every run that a name can refer to, oldest first.

    Raises:
        InputError: No run matches, or several run ids begin with the name.
    """
    if Path(name).is_file():
        return [StoredRun(file=Path(name), run=jsonl.read_run(Path(name)))]
    exact = [each for each in runs if name in (each.run.id, each.file.stem, each.file.name)]
    by_prefix = [stored for stored in runs if name and stored.run.id.startswith(name)]
    by_commit = [
        stored
        for stored in runs
        if stored.run.commit is not None and _commit_matches(stored.run.commit, name)
    ]
    if not exact and len({stored.run.id for stored in by_prefix}) > 1:
        raise InputError(
            what=f"several runs match: {', '.join(stored.run.id for stored in by_prefix[:5])}.",
            where=name,
            fix="Give more letters of the id.",
        )
    shas = {
        stored.run.commit.sha + (stored.run.commit.tree or "")
        for stored in by_commit
        if stored.run.commit
    }
    if not exact and not by_prefix and len(shas) > 1:
        raise InputError(
            what=f"several commits match: {', '.join(sorted(shas)[:5])}.",
            where=name,
            fix="Give more letters of the hash.",
        )
    matches = exact or by_prefix or by_commit or _runs_of_revision(name, runs, records)
    return sorted(matches, key=lambda stored: (stored.run.started_at, stored.run.id))


def _commit_matches(commit: Commit, name: str) -> bool:
    """Whether a commit's hash starts with this; a plain hash never matches a dirty tree."""
    if len(name) < 4:
        return False
    if commit.tree is not None:
        return "+" in name and f"{commit.sha[:10]}+dirty.{commit.tree}".startswith(name.lower())
    return commit.sha.startswith(name.lower())


def _runs_of_revision(name: str, runs: Sequence[StoredRun], records: Path) -> list[StoredRun]:
    """List every run of the commit that git knows by that name."""
    sha = resolve_revision(name)
    matches = [
        stored
        for stored in runs
        if stored.run.commit and stored.run.commit.sha == sha and stored.run.commit.tree is None
    ]
    if matches:
        return matches
    if sha is not None:
        raise InputError(
            what=f"no run measured this commit, {sha[:10]}.",
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
_MIN_PREFIX = 4


def resolve_commits(
    before: str, after: str, series: Iterable[Series], *, project: str | None = None
) -> tuple[str, str, str] | None:
    """Resolve two names to a project and two hashes; None if no project has either commit.

    Args:
        before: The first name, as typed: the start of a hash, or a name that the repository of
            the current folder knows.
        after: The second name.
        project: The project to look in; None looks in all.

    Raises:
        InputError: A prefix is ambiguous, several projects have both commits, one has only one, or
            there is no such project.
    """
    # Cached because it starts git, whose answer is the same for every project.
    resolve = cache(resolve_revision)
    commits_by_project = commits_of(series)
    if project is not None and project not in commits_by_project:
        imported = ", ".join(sorted(commits_by_project))
        raise InputError(
            what=f"no project `{project}` is imported.",
            where="--project",
            fix=f"Name one of {imported}." if imported else "Import its results first.",
        )
    projects, incomplete = [], []
    for each, commits in commits_by_project.items():
        if project not in {None, each}:
            continue
        before_shas, after_shas = (
            _matching_commits(name, commits, resolve) for name in (before, after)
        )
        for name, shas in ((before, before_shas), (after, after_shas)):
            if before_shas and after_shas and len(shas) > 1:
                raise InputError(
                    what=f"several commits of {each} match: {', '.join(shas[:5])}.",
                    where=name,
                    fix="Give more letters of the hash.",
                )
        if before_shas and after_shas:
            projects.append((each, before_shas[0], after_shas[0]))
        elif before_shas or after_shas:
            incomplete.append((each, after if before_shas else before))
    if len(projects) > 1:
        raise InputError(
            what=f"several projects have both: {', '.join(match[0] for match in projects)}.",
            where=f"{before}, {after}",
            fix=f"Name one of them, such as `corebound compare {before} {after}"
            f" --project {shlex.quote(projects[0][0])}`.",
        )
    if incomplete and not projects:
        raise _unmeasured_error(*incomplete[0], resolve)
    return projects[0] if projects else None


def _matching_commits(name: str, commits: Iterable[str], resolve: _Resolver) -> list[str]:
    """The measured commits with that name; a hash takes precedence over a branch of that name."""
    matches = [sha for sha in commits if len(name) >= _MIN_PREFIX and sha.startswith(name.lower())]
    if matches:
        return matches
    # The length of asv's hashes is configurable.
    resolved = resolve(name)
    return [sha for sha in commits if resolved and resolved.startswith(sha)]


def _unmeasured_error(project: str, name: str, resolve: _Resolver) -> InputError:
    sha = resolve(name)
    if sha is None:
        what = f"no measured commit of {project} matches."
        fix = f"Give at least {_MIN_PREFIX} letters of its hash, or a tag or branch of this"
        fix += " repository."
    else:
        what = f"this commit, {sha[:10]}, was not measured for {project}."
        fix = "Name a measured commit, or run this in a clone of the project."
    return InputError(what=what, where=name, fix=fix)
