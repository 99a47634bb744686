"""Which commits of an imported project are meant: by hashes, or by what git calls them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TypeAlias

from corebound.analysis.commit_comparison import commits_of
from corebound.errors import InputError
from corebound.records.history import Series
from corebound.workflow.resolve_refs import commit_of

# A shorter one may be the beginning of anything.
_LEAST_LETTERS = 4
# Told a name, the hash of what git knows by it here, or None.
_Known: TypeAlias = Callable[[str], str | None]


def meant_commits(before: str, after: str, series: Iterable[Series]) -> tuple[str, str, str] | None:
    """The project and the two hashes that are meant; None where no project has any of them.

    Args:
        before: The one, as typed: the beginning of its hash, or what the current folder's
            repository knows it by.
        after: The other.
        series: All that were imported.

    Raises:
        InputError: several commits begin so, several projects have both, or one has one only.
    """
    # It starts git, which says the same of a name whatever project is looked at.
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
    """The measured commits of that name; a hash goes before a branch that is called like one."""
    begun = [sha for sha in commits if len(name) >= _LEAST_LETTERS and sha.startswith(name.lower())]
    if begun:
        return begun
    # asv keeps as many letters of a hash as it is configured to.
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
