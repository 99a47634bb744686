"""Which commits of an imported project are meant by the beginnings of their hashes."""

from __future__ import annotations

from collections.abc import Iterable

from corebound.errors import InputError
from corebound.model.series import Series
from corebound.report.view.commits_compared import commits_of

# A shorter one may be the beginning of anything.
_LEAST_LETTERS = 4


def meant_commits(before: str, after: str, series: Iterable[Series]) -> tuple[str, str, str] | None:
    """The project and the two hashes that are meant; None where no project has both.

    Args:
        before: The one, as typed.
        after: The other.
        series: All that were imported.

    Raises:
        InputError: several commits begin so, or several projects have both.
    """
    found = []
    for project, commits in commits_of(series).items():
        ones, twos = (
            [sha for sha in commits if len(name) >= _LEAST_LETTERS and sha.startswith(name.lower())]
            for name in (before, after)
        )
        for name, several in ((before, ones), (after, twos)):
            if ones and twos and len(several) > 1:
                raise InputError(
                    what=f"several commits of {project} begin so: {', '.join(several[:5])}.",
                    where=name,
                    mend="Give more of it.",
                )
        if ones and twos:
            found.append((project, ones[0], twos[0]))
    if len(found) > 1:
        raise InputError(
            what=f"several imported projects have both: {', '.join(one[0] for one in found)}.",
            where=f"{before}, {after}",
            mend="Name a folder of records with one of them, by --records.",
        )
    return found[0] if found else None
