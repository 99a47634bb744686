"""All that an asv project measured, and what could not be read of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from corebound.errors import Fault, InputError
from corebound.exchange import asv_place, asv_series, asv_tree
from corebound.exchange.asv_place import Place
from corebound.exchange.asv_results import ResultFile
from corebound.exchange.asv_series import Project
from corebound.exchange.asv_tree import Progress
from corebound.exchange.commits import described
from corebound.exchange.reading import Unreadable
from corebound.model.run import Commit
from corebound.model.series import Series
from corebound.store import cache

# Of benchmarks that asv.conf.json has no threshold for: that of our own scenarios.
MARGIN = 0.02
_NO_DATE = "it does not tell its commit's date."
_DATED_BY = "Name the project's repository with --repo."

# Told a project and a hash of its settings: hashes of the files that were read with these.
Before = Callable[[str, str], Mapping[str, str]]


def _nothing_known(_project: str, _settings: str) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a project's results came to.

    Attributes:
        project: Its name.
        series: By id.
        files: How many result files were read.
        unknown: How many commits the repository does not have; None without one.
        gone: How many benchmarks benchmarks.json does not have, where it has others.
        twice: How many files are of a commit, machine and environment of which others were read.
        faults: What could not be read and was passed over.
        settings: A hash of what else a point follows from, besides its file.
        sources: A hash of each file that need not be read again as long as it stays so.
    """

    project: str
    series: tuple[Series, ...]
    files: int
    unknown: int | None
    gone: int
    twice: int
    faults: tuple[Fault, ...]
    settings: str
    sources: Mapping[str, str]


def read(
    path: Path,
    *,
    name: str | None,
    repo: Path | None,
    progress: Progress,
    known: Before = _nothing_known,
    machine: str | None = None,
) -> Read:
    """Read all results of a project; damaged files are named and passed over.

    Args:
        path: Its folder, its asv.conf.json, or its folder of results.
        name: What to call it instead.
        repo: A clone of its repository, for the subjects of commits.
        progress: Called with how many files are read, of how many.
        known: Told the project and a hash of its settings, says which files with which
            content need not be read again.
        machine: What to call all machines, where they are one for whoever reads the history.

    Raises:
        InputError: there is no result that can be read, or `repo` is no repository.
    """
    place = asv_place.find(path)
    about: list[Fault] = []
    faults: list[Fault] = []
    where = repo or place.repo
    settings = _settings(place, where, machine)
    before = known(name or place.name, settings)
    unread = asv_tree.unread(place.results, before, faults)
    commits = _commits(where, unread.commits, about, asked=repo is not None)
    project = Project(
        name=name or place.name,
        benchmarks=asv_tree.benchmarks_of(place.results, about),
        commits=commits or {},
        thresholds=place.thresholds,
        margin=MARGIN,
        commit_url=place.commit_url,
    )
    sources = dict(unread.unchanged)
    hashes: list[str] = []
    gone: set[str] = set()
    places: set[tuple[str, ...]] = set()

    def dated() -> Iterator[ResultFile]:
        for source, digest, file in asv_tree.read_each(unread, progress, faults):
            if file.date_ms is None and file.commit not in project.commits:
                faults.append(asv_tree.fault_of(source, Unreadable(_NO_DATE, _DATED_BY)))
                continue
            hashes.append(file.commit)
            gone.update(one.benchmark for one in file.outcomes)
            # A commit that the repository lacks today it may have tomorrow.
            if (where is None or file.commit in project.commits) and not file.damaged:
                sources[asv_tree.name_of(source)] = digest
            named = replace(file, machine=machine) if machine else file
            places.add((named.machine or "", named.environment, named.commit))
            yield named

    series = asv_series.series_of(project, dated())
    if not hashes and not unread.unchanged:
        raise _nothing(place.results, faults)
    return Read(
        project=project.name,
        series=series,
        files=len(hashes) + len(unread.unchanged),
        unknown=None if commits is None else len(set(hashes) - commits.keys()),
        gone=len(gone - project.benchmarks.keys()) if project.benchmarks else 0,
        twice=len(hashes) - len(places),
        faults=(*about, *faults),
        settings=settings,
        sources=sources,
    )


def _commits(
    repo: Path | None, hashes: Iterable[str], faults: list[Fault], *, asked: bool
) -> Mapping[str, Commit] | None:
    """What the repository says of commits; None without one, or where git cannot read it."""
    if repo is None:
        return None
    try:
        return described(repo, hashes)
    except InputError as error:
        if asked:
            raise
        # It is only what stands in the place that asv.conf.json names.
        faults.append(Fault(file=str(repo), line=None, what=error.what, mend=error.mend))
        return None


def _settings(place: Place, repo: Path | None, machine: str | None) -> str:
    """A hash of all that a point follows from besides its file."""
    told = [asv_tree.about_of(place.results), place.configuration]
    contents = [file.read_bytes() if file and file.is_file() else b"" for file in told]
    return cache.digest(str(repo).encode(), (machine or "").encode(), *contents)


def _nothing(results: Path, faults: Sequence[Fault]) -> InputError:
    if faults:
        return InputError(
            what=f"none of its result files can be read. {faults[0].what}",
            where=faults[0].file,
            mend=faults[0].mend,
        )
    return InputError(
        what="there are no result files of asv.",
        where=str(results),
        mend=asv_place.NAME_ONE,
    )
