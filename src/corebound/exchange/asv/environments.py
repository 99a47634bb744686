"""Match asv's names: which of them mean the same environment, machine or requirement."""

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import Fault, InputError
from corebound.exchange.asv.results import ResultFile
from corebound.exchange.reading import label
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
    environment_axis = f"environment={label(environment)}"
    cells = [",".join((*words, environment_axis)) for words in itertools.product(*axes)]
    # Keys can collide, because values contain commas and equal signs of their own.
    return tuple(_make_distinct(cells))


def _values(values: Sequence[str]) -> list[str]:
    """Strip Python-specific notation from values, unless that would make two of them equal."""
    stripped = [label(_strip_notation(value)) for value in values]
    if len(set(stripped)) == len(stripped):
        return stripped
    return _make_distinct([label(value) for value in values])


def _make_distinct(texts: Sequence[str]) -> list[str]:
    """Append its index to each text that occurs more than once."""
    counts = Counter(texts)
    return [f"{text} ({index})" if counts[text] > 1 else text for index, text in enumerate(texts)]


def _strip_notation(value: str) -> str:
    value = _ADDRESS.sub("", value) if value.startswith("<") else value
    scalar = _SCALAR.match(value)
    value = scalar.group(1) if scalar else value
    value = _PADDED.sub("", value) if "[" in value else value
    quoted = _QUOTED.match(value)
    return (quoted.group(1) or quoted.group(2)) if quoted else value


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
    for source in sources:
        by_name.setdefault((source.host, source.environment), []).append(source)
    by_content: dict[tuple[str, str], dict[str, list[Source]]] = {}
    for (host, name), entries in by_name.items():
        contents = {source.contents for source in entries}
        content = contents.pop() if len(contents) == 1 else None
        if content is not None:
            by_content.setdefault((host, content), {})[name] = entries
    return {
        (host, name): first
        for (host, _), by_environment in by_content.items()
        if not _share_a_commit(by_environment.values())
        for first in (
            min(
                by_environment,
                key=lambda candidate: (
                    min(source.date_ms for source in by_environment[candidate]),
                    candidate,
                ),
            ),
        )
        for name in by_environment
        if name != first
    }


def _share_a_commit(groups: Collection[Collection[Source]]) -> bool:
    commits = [{source.commit for source in sources} for sources in groups]
    return len(set[str]().union(*commits)) < sum(map(len, commits))


def rename_environments(series: Iterable[Series], names: FirstNames) -> Iterator[Series]:
    """Rename series to the first name of their environment; two series can then have one id."""
    endings: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    for (host, name), first_name in names.items():
        # A number follows the name if several combinations have the same notation.
        ending = re.compile(rf"(^|,)environment={re.escape(name)}( \(\d+\))?$")
        endings.setdefault(host, []).append((ending, first_name))
    for item in series:
        cell = item.cell
        for ending, first_name in endings.get(item.host, ()):
            match = ending.search(item.cell)
            if match:
                cell = f"{cell[: match.end(1)]}environment={first_name}{match.group(2) or ''}"
                break
        yield item if cell == item.cell else replace(item, cell=cell)


# With fewer versions, each may belong to a single commit by chance.
_FEWEST_VERSIONS = 5


class MergeOptions(Struct, frozen=True, kw_only=True):
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

    def check(self, merge_options: MergeOptions, where: str) -> None:
        """Check that all requirements under test occur in the files.

        Args:
            merge_options: The user's choice.

        Raises:
            InputError: A requirement under test does not occur.
        """
        name = next(
            (
                requirement
                for requirement in merge_options.under_test
                if requirement not in self._commits
            ),
            None,
        )
        if name is None:
            return
        requirements = (
            f"They require {', '.join(sorted(self._commits))}." if self._commits else None
        )
        raise InputError(
            what=f"no result file has the requirement {name!r}.",
            where=where,
            fix=requirements or "The files have no requirements: omit --under-test.",
        )

    def warn_ambiguous(self, merge_options: MergeOptions, where: str) -> Iterator[Fault]:
        """Warn about commits measured with several versions of a requirement under test."""
        for name in merge_options.under_test:
            commits = Counter(sha for shas in self._commits[name].values() for sha in shas)
            affected = sum(number_of_versions > 1 for number_of_versions in commits.values())
            if affected:
                yield Fault(
                    file=where,
                    line=None,
                    what=f"{affected:,} of {len(commits):,} commits were measured with several"
                    f" versions of {name}; one result of each commit counts.",
                    fix="Omit --under-test, or name a requirement whose version depends on the"
                    " commit.",
                )

    def commit_specific(self) -> Sequence[str]:
        """The requirements with one version for each commit: they identify what is measured."""
        return [
            name
            for name, versions in sorted(self._commits.items())
            if _identifies_commits(versions)
        ]


def _identifies_commits(versions: Mapping[str, set[str]]) -> bool:
    """Whether each version belongs to one commit, and that commit has no other version."""
    commit_sets = [*versions.values()]
    commits = set[str]().union(*commit_sets)
    return _FEWEST_VERSIONS <= len(commit_sets) == len(commits) == sum(map(len, commit_sets))
