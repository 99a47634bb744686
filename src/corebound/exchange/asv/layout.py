"""Locate the configuration and the results of an asv project, and read its configuration."""

import importlib
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import InputError
from corebound.exchange.asv.results import hashes_in
from corebound.exchange.reading import Unreadable, clean, parse_json
from corebound.records import atomic_write
from corebound.records.validate import MOST_MARGIN
from corebound.text import web_address

CONFIGURATION = "asv.conf.json"
BENCHMARKS = "benchmarks.json"
# A file that `asv publish` writes beside a folder of graphs.
INDEX = "index.json"
CONFIGURATION_SUFFIX = ".conf.json"
# The name of a result file: the first eight digits of the commit, and the environment.
_RESULT_NAME = "????????-*.json"
NAME_A_FOLDER = f"Name the folder that {CONFIGURATION} is in, or that of asv's results."
# Where asv puts results, according to its templates over the years.
_RESULTS = ("results", ".asv/results")
# Folder names that do not name a project.
_UNNAMED_FOLDERS = ("results", ".asv")
# Hosting services that show a commit below these paths.
_FORGES = {"github.com": "commit", "codeberg.org": "commit", "gitlab.com": "-/commit"}
_REMOTE = re.compile(r"^(?:(?:https?|git|ssh)://)?(?:git@)?([a-z.]+)[/:]([\w./-]+?)(?:\.git)?/?$")


class AsvLayout(Struct, frozen=True, kw_only=True):
    """The locations and settings of an asv project.

    Attributes:
        name: The name given by the user or by asv.conf.json, else that of a folder.
        configuration: Its asv.conf.json, if there is one.
        repo: Its repository, if that is a folder on this host.
        thresholds: asv's `regressions_thresholds`: patterns of benchmarks, and the smallest
            relevant change in them.
        secondary: Patterns of benchmarks that are secondary.
        commit_url: The prefix that asv puts before a hash to show a commit; None if unknown.
        is_guessed: Whether the name is only that of a folder.
    """

    name: str
    results: Path
    configuration: Path | None = None
    repo: Path | None = None
    thresholds: Sequence[tuple[re.Pattern[str], float]] = ()
    secondary: Sequence[re.Pattern[str]] = ()
    commit_url: str | None = None
    is_guessed: bool = False


def find(path: Path) -> AsvLayout:
    """Find a project's results from its folder, its configuration or its results.

    Raises:
        InputError: The asv.conf.json is invalid, the folder is missing, or it has two projects.
    """
    file = path if path.is_file() else path / CONFIGURATION
    if file.is_file():
        return _configured(file)
    if not path.is_dir():
        raise InputError(what="no such folder.", where=str(path), fix=NAME_A_FOLDER)
    return _find_above(path) or _find_below(path)


def _find_above(path: Path) -> AsvLayout | None:
    """Find the project whose results, or those of one of its machines, are in this folder."""
    resolved = path.resolve()
    for folder in resolved.parents[:3]:
        file = folder / CONFIGURATION
        if not file.is_file():
            continue
        layout = _configured(file)
        if layout.results.resolve() == resolved:
            return layout
        if layout.results.resolve() == resolved.parent:
            return replace(layout, results=path)
    results = resolved.parent if is_machine_folder(path) else resolved
    # A user who names the results can read them whatever else is beside them.
    with suppress(InputError):
        if is_results(results) and (
            configured := _find_configuration_below(results.parent, results)
        ):
            return replace(configured, results=path)
    return None


def _find_configuration_below(folder: Path, results: Path) -> AsvLayout | None:
    """Find the one project with these results that is configured one folder down."""
    layouts = map(_configured, sorted(folder.glob(f"*/{CONFIGURATION}")))
    matching = [layout for layout in layouts if layout.results.resolve() == results.resolve()]
    return matching[0] if len(matching) == 1 else None


def _find_below(path: Path) -> AsvLayout:
    """Find the project whose results or configuration are somewhere below this folder."""
    candidates = filter(is_results, (path, *(path / name for name in _RESULTS)))
    # A machine's folder may be a stray copy; a folder with benchmarks.json is more complete.
    results = sorted(candidates, key=lambda folder: not has_benchmarks(folder))
    if results:
        return _find_configuration_below(path, results[0]) or _unconfigured(results[0])
    files = sorted(path.glob(f"*/{CONFIGURATION}"))
    if len(files) > 1:
        names = ", ".join(str(file.relative_to(path)) for file in files)
        raise InputError(
            what=f"it contains several projects: {names}.",
            where=str(path),
            fix="Name the folder of one project.",
        )
    return _configured(files[0]) if files else _unconfigured(path)


def _unconfigured(results: Path) -> AsvLayout:
    resolved = results.resolve()
    if is_machine_folder(results):
        resolved = resolved.parent
    names = (
        folder.name
        for folder in (resolved, *resolved.parents)
        if folder.name not in _UNNAMED_FOLDERS
    )
    return AsvLayout(name=clean(next(names, "")) or "asv", results=results, is_guessed=True)


def _configured(file: Path) -> AsvLayout:
    configuration = _configuration(file)
    folder = file.parent
    repo = configuration.get("repo")
    repository = folder / repo if isinstance(repo, str) and "://" not in repo else None
    try:
        results = _results(folder, configuration.get("results_dir"))
        is_repository = repository is not None and _is_repository(repository)
    except OSError as error:  # an impossible path
        raise _unreadable(file, f"its results_dir or its repo: {error.strerror}") from error
    return AsvLayout(
        name=clean(str(configuration.get("project") or folder.resolve().name)),
        results=results,
        configuration=file,
        repo=repository if is_repository else None,
        thresholds=_thresholds(configuration.get("regressions_thresholds"), file),
        secondary=_secondary(configuration.get("secondary_benchmarks"), file),
        commit_url=_commit_url(configuration.get("show_commit_url")) or commit_url_of(repo),
    )


def _results(folder: Path, configured: object) -> Path:
    """The configured folder or, if that does not exist, one of asv's default folders."""
    results = folder / str(configured or "results")
    if results.is_dir():
        return results
    parents = (folder, folder.resolve().parent) if _is_only_a_folder(folder) else (folder,)
    candidates = (top / name for top in parents for name in _RESULTS)
    return next(filter(is_results, candidates), results)


def _is_only_a_folder(folder: Path) -> bool:
    """Whether the files beside it appear to belong to the same project."""
    top = folder.resolve().parent
    if (folder / ".git").exists() or (top / CONFIGURATION).is_file():
        return False
    return all(file.parent.samefile(folder) for file in top.glob(f"*/{CONFIGURATION}"))


def _commit_url(url: object) -> str | None:
    """Accept only a web address; one with a `$` is an unfilled template."""
    address = web_address(url)
    return None if address is None or "$" in address else address


def commit_url_of(address: object) -> str | None:
    """The address that shows commits, if the repository's host is a known service."""
    remote = _REMOTE.match(address) if isinstance(address, str) else None
    if remote is None or remote.group(1) not in _FORGES:
        return None
    return f"https://{remote.group(1)}/{remote.group(2)}/{_FORGES[remote.group(1)]}/"


def _is_repository(folder: Path) -> bool:
    # a work tree or a bare repository
    return (folder / ".git").exists() or (folder / "objects").is_dir()


def _configuration(file: Path) -> Mapping[str, Any]:
    """Read asv.conf.json, which may contain comments; asv also accepts JSON 5."""
    try:
        data = atomic_write.read(file)
    except OSError as error:
        raise _unreadable(file, error.strerror or str(error)) from error
    try:
        configuration = parse_json(data)
    except Unreadable:
        # slow to import, and needed only for comments
        json5 = importlib.import_module("json5")
        try:
            configuration = json5.loads(data.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise _unreadable(file, str(error)) from None
    if not isinstance(configuration, dict):
        raise _unreadable(file, "the top level is not a JSON object")
    return configuration


def _unreadable(file: Path, reason: str) -> InputError:
    return InputError(
        what=f"not a valid asv configuration: {reason}.",
        where=str(file),
        fix="Fix the file, or name the folder of asv's results instead.",
    )


def _thresholds(entries: Any, file: Path) -> list[tuple[re.Pattern[str], float]]:
    thresholds = []
    try:
        for pattern, value in (entries or {}).items():
            thresholds.append((re.compile(pattern), float(value)))
    except (AttributeError, TypeError, ValueError, OverflowError, re.error) as error:
        raise _unreadable(file, f"its regressions_thresholds: {error}") from None
    for _, margin in thresholds:
        if not 0 < margin <= MOST_MARGIN:
            raise _unreadable(
                file, f"a threshold of {margin:g} is not between 0 and {MOST_MARGIN:g}"
            )
    return thresholds


def _secondary(entries: Any, file: Path) -> list[re.Pattern[str]]:
    """Corebound's own key, which asv ignores."""
    if not isinstance(entries, list | None):
        raise _unreadable(file, "its secondary_benchmarks are not a list of patterns")
    try:
        return [re.compile(pattern) for pattern in entries or ()]
    except (TypeError, re.error) as error:
        raise _unreadable(file, f"its secondary_benchmarks: {error}") from None


def is_published(folder: Path) -> bool:
    """Whether this is a folder written by `asv publish`, or a part of one."""
    resolved = folder.resolve()
    sites = (top.parent for top in (resolved, *resolved.parents) if top.name == "graphs")
    return any((top / INDEX).is_file() and has_graphs(top) for top in (resolved, *sites))


def configurations(folder: Path) -> tuple[Path, ...]:
    """List possible asv configurations of a folder, whatever their names, in order."""
    return tuple(sorted(folder.glob(f"*{CONFIGURATION_SUFFIX}")))


def has_graphs(folder: Path) -> bool:
    """Whether a folder holds the graphs of a published site."""
    # A machine may be called `graphs` too.
    graphs = folder / "graphs"
    return graphs.is_dir() and not (graphs / "machine.json").is_file()


def is_results(folder: Path) -> bool:
    """Whether a folder is an asv results folder."""
    return has_benchmarks(folder) or any(folder.glob("*/machine.json"))


def holds_results(folder: Path) -> bool:
    """Whether a folder recognisably holds asv results, without searching its subfolders further.

    The files that asv writes beside results may be missing. Then a result file is looked for
    by asv's naming scheme.
    """
    if is_results(folder) or is_machine_folder(folder):
        return True
    candidates = (file for depth in ("", "*/") for file in folder.glob(depth + _RESULT_NAME))
    return any(map(_names_a_commit, candidates))


def _names_a_commit(file: Path) -> bool:
    try:
        return bool(hashes_in(atomic_write.read(file)))
    except OSError:
        return False


def has_benchmarks(folder: Path) -> bool:
    """Whether a folder has a file that lists benchmarks."""
    return (folder / BENCHMARKS).is_file()


def benchmarks_file(results: Path) -> Path:
    """The path of the file that lists benchmarks; for a machine's folder, the one above it."""
    return (results.resolve().parent if is_machine_folder(results) else results) / BENCHMARKS


def is_machine_folder(folder: Path) -> bool:
    """Whether a folder holds the results of one machine."""
    if is_results(folder):
        return False
    has_machine_file = (folder / "machine.json").is_file()
    return has_machine_file or (folder.resolve().parent / BENCHMARKS).is_file()
