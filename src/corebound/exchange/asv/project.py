"""Read all results of an asv project, and report what cannot be read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from corebound.errors import Fault, HostError, InputError
from corebound.exchange.asv import environments, layout, reader
from corebound.exchange.asv.environments import Across, FirstNames, Requirements, Source, label
from corebound.exchange.asv.layout import CONFIGURATION, AsvLayout
from corebound.exchange.asv.reader import Progress, Unread
from corebound.exchange.asv.series import Project, SeriesBuilder
from corebound.exchange.history_import import deduplicate
from corebound.exchange.reading import Unreadable
from corebound.records import cache, history_files
from corebound.records.commits import origin, read_commits
from corebound.records.history import Series
from corebound.records.run_record import Commit

# The margin of benchmarks without a threshold in asv.conf.json: that of corebound's scenarios.
MARGIN = 0.02
_NO_DATE = "it does not tell its commit's date."
_DATED_BY = "Name the project's repository with --repo."

_NOTHING = Across()

# Called with a project and a hash of its settings; returns the files already read with these.
Before = Callable[[str, str], Mapping[str, Source]]


def _nothing_known(_project: str, _settings: str) -> Mapping[str, Source]:
    return {}


class Read(Struct, frozen=True, kw_only=True):
    """The result of reading a project.

    Attributes:
        project: The project's name.
        is_guessed: Whether the name is only that of a folder.
        series: By id.
        files: How many result files were read.
        unknown: How many commits the repository lacks; None without a repository.
        gone: Benchmarks that benchmarks.json lacks, if it has others, by their names in series.
        twice: How many files repeat the commit, machine and environment of another file.
        faults: What could not be read and was skipped.
        settings: A hash of everything besides the file that determines a point.
        sources: What is known of each file that need not be read again while it is unchanged.
        names: Renamed environments; the series already have the new names.
        one_a_commit: Requirements whose version differed at every commit that was read now.
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
    """Read all results of a project; report and skip damaged files.

    Args:
        path: Its folder, its asv.conf.json, or its results folder.
        name: A name to use instead of the project's own.
        repo: A clone of its repository, for the subjects of commits.
        progress: Called with the number of files read and the total.
        known: Called with the project and a hash of its settings; returns the files that need not
            be read again if their content is unchanged.
        across: Which differences do not split series.

    Raises:
        InputError: No result can be read, `repo` is not a repository, or a requirement under test
            does not occur.
    """
    place = layout.find(path)
    if place.is_guessed and not reader.holds_results(place.results):
        # A folder may have the results of many projects below it.
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
    """Reads a project's files one at a time, and collects what to report about them.

    Attributes:
        told: What is known of each readable file, whether it was read now or before.
        sources: The entries of files that need not be read again, by path.
        hashes: The commits of the files read now.
        requirements: The requirements of the files read now.
    """

    def __init__(self, project: Project, unread: Unread, *, needs_commits: bool) -> None:
        """Start with the files that were read before.

        Args:
            project: The project of the files.
            unread: Which files there are.
            needs_commits: Whether to read files again whose commit the repository lacks, as it
                may have the commit later.
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
        """How many of the files read now share commit, machine and environment with another."""
        return len(self.hashes) - len(self._places)

    def gather(
        self, gathered: SeriesBuilder, across: Across, progress: Progress, faults: list[Fault]
    ) -> None:
        """Pass on all files whose commit has a known date."""
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
    """The address that shows the commits of a clone, derived from its origin."""
    return None if repo is None else layout.at_forge(origin(repo))


def _commits(
    repo: Path | None, hashes: Iterable[str], faults: list[Fault], *, asked: bool
) -> Mapping[str, Commit] | None:
    """Look up commits in the repository; None without one, or if git cannot read it."""
    if repo is None:
        return None
    try:
        return read_commits(repo, hashes)
    except (InputError, HostError) as error:
        if asked:
            raise
        # The user did not name it; asv.conf.json did.
        faults.append(Fault(file=str(repo), line=None, what=error.what, fix=error.fix))
        return None


def _settings(place: AsvLayout, repo: Path | None, across: Across) -> str:
    """A hash of everything besides the file that determines a point."""
    told = [reader.about_of(place.results), place.configuration]
    contents = [file.read_bytes() if file and file.is_file() else b"" for file in told]
    said = [repr(repo and str(repo)), repr(across.machine), repr(across.under_test)]
    return cache.digest(*(each.encode() for each in said), *contents)


def _nothing(results: Path, faults: Sequence[Fault]) -> InputError:
    if reader.is_published(results):
        return InputError(
            what="these are pages of `asv publish`, and there are no results among them.",
            where=str(results),
            fix=f"Name the folder that they were made of: results_dir of {CONFIGURATION}.",
        )
    if faults:
        return InputError(
            what=f"none of its result files can be read. {faults[0].what}",
            where=faults[0].file,
            fix=faults[0].fix,
        )
    if configurations := reader.configurations(results):
        named = ", ".join(reader.name_of(file) for file in configurations)
        return InputError(
            what=f"there are no result files of asv, but a configuration: {named}.",
            where=str(results),
            fix="Name that file." if len(configurations) == 1 else "Name one of those files.",
        )
    return InputError(
        what="there are no result files of asv.",
        where=str(results),
        fix=layout.NAME_ONE,
    )


def cached_sources(records: Path, project: str, settings: str) -> Mapping[str, Source]:
    """The files whose points are already in the project's history, by path.

    Empty if the history has changed since those files were read.
    """
    history = _history(records, project)
    version = _version(settings, history)
    found = cache.load(dict[str, Source], records, _cache_name(project), version=version)
    return found or {} if history else {}


def keep_sources(records: Path, read: Read) -> None:
    """Store which files were read, once their points are in the project's history."""
    version = _version(read.settings, _history(records, read.project))
    cache.keep(dict(read.sources), records, _cache_name(read.project), version=version)


def _cache_name(project: str) -> str:
    return f"import-{cache.digest(project.encode())}"


def _version(settings: str, history: str) -> str:
    return cache.digest(cache.code("exchange", "records").encode(), (settings + history).encode())


def _history(records: Path, project: str) -> str:
    return history_files.sources([project], records).get(project, "")
