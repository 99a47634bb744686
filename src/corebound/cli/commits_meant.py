"""Resolve what the user typed to commits of an imported project: hashes or git's names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeAlias

from corebound.analysis.commit_comparison import commits_of
from corebound.errors import InputError
from corebound.records.history import Series
from corebound.workflow.resolve_refs import commit_of

# A shorter prefix would be ambiguous.
_LEAST_LETTERS = 4
# Resolves a name to the hash that git knows in the current folder, or None.
_Known: TypeAlias = Callable[[str], str | None]


def meant_commits(before: str, after: str, series: Iterable[Series]) -> tuple[str, str, str] | None:
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
                    what=f"several commits of {project} begin so: {', '.join(several[:5])}.",
                    where=name,
                    mend="Give more of it.",
                )
        if ones and twos:
            found.append((project, ones[0], twos[0]))
        elif ones or twos:
            halves.append((project, after if ones else before))
    if len(found) > 1:
        raise InputError(
            what=f"several imported projects have both: {', '.join(one[0] for one in found)}.",
            where=f"{before}, {after}",
            mend="Name a folder of records with one of them, by --records.",
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
        what = f"no commit of {project} that was measured begins so."
        mend = f"Name it by at least {_LEAST_LETTERS} letters of its hash, or by a tag or a branch "
        mend += "in the clone that has it."
    else:
        what = f"it is commit {here[:10]} here, which was not measured of {project}."
        mend = "Name one that was, or run this in the project's own clone."
    return InputError(what=what, where=name, mend=mend)
