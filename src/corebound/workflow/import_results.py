"""Import result files of other tools as histories, without a terminal."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from corebound.errors import Fault, HostError, InputError
from corebound.exchange import history_import, result_files
from corebound.exchange.history_import import ImportSummary
from corebound.exchange.importers import IMPORTERS, Tool
from corebound.exchange.reading import Progress, Unreadable, clean, label, no_progress
from corebound.exchange.result_files import Columns, Context, ResultFiles
from corebound.records.commits import read_commits
from corebound.records.history import HistoryPoints, Series
from corebound.records.jsonl import RECORDS
from corebound.records.run_record import Commit
from corebound.workflow.resolve_refs import resolve_revision


class ImportedResults(Struct, frozen=True, kw_only=True):
    """What was read, and the history with it."""

    project: str
    source: ResultFiles
    history: ImportSummary

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What could not be read, and which series begin because a unit changed."""
        return (*self.source.faults, *self.history.unit_changes)

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain data, as `--json` prints it."""
        return {
            "project": self.project,
            "files": self.source.files,
            **self.history.document,
            "faults": [asdict(fault) for fault in self.faults],
        }


def import_results(
    tool: Tool,
    *files: str | PathLike[str],
    project: str | None = None,
    host: str | None = None,
    commit: str | None = None,
    date: str | None = None,
    columns: Columns | None = None,
    records: str | PathLike[str] = RECORDS,
    progress: Progress = no_progress,
) -> ImportedResults:
    """Import result files of another tool, as `corebound import` does.

    Each file becomes a point in the history of its benchmarks.

    Args:
        tool: The tool that wrote them, by its name in `corebound import`.
        files: Files with results, or folders of them; of Criterion, `target/criterion`.
        project: The project's name; None takes the tool's.
        host: The name of the machine that measured; None takes the files' own.
        commit: The commit that was measured, as git knows it in the current folder; None takes the
            files' own.
        date: When it was measured, ISO 8601; None takes the files' own, or that of their last
            change.
        columns: For `csv` and `json`, what the columns are.
        records: The folder of records.
        progress: Called with the number of files read and the total.

    Returns:
        The project and its history; `document` is what the command prints with `--json`.

    Raises:
        InputError: The tool is unknown, no file can be read, or the commit or the date is invalid.
    """
    context = Context(
        project=label(project or tool),
        host=host,
        commit=_commit(commit) if commit else None,
        at=_date(date) if date else None,
        columns=columns,
    )
    paths = [Path(file) for file in files]
    importer = IMPORTERS[tool]
    if not importer.reads_folders:
        paths = [file for path in paths for file in _files_at(path, importer.files)]
    source = result_files.read_all(paths, importer.read, context, progress)
    source = structs.replace(source, series=_with_subjects(source.series))
    history = history_import.keep(context.project, source.series, Path(records))
    return ImportedResults(project=context.project, source=source, history=history)


def _files_at(path: Path, pattern: str) -> Sequence[Path]:
    """The file itself, or the files below a folder whose names match."""
    if not path.is_dir():
        return (path,)
    files = sorted(path.rglob(pattern))
    if not files:
        raise InputError(
            what=f"there is no file {pattern} in this folder.",
            where=str(path),
            fix="Name the files that the tool has written.",
        )
    return files


def _commit(name: str) -> Commit:
    sha = resolve_revision(name)
    commit = read_commits(Path(), [sha]).get(sha) if sha else None
    if commit is None:
        raise InputError(
            what=f"git knows no commit `{name}` in this folder.",
            where="--commit",
            fix="Run this in a clone of the project, and name a hash, a tag or a branch.",
        )
    return commit


def _with_subjects(all_series: Sequence[Series]) -> tuple[Series, ...]:
    """The series, with what the repository of the current folder says about their commits."""
    moments = (moment for series in all_series for moment in series.points.moments)
    unknown = {each.commit.sha for each in moments if each.commit and not each.commit.subject}
    # Nobody has said that this folder is a clone of the project.
    with contextlib.suppress(InputError, HostError):
        known = read_commits(Path(), unknown) if unknown else {}
        return tuple(_with_commits(series, known) for series in all_series)
    return tuple(all_series)


def _with_commits(series: Series, known: Mapping[str, Commit]) -> Series:
    moments = series.points.moments
    if not any(moment.commit and moment.commit.sha in known for moment in moments):
        return series
    points = []
    for point in series.points:
        own, commit = point.commit, known.get(point.commit.sha) if point.commit else None
        own = structs.replace(commit, dirty=own.dirty) if own and commit else own
        points.append(structs.replace(point, commit=own))
    return structs.replace(series, points=HistoryPoints.of(points))


def _date(text: str) -> str:
    try:
        return result_files.utc(text)
    except Unreadable:
        raise InputError(
            what=f"`{clean(text)}` is not a time.",
            where="--date",
            fix="Write it like 2026-01-02T03:04:05+01:00.",
        ) from None
