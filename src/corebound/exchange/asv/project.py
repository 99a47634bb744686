"""All that an asv project measured, and what could not be read of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from corebound.errors import Fault, InputError
from corebound.exchange.asv import environments, layout, reader
from corebound.exchange.asv.environments import Across, FirstNames, Requirements, Source, label
from corebound.exchange.asv.layout import CONFIGURATION, AsvLayout
from corebound.exchange.asv.reader import Progress, Unread
from corebound.exchange.asv.series import Project, SeriesBuilder
from corebound.exchange.git_history import described, origin
from corebound.exchange.history_import import deduplicate
from corebound.exchange.reading import Unreadable
from corebound.records import cache
from corebound.records.history import Series
from corebound.records.run_record import Commit

# Of benchmarks that asv.conf.json has no threshold for: that of our own scenarios.
MARGIN = 0.02
_NO_DATE = "it does not tell its commit's date."
_DATED_BY = "Name the project's repository with --repo."

_NOTHING = Across()

# Told a project and a hash of its settings: what is known of files that were read with these.
Before = Callable[[str, str], Mapping[str, Source]]


def _nothing_known(_project: str, _settings: str) -> Mapping[str, Source]:
    return {}


class Read(Struct, frozen=True, kw_only=True):
    """What a project's results came to.

    Attributes:
        project: Its name.
        is_guessed: The name is that of a folder only.
        series: By id.
        files: How many result files were read.
        unknown: How many commits the repository does not have; None without one.
        gone: The benchmarks that benchmarks.json does not have, where it has others, as
            series have them.
        twice: How many files are of a commit, machine and environment of which others were read.
        faults: What could not be read and was passed over.
        settings: A hash of what else a point follows from, besides its file.
        sources: What is known of each file that need not be read again as long as it stays so.
        names: Of environments that got another name, as the series have it already.
        one_a_commit: What was required in another version at every commit that was read now.
    """

    project: str
    is_guessed: bool
    series: tuple[Series, ...]
    files: int
    unknown: int | None
    gone: frozenset[str]
    twice: int
    faults: tuple[Fault, ...]
    settings: str
    sources: Mapping[str, Source]
    names: FirstNames
    one_a_commit: Sequence[str]


def read(
    path: Path,
    *,
    name: str | None,
    repo: Path | None,
    progress: Progress,
    known: Before = _nothing_known,
    across: Across = _NOTHING,
) -> Read:
    """Read all results of a project; damaged files are named and passed over.

    Args:
        path: Its folder, its asv.conf.json, or its folder of results.
        name: What to call it instead.
        repo: A clone of its repository, for the subjects of commits.
        progress: Called with how many files are read, of how many.
        known: Told the project and a hash of its settings, says which files with which
            content need not be read again.
        across: What series go on across.

    Raises:
        InputError: there is no result that can be read, `repo` is no repository, or what
            is under test is no requirement.
    """
    place = layout.find(path)
    if place.is_guessed and not reader.holds_results(place.results):
        # Below any folder there may be results of many projects.
        raise _nothing(place.results, ())
    about: list[Fault] = []
    faults: list[Fault] = []
    where = repo or place.repo
    settings = _settings(place, where, across)
    before = known(name or place.name, settings)
    unread = reader.unread(place.results, before, faults)
    commits = _commits(where, unread.commits, about, asked=repo is not None)
    project = Project(
        name=name or place.name,
        benchmarks=reader.benchmarks_of(place.results, about),
        commits=commits or {},
        thresholds=place.thresholds,
        margin=MARGIN,
        commit_url=place.commit_url or (None if commits is None else _shown_at(where)),
    )
    files = _Files(project, unread, needs_commits=where is not None)
    gathered = SeriesBuilder(project)
    files.gather(gathered, across, progress, faults)
    names = environments.first_names(files.told)
    if not files.told:
        raise _nothing(place.results, faults)
    if files.hashes:
        files.requirements.check(across, str(place.results))
        faults += files.requirements.several_a_commit(across, str(place.results))
    gone = gathered.benchmarks - project.benchmarks.keys() if project.benchmarks else set[str]()
    found = gathered.series()
    renamed = deduplicate(environments.under_first_names(found, names))
    return Read(
        project=project.name,
        is_guessed=name is None and place.is_guessed,
        series=tuple(sorted(renamed, key=lambda one: one.id)),
        files=len(files.told),
        unknown=None if commits is None else len({*files.hashes} - commits.keys()),
        gone=frozenset(map(label, gone)),
        twice=files.twice,
        faults=(*about, *faults),
        settings=settings,
        sources=files.sources,
        names=names,
        one_a_commit=files.requirements.one_a_commit(),
    )


class _Files:
    """A project's files as they are read, one after another, and what is to be told of them.

    Attributes:
        told: What is known of each that can be read, whether it was read now or before.
        sources: That of those that need not be read again, by path.
        hashes: The commits of those that were read now.
        requirements: Theirs.
    """

    def __init__(self, project: Project, unread: Unread, *, needs_commits: bool) -> None:
        """Begin with those that were read before.

        Args:
            project: Whose they are.
            unread: Which there are.
            needs_commits: A commit that the repository lacks today it may have tomorrow.
        """
        self._project = project
        self._unread = unread
        self._needs_commits = needs_commits
        self._places: set[tuple[str, str, str]] = set()
        self.sources = dict(unread.unchanged)
        self.told = [*self.sources.values()]
        self.hashes: list[str] = []
        self.requirements = Requirements()

    @property
    def twice(self) -> int:
        """How many of those that were read now are of what another is of too."""
        return len(self.hashes) - len(self._places)

    def gather(
        self, gathered: SeriesBuilder, across: Across, progress: Progress, faults: list[Fault]
    ) -> None:
        """Have all taken that are of a commit whose date is known."""
        commits = self._project.commits
        for source, digest, file in reader.read_each(self._unread, across, progress, faults):
            if file.date_ms is None and file.commit not in commits:
                faults.append(reader.fault_of(source, Unreadable(_NO_DATE, _DATED_BY)))
                continue
            damaged = gathered.add(file)
            if damaged:
                faults.append(reader.damage(source, file, damaged))
                if len(damaged) == len(file.results):
                    continue
            told = environments.source_of(file, digest)
            self.told.append(told)
            self.hashes.append(file.commit)
            self.requirements.add(file)
            if not damaged and not (self._needs_commits and file.commit not in commits):
                self.sources[reader.name_of(source)] = told
            self._places.add((file.machine or "", file.environment, file.commit))


def _shown_at(repo: Path | None) -> str | None:
    """Where commits of a clone are shown: at the forge that it came from."""
    return None if repo is None else layout.at_forge(origin(repo))


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


def _settings(place: AsvLayout, repo: Path | None, across: Across) -> str:
    """A hash of all that a point follows from besides its file."""
    told = [reader.about_of(place.results), place.configuration]
    contents = [file.read_bytes() if file and file.is_file() else b"" for file in told]
    said = [repr(repo and str(repo)), repr(across.machine), repr(across.under_test)]
    return cache.digest(*(each.encode() for each in said), *contents)


def _nothing(results: Path, faults: Sequence[Fault]) -> InputError:
    if reader.is_published(results):
        return InputError(
            what="these are pages of `asv publish`, and there are no results among them.",
            where=str(results),
            mend=f"Name the folder that they were made of: results_dir of {CONFIGURATION}.",
        )
    if faults:
        return InputError(
            what=f"none of its result files can be read. {faults[0].what}",
            where=faults[0].file,
            mend=faults[0].mend,
        )
    if configurations := reader.configurations(results):
        named = ", ".join(reader.name_of(file) for file in configurations)
        return InputError(
            what=f"there are no result files of asv, but a configuration: {named}.",
            where=str(results),
            mend="Name that file." if len(configurations) == 1 else "Name one of those files.",
        )
    return InputError(
        what="there are no result files of asv.",
        where=str(results),
        mend=layout.NAME_ONE,
    )
