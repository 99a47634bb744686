"""Which names are names of one environment: asv tells them apart by what is in them.

Source: asv 0.6, `asv/commands/publish.py`: graphs go by the parameters of results, which are
those of the machine, Python, what it has to have, and variables; no name is among them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from corebound.exchange.asv_cells import label
from corebound.exchange.asv_results import ResultFile
from corebound.model.series import Series

# By machine and name: the name that an environment had first.
FirstNames = Mapping[tuple[str, str], str]


class Source(Struct, frozen=True, kw_only=True):
    """What is remembered of a result file once it was read.

    Attributes:
        digest: A hash of what it held.
        host, environment: As series have them.
        commit, date_ms, contents: As in `ResultFile`; 0 is a date that is not told.
    """

    digest: str
    host: str
    environment: str
    commit: str
    date_ms: int
    contents: str | None


def source_of(file: ResultFile, digest: str) -> Source:
    """What to remember of a file with this hash."""
    return Source(
        digest=digest,
        host=host_of(file),
        environment=label(file.environment),
        commit=file.commit,
        date_ms=file.date_ms or 0,
        contents=file.contents,
    )


def host_of(file: ResultFile) -> str:
    """The machine, as its series have it."""
    return label(file.machine or "unnamed")


def first_names(sources: Iterable[Source]) -> FirstNames:
    """Of environments that have several names, one after another, that of the oldest commit.

    Those that a commit was measured under side by side are of several environments, whatever
    asv makes of them; so is a name under which more than one was.
    """
    by_name: dict[tuple[str, str], list[Source]] = {}
    for one in sources:
        by_name.setdefault((one.host, one.environment), []).append(one)
    alike: dict[tuple[str, str], dict[str, list[Source]]] = {}
    for (host, name), own in by_name.items():
        contents = {one.contents for one in own}
        only = contents.pop() if len(contents) == 1 else None
        if only is not None:
            alike.setdefault((host, only), {})[name] = own
    return {
        (host, name): first
        for (host, _), named in alike.items()
        if not _side_by_side(named.values())
        for first in (min(named, key=lambda each: (min(_dates(named[each])), each)),)
        for name in named
        if name != first
    }


def _dates(sources: Iterable[Source]) -> Iterator[int]:
    return (one.date_ms for one in sources)


def _side_by_side(several: Collection[Collection[Source]]) -> bool:
    commits = [{one.commit for one in own} for own in several]
    return len(set[str]().union(*commits)) < sum(map(len, commits))


def under_first_names(series: Iterable[Series], names: FirstNames) -> Iterator[Series]:
    """Series whose environment got another name under its first; there may be two of one id."""
    endings: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    for (host, name), first in names.items():
        # Behind it stands a number where combinations are written alike.
        ending = re.compile(rf"(^|,)environment={re.escape(name)}( \(\d+\))?$")
        endings.setdefault(host, []).append((ending, first))
    for one in series:
        cell = one.cell
        for ending, first in endings.get(one.host, ()):
            found = ending.search(one.cell)
            if found:
                cell = f"{cell[: found.end(1)]}environment={first}{found.group(2) or ''}"
                break
        yield one if cell == one.cell else replace(one, cell=cell)
