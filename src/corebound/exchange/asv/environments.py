"""Match asv's names: which of them mean the same environment, machine or requirement."""

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
# NumPy 1.14 writes `[0. 1.]` where earlier versions wrote `[ 0.  1.]`.
_PADDED = re.compile(r"(?<=\[) +| +(?=\])|(?<=[\d.]) +(?= [-\d.])")
# The memory address of an object, which differs in every process.
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
    # Keys can collide, because values contain commas and equal signs of their own.
    return tuple(_apart(cells))


def _values(values: Sequence[str]) -> list[str]:
    """Strip Python-specific notation from values, unless that would make two of them equal."""
    bare = [label(_bare(value)) for value in values]
    if len(set(bare)) == len(bare):
        return bare
    return _apart([label(value) for value in values])


def _apart(texts: Sequence[str]) -> list[str]:
    """Append its index to each text that occurs more than once."""
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
    """A text that can be displayed; shortened or repaired texts still differ from each other."""
    shown = clean(text)
    if shown == text:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{shown} #{digest[:6]}"


# Key: machine and name. Value: the first name that the environment had.
FirstNames = Mapping[tuple[str, str], str]


class Source(Struct, frozen=True, kw_only=True):
    """What is remembered of a result file after reading it.

    Attributes:
        digest: A hash of its content.
        host, environment: The names that series use.
        commit, date_ms, contents: As in `ResultFile`; 0 means that no date is known.
    """

    digest: str
    host: str
    environment: str
    commit: str
    date_ms: int
    contents: str | None


def source_of(file: ResultFile, digest: str) -> Source:
    """The entry to remember for a file with this hash."""
    return Source(
        digest=digest,
        host=host_of(file),
        environment=label(file.environment),
        commit=file.commit,
        date_ms=file.date_ms or 0,
        contents=file.contents,
    )


def host_of(file: ResultFile) -> str:
    """The machine's name in series."""
    return label(file.machine or "unnamed")


def first_names(sources: Iterable[Source]) -> FirstNames:
    """Map environments that were renamed over time to the name at their oldest commit.

    Names that were measured at the same commit belong to different environments, even if asv
    gives them the same content. So does a name that had more than one content.
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
    """Rename series to the first name of their environment; two series can then have one id."""
    endings: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    for (host, name), first in names.items():
        # A number follows the name if several combinations have the same notation.
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


# With fewer versions, each may belong to a single commit by chance.
_FEWEST_VERSIONS = 5


class Across(Struct, frozen=True, kw_only=True):
    """The user's choice of differences that do not split series.

    Attributes:
        machine: One name for all machines, if readers of the history treat them as one.
        under_test: Requirements that are what is measured, whatever their version.
    """

    machine: str | None = None
    under_test: tuple[str, ...] = ()


class Requirements:
    """Collects the requirements in a project's files."""

    def __init__(self) -> None:
        """Start without any file."""
        self._commits: dict[str, dict[str, set[str]]] = {}

    def add(self, file: ResultFile) -> None:
        """Add the requirements of a file."""
        for name, version in file.requirements.items():
            self._commits.setdefault(name, {}).setdefault(version, set()).add(file.commit)

    def check(self, across: Across, where: str) -> None:
        """Check that all requirements under test occur in the files.

        Args:
            across: The user's choice.
            where: The folder of the files.

        Raises:
            InputError: A requirement under test does not occur.
        """
        name = next((each for each in across.under_test if each not in self._commits), None)
        if name is None:
            return
        those = f"They require {', '.join(sorted(self._commits))}." if self._commits else None
        raise InputError(
            what=f"none of its files that was read has a requirement {name!r}.",
            where=where,
            fix=those or "They require nothing; leave --under-test out.",
        )

    def several_a_commit(self, across: Across, where: str) -> Iterator[Fault]:
        """Warn about commits measured with several versions of a requirement under test."""
        for name in across.under_test:
            commits = Counter(sha for own in self._commits[name].values() for sha in own)
            number = sum(times > 1 for times in commits.values())
            if number:
                yield Fault(
                    file=where,
                    line=None,
                    what=f"{number:,} of {len(commits):,} commits were measured with several"
                    f" versions of {name}, and of each commit one figure counts.",
                    fix="Leave --under-test out, or name a requirement that goes with commits.",
                )

    def one_a_commit(self) -> Sequence[str]:
        """The requirements with one version for each commit: they identify what is measured."""
        return [name for name, versions in sorted(self._commits.items()) if _one_each(versions)]


def _one_each(versions: Mapping[str, set[str]]) -> bool:
    """Whether each version belongs to one commit, and that commit has no other version."""
    several = [*versions.values()]
    commits = set[str]().union(*several)
    return _FEWEST_VERSIONS <= len(several) == len(commits) == sum(map(len, several))
