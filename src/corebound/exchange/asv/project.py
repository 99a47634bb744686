"""Read all results of an asv project, and report what cannot be read."""

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import Fault, HostError, InputError
from corebound.exchange.asv import environments, layout, reader
from corebound.exchange.asv.environments import FirstNames, MergeOptions, Requirements, Source
from corebound.exchange.asv.layout import CONFIGURATION, AsvLayout
from corebound.exchange.asv.reader import Unread
from corebound.exchange.asv.series import Project, SeriesBuilder
from corebound.exchange.points import deduplicate
from corebound.exchange.reading import Progress, Unreadable, label
from corebound.records import atomic_write, cache, history_files
from corebound.records.cache import CacheFile
from corebound.records.commits import origin, read_commits
from corebound.records.history import Series
from corebound.records.run_record import Commit

_NO_DATE = "its commit has no date."
_NO_DATE_FIX = "Name the project's repository with --repo."

_NO_MERGING = MergeOptions()


class AsvResults(Struct, frozen=True, kw_only=True):
    """The results of a project.

    Attributes:
        is_guessed: Whether the name is only that of a folder.
        series: By id.
        files: How many result files were read.
        unknown: How many commits the repository lacks; None without a repository.
        removed: Benchmarks that benchmarks.json lacks, if it has others, by their names in series.
        duplicates: How many files repeat the commit, machine and environment of another file.
        faults: What could not be read and was skipped.
        settings: A hash of everything besides the file that determines a point.
        sources: What is known of each file that need not be read again while it is unchanged.
        names: Renamed environments; the series already have the new names.
        commit_specific: Requirements whose version differed at every commit that was read now.
    """

    project: str
    is_guessed: bool
    series: tuple[Series, ...]
    files: int
    unknown: int | None
    removed: frozenset[str]
    duplicates: int
    faults: tuple[Fault, ...]
    settings: str
    sources: Mapping[str, Source]
    names: FirstNames
    commit_specific: Sequence[str]


def read(
    path: Path,
    *,
    name: str | None,
    repo: Path | None,
    progress: Progress,
    records: Path | None = None,
    merge_options: MergeOptions = _NO_MERGING,
) -> AsvResults:
    """Read all results of a project; report and skip damaged files.

    Args:
        path: Its folder, its asv.conf.json, or its results folder.
        name: A name to use instead of the project's own.
        repo: A clone of its repository, for the subjects of commits.
        progress: Called with the number of files read and the total.
        records: A folder of records; files whose points are in its history of the project are not
            read again while they are unchanged.
        merge_options: Which differences do not split series.

    Raises:
        InputError: No result can be read, `repo` is not a repository, or a requirement under test
            does not occur.
    """
    project_layout = layout.find(path)
    if project_layout.is_guessed and not layout.holds_results(project_layout.results):
        # A folder may have the results of many projects below it.
        raise _no_results(project_layout.results, ())
    if name:
        project_layout = replace(project_layout, name=name, is_guessed=False)
    warnings: list[Fault] = []
    faults: list[Fault] = []
    repository = repo or project_layout.repo
    settings = _settings(project_layout, repository, merge_options)
    unchanged = _cached_sources(records, project_layout.name, settings) if records else {}
    unread = reader.unread(project_layout.results, unchanged, faults)
    commits = _commits(repository, unread.commits, warnings, is_required=repo is not None)
    if project_layout.commit_url is None and repository is not None and commits is not None:
        commit_url = layout.commit_url_of(origin(repository))
        project_layout = replace(project_layout, commit_url=commit_url)
    project = Project(
        layout=project_layout,
        benchmarks=reader.read_benchmarks(project_layout.results, warnings),
        commits=commits or {},
    )
    files = _Files(project, unread, needs_commits=repository is not None)
    builder = SeriesBuilder(project)
    files.add_to(builder, merge_options, progress, faults)
    names = environments.first_names(files.entries)
    if not files.entries:
        raise _no_results(project_layout.results, faults)
    if files.hashes:
        files.requirements.check(merge_options, str(project_layout.results))
        faults += files.requirements.warn_ambiguous(merge_options, str(project_layout.results))
    gone = builder.benchmarks - project.benchmarks.keys() if project.benchmarks else set[str]()
    series = builder.series()
    renamed = deduplicate(environments.rename_environments(series, names))
    return AsvResults(
        project=project_layout.name,
        is_guessed=project_layout.is_guessed,
        series=tuple(sorted(renamed, key=lambda item: item.id)),
        files=len(files.entries),
        unknown=None if commits is None else len({*files.hashes} - commits.keys()),
        removed=frozenset(map(label, gone)),
        duplicates=files.duplicates,
        faults=(*warnings, *faults),
        settings=settings,
        sources=files.sources,
        names=names,
        commit_specific=files.requirements.commit_specific(),
    )


class _Files:
    """Reads a project's files one at a time, and collects what to report about them.

    Attributes:
        entries: What is known of each readable file, whether it was read now or before.
        sources: The entries of files that need not be read again, by path.
        hashes: The commits of the files read now.
        requirements: The requirements of the files read now.
    """

    def __init__(self, project: Project, unread: Unread, *, needs_commits: bool) -> None:
        """Start with the files that were read before.

        Args:
            unread: Which files there are.
            needs_commits: Whether to read files again whose commit the repository lacks, as it
                may have the commit later.
        """
        self._project = project
        self._unread = unread
        self._needs_commits = needs_commits
        self._keys: set[tuple[str, str, str]] = set()
        self.sources = dict(unread.unchanged)
        self.entries = [*self.sources.values()]
        self.hashes: list[str] = []
        self.requirements = Requirements()

    @property
    def duplicates(self) -> int:
        """How many of the files read now share commit, machine and environment with another."""
        return len(self.hashes) - len(self._keys)

    def add_to(
        self,
        builder: SeriesBuilder,
        merge_options: MergeOptions,
        progress: Progress,
        faults: list[Fault],
    ) -> None:
        """Pass on all files whose commit has a known date."""
        commits = self._project.commits
        for source, digest, file in reader.read_each(self._unread, merge_options, progress, faults):
            if file.date_ms is None and file.commit not in commits:
                faults.append(reader.fault_of(source, Unreadable(_NO_DATE, _NO_DATE_FIX)))
                continue
            damaged = builder.add(file)
            if damaged:
                faults.append(reader.damage_fault(source, file, damaged))
                if len(damaged) == len(file.results):
                    continue
            entry = environments.source_of(file, digest)
            self.entries.append(entry)
            self.hashes.append(file.commit)
            self.requirements.add(file)
            if not damaged and not (self._needs_commits and file.commit not in commits):
                self.sources[reader.name_of(source)] = entry
            self._keys.add((file.machine or "", file.environment, file.commit))


def _commits(
    repo: Path | None, hashes: Iterable[str], faults: list[Fault], *, is_required: bool
) -> Mapping[str, Commit] | None:
    """Look up commits in the repository; None without one, or if git cannot read it."""
    if repo is None:
        return None
    try:
        return read_commits(repo, hashes)
    except (InputError, HostError) as error:
        if is_required:
            raise
        # The user did not name it; asv.conf.json did.
        faults.append(Fault(file=str(repo), line=None, what=error.what, fix=error.fix))
        return None


def _settings(project_layout: AsvLayout, repo: Path | None, merge_options: MergeOptions) -> str:
    """A hash of everything besides the file that determines a point."""
    files = [layout.benchmarks_file(project_layout.results), project_layout.configuration]
    contents = [atomic_write.read(file) if file and file.is_file() else b"" for file in files]
    options = [
        repr(repo and str(repo)),
        repr(merge_options.machine),
        repr(merge_options.under_test),
    ]
    return cache.digest(*(option.encode() for option in options), *contents)


def _no_results(results: Path, faults: Sequence[Fault]) -> InputError:
    if layout.is_published(results):
        return InputError(
            what="this folder contains pages of `asv publish`, but no results.",
            where=str(results),
            fix=f"Name the folder of results: results_dir in {CONFIGURATION}.",
        )
    if faults:
        return InputError(
            what=f"no result file can be read. {faults[0].what}",
            where=faults[0].file,
            fix=faults[0].fix,
        )
    if configurations := layout.configurations(results):
        names = ", ".join(reader.name_of(file) for file in configurations)
        return InputError(
            what=f"there are no result files of asv, only a configuration: {names}.",
            where=str(results),
            fix="Name that file." if len(configurations) == 1 else "Name one of those files.",
        )
    return InputError(
        what="there are no result files of asv.", where=str(results), fix=layout.NAME_A_FOLDER
    )


def _cached_sources(records: Path, project: str, settings: str) -> Mapping[str, Source]:
    """The files whose points are already in the project's history, by path.

    Empty if the history has changed since those files were read.
    """
    try:
        return _sources_file(records, project, settings).load() or {}
    except OSError:
        return {}


def keep_sources(records: Path, read: AsvResults) -> None:
    """Store which files were read, once their points are in the project's history."""
    with contextlib.suppress(OSError):
        _sources_file(records, read.project, read.settings).keep(dict(read.sources))


def _sources_file(records: Path, project: str, settings: str) -> CacheFile[dict[str, Source]]:
    """The cache of the files that a project's stored history was read from."""
    history = cache.file_digest(history_files.file_of(project, records))
    parts = (cache.code("exchange", "records"), settings, history)
    return CacheFile(
        dict[str, Source],
        records,
        f"import-{cache.digest(project.encode())}",
        version=cache.digest(*(part.encode() for part in parts)),
    )
