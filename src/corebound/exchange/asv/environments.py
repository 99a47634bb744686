"""Which names of asv are names of one environment, machine or requirement."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import Fault, InputError
from corebound.exchange.asv.results import ResultFile
from corebound.exchange.reading import clean
from corebound.records.history import Series

_QUOTED = re.compile(r"""^u?'(.+)'$|^<class '(.+)'>$""")
# NumPy 2 writes `np.float64(0.1)` where NumPy 1 wrote `0.1`.
_SCALAR = re.compile(r"^(?:np|numpy)\.(?:bool|str|bytes|u?int|float|complex)_?\d*\((.+)\)$")
# NumPy 1.14 writes `[0. 1.]` where those before wrote `[ 0.  1.]`.
_PADDED = re.compile(r"(?<=\[) +| +(?=\])|(?<=[\d.]) +(?= [-\d.])")
# Where an object lay in memory, which is elsewhere in every process.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


@lru_cache(maxsize=4096)
def cells_of(
    params: tuple[tuple[str, ...], ...], names: tuple[str, ...], environment: str
) -> tuple[str, ...]:
    """The key of each combination of parameters, in asv's order."""
    if len(names) != len(params):
        names = tuple(f"param{number}" for number, _ in enumerate(params, start=1))
    axes = [
        [f"{label(name)}={value}" for value in _values(values)]
        for name, values in zip(names, params, strict=True)
    ]
    where = f"environment={label(environment)}"
    cells = [",".join((*words, where)) for words in itertools.product(*axes)]
    # Values have commas and equal signs of their own.
    return tuple(_apart(cells))


def _values(values: Sequence[str]) -> list[str]:
    """Values without what only Python writes, unless two of them would then be the same."""
    bare = [label(_bare(value)) for value in values]
    if len(set(bare)) == len(bare):
        return bare
    return _apart([label(value) for value in values])


def _apart(texts: Sequence[str]) -> list[str]:
    """Texts with their place behind those that stand there more than once."""
    twice = Counter(texts)
    return [f"{text} ({index})" if twice[text] > 1 else text for index, text in enumerate(texts)]


def _bare(value: str) -> str:
    value = _ADDRESS.sub("", value) if value.startswith("<") else value
    scalar = _SCALAR.match(value)
    value = scalar.group(1) if scalar else value
    value = _PADDED.sub("", value) if "[" in value else value
    found = _QUOTED.match(value)
    return (found.group(1) or found.group(2)) if found else value


def label(text: str) -> str:
    """A text that can be shown; those that were cut or mended still differ from one another."""
    shown = clean(text)
    if shown == text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{shown} #{digest[:6]}"


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


# A few versions may each have been measured at one commit by chance.
_FEWEST_VERSIONS = 5


class Across(Struct, frozen=True, kw_only=True):
    """What a user says that series go on across.

    Attributes:
        machine: What to call all machines, where they are one for whoever reads the history.
        under_test: Requirements that are what is measured, in all their versions.
    """

    machine: str | None = None
    under_test: tuple[str, ...] = ()


class Requirements:
    """What the files of a project required, taken one after another."""

    def __init__(self) -> None:
        """Begin with no file."""
        self._commits: dict[str, dict[str, set[str]]] = {}

    def add(self, file: ResultFile) -> None:
        """Take what a file says."""
        for name, version in file.requirements.items():
            self._commits.setdefault(name, {}).setdefault(version, set()).add(file.commit)

    def check(self, across: Across, where: str) -> None:
        """Have those under test be some of those there are.

        Args:
            across: What is said of it.
            where: The folder of the files.

        Raises:
            InputError: one is none of them.
        """
        name = next((each for each in across.under_test if each not in self._commits), None)
        if name is None:
            return
        those = f"They require {', '.join(sorted(self._commits))}." if self._commits else None
        raise InputError(
            what=f"none of its files that was read has a requirement {name!r}.",
            where=where,
            mend=those or "They require nothing; leave --under-test out.",
        )

    def several_a_commit(self, across: Across, where: str) -> Iterator[Fault]:
        """That commits were measured with several versions of what is under test."""
        for name in across.under_test:
            commits = Counter(sha for own in self._commits[name].values() for sha in own)
            number = sum(times > 1 for times in commits.values())
            if number:
                yield Fault(
                    file=where,
                    line=None,
                    what=f"{number:,} of {len(commits):,} commits were measured with several"
                    f" versions of {name}, and of each commit one figure counts.",
                    mend="Leave --under-test out, or name a requirement that goes with commits.",
                )

    def one_a_commit(self) -> Sequence[str]:
        """Those of which every version is that of one commit: they name what is measured."""
        return [name for name, versions in sorted(self._commits.items()) if _one_each(versions)]


def _one_each(versions: Mapping[str, set[str]]) -> bool:
    """Whether every version is that of a commit which has no other."""
    several = [*versions.values()]
    commits = set[str]().union(*several)
    return _FEWEST_VERSIONS <= len(several) == len(commits) == sum(map(len, several))
