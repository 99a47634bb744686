"""An asv project's directory: its configuration, its trees of results, and what is wrong there."""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corebound.errors import Fault, InputError
from corebound.exchange import asv_results, asv_series, asv_tree
from corebound.exchange.asv_results import ResultFile
from corebound.exchange.asv_series import Project
from corebound.exchange.asv_tree import Progress
from corebound.exchange.commits import described
from corebound.exchange.reading import Unreadable, clean
from corebound.model.series import Series
from corebound.store import cache

CONFIGURATION = "asv.conf.json"
# Of benchmarks that asv.conf.json has no threshold for: that of our own scenarios.
MARGIN = 0.02
_NO_DATE = "it does not tell its commit's date."
_DATED_BY = "Name the project's repository with --repo."

# Told a project and a hash of its settings: hashes of the files that were read with these.
Before = Callable[[str, str], Mapping[str, str]]


def _nothing_known(_project: str, _settings: str) -> Mapping[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an asv project keeps what.

    Attributes:
        name: What the project is called.
        results: The folder of its results.
        repo: Its repository, where that is a folder of this host.
        thresholds: As in `Project`.
        commit_url: As in `Project`.
    """

    name: str
    results: Path
    repo: Path | None
    thresholds: Sequence[tuple[re.Pattern[str], float]]
    commit_url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a project's results came to.

    Attributes:
        project: Its name.
        series: By id.
        files: How many result files were read.
        unknown: How many commits the repository does not have; None without one.
        faults: What could not be read and was passed over.
        settings: A hash of what else a point follows from, besides its file.
        sources: A hash of each file that need not be read again as long as it stays so.
    """

    project: str
    series: tuple[Series, ...]
    files: int
    unknown: int | None
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
) -> Read:
    """Read all results of a project; damaged files are named and passed over.

    Args:
        path: Its folder, its asv.conf.json, or its folder of results.
        name: What to call it instead.
        repo: A clone of its repository, for the subjects of commits.
        progress: Called with how many files are read, of how many.
        known: Told the project and a hash of its settings, says which files with which
            content need not be read again.

    Raises:
        InputError: there is no result that can be read.
    """
    place = find(path)
    faults: list[Fault] = []
    where = repo or place.repo
    settings = _settings(path, place, where)
    before = known(name or place.name, settings)
    unread = asv_tree.unread(place.results, before, faults)
    project = Project(
        name=name or place.name,
        benchmarks=asv_tree.benchmarks_of(place.results, faults),
        commits=described(where, unread.commits) if where else {},
        thresholds=place.thresholds,
        margin=MARGIN,
        commit_url=place.commit_url,
    )
    sources = dict(unread.unchanged)
    hashes: list[str] = []

    def dated() -> Iterator[ResultFile]:
        for source, digest, file in asv_tree.read_each(unread, progress, faults):
            if file.date_ms is None and file.commit not in project.commits:
                faults.append(asv_tree.fault_of(source, Unreadable(_NO_DATE, _DATED_BY)))
                continue
            hashes.append(file.commit)
            # A commit that the repository lacks today it may have tomorrow.
            if not where or file.commit in project.commits:
                sources[str(source)] = digest
            yield file

    series = asv_series.series_of(project, dated())
    if not hashes and not unread.unchanged:
        raise _nothing(place.results, faults)
    return Read(
        project=project.name,
        series=series,
        files=len(hashes) + len(unread.unchanged),
        unknown=len(set(hashes) - project.commits.keys()) if where else None,
        faults=tuple(faults),
        settings=settings,
        sources=sources,
    )


def find(path: Path) -> Place:
    """Where a project keeps its results.

    Raises:
        InputError: its asv.conf.json is none, or there is no such folder.
    """
    file = path if path.is_file() else path / CONFIGURATION
    if file.is_file():
        return _configured(file)
    if not path.is_dir():
        raise InputError(
            what="there is no such folder.",
            where=str(path),
            mend=f"Name the folder that {CONFIGURATION} is in, or that of asv's results.",
        )
    above = path.resolve().parent / CONFIGURATION
    if above.is_file() and (place := _configured(above)).results.resolve() == path.resolve():
        return place
    name = path.resolve().parent.name if path.name == "results" else path.resolve().name
    return Place(name=clean(name) or "asv", results=path, repo=None, thresholds=())


def _configured(file: Path) -> Place:
    told = _configuration(file)
    folder = file.parent
    repo = told.get("repo")
    beside = folder / repo if isinstance(repo, str) and "://" not in repo else None
    return Place(
        name=clean(str(told.get("project") or folder.resolve().name)),
        results=folder / str(told.get("results_dir") or "results"),
        repo=beside if beside is not None and _is_repository(beside) else None,
        thresholds=_thresholds(told.get("regressions_thresholds"), file),
        commit_url=_commit_url(told.get("show_commit_url")),
    )


def _commit_url(told: object) -> str | None:
    """An address of the web; anything else is no link that a page may have."""
    if not isinstance(told, str) or not told.startswith(("https://", "http://")):
        return None
    return told if told.isprintable() and " " not in told else None


def _is_repository(folder: Path) -> bool:
    # A work tree, or a bare one.
    return (folder / ".git").exists() or (folder / "objects").is_dir()


def _configuration(file: Path) -> Mapping[str, Any]:
    """asv.conf.json, which may have comments; asv reads it as JSON 5 too."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise _unreadable(file, error.strerror or str(error)) from error
    try:
        told = asv_results.document(data)
    except Unreadable:
        # Slow to import, and needed for comments only.
        json5 = importlib.import_module("json5")
        try:
            told = json5.loads(data.decode())
        except (ValueError, RecursionError) as error:
            raise _unreadable(file, str(error)) from None
    if not isinstance(told, dict):
        raise _unreadable(file, "it holds no object")
    return told


def _unreadable(file: Path, why: str) -> InputError:
    return InputError(
        what=f"this configuration of asv cannot be read: {why}.",
        where=str(file),
        mend="Mend it, or name the folder of asv's results instead.",
    )


def _thresholds(told: Any, file: Path) -> list[tuple[re.Pattern[str], float]]:
    found = []
    try:
        for pattern, value in (told or {}).items():
            found.append((re.compile(pattern), float(value)))
    except (AttributeError, TypeError, ValueError, re.error) as error:
        raise _unreadable(file, f"its regressions_thresholds: {error}") from None
    for _, margin in found:
        if not 0 < margin < math.inf:
            raise _unreadable(file, f"a threshold of {margin} is not above 0")
    return found


def _settings(path: Path, place: Place, repo: Path | None) -> str:
    """A hash of all that a point follows from besides its file."""
    told = [place.results / "benchmarks.json"]
    told += [path, path / CONFIGURATION, path.resolve().parent / CONFIGURATION]
    contents = [file.read_bytes() for file in told if file.is_file()]
    return cache.digest(str(repo).encode(), *contents)


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
        mend=f"Name the folder that {CONFIGURATION} is in, or that of asv's results.",
    )
