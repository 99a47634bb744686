"""`corebound export` without a terminal: write recorded runs in the formats of other tools."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from enum import StrEnum
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Any

from msgspec import Struct

from corebound.analysis.history_csv import history_csv
from corebound.errors import Fault, InputError, encodable, report_os_errors
from corebound.exchange import openmetrics, pyperf, run_export
from corebound.exchange.asv import export as asv_export
from corebound.exchange.asv.layout import BENCHMARKS
from corebound.exchange.reading import Unreadable, parse_json
from corebound.exchange.run_export import (
    ExportedCell,
    at_its_commit,
    drop_iterations,
    exported_cells,
)
from corebound.records import atomic_write, jsonl
from corebound.records.jsonl import RECORDS
from corebound.workflow.run_index import drop_unreadable_scenarios, read_suite


class Format(StrEnum):
    """The supported formats."""

    ASV = "asv"
    PYPERF = "pyperf"
    BENCHER = "bencher"
    GITHUB = "github-action-benchmark"
    CSV = "csv"
    PARQUET = "parquet"
    OPENMETRICS = "openmetrics"
    HISTORY = "history"


# Other formats hold one state only, and would mix the results of two runs.
_HISTORY_FORMATS = (Format.ASV, Format.CSV, Format.PARQUET)
_SINGLE_RUN_FORMATS = {
    Format.PYPERF: pyperf.suite,
    Format.BENCHER: run_export.bencher,
    Format.GITHUB: run_export.github_action,
    Format.OPENMETRICS: openmetrics.openmetrics,
}


class Export(Struct, frozen=True, kw_only=True):
    """A file or folder in the format of another tool.

    Attributes:
        out: The file; for asv, the folder of its results.
        faults: What could not be read, or has no place in the format.
    """

    out: Path
    faults: tuple[Fault, ...]

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain data, as `corebound export --json` prints it."""
        return {"out": encodable(str(self.out)), "faults": [asdict(fault) for fault in self.faults]}


def export(
    file_format: str,
    out: str | PathLike[str],
    *,
    run: str | None = None,
    only: Sequence[str] | None = None,
    records: str | PathLike[str] = RECORDS,
) -> Export:
    """Write recorded runs or histories for other tools, as `corebound export` does.

    Args:
        file_format: `asv`, `pyperf`, `bencher`, `github-action-benchmark`, `csv`, `parquet`,
            `openmetrics` or `history`.
        out: The file to write; for asv, the folder of its results.
        run: The id of the run; None is the latest, or all for asv, CSV and Parquet. Not for
            `history`.
        only: For `history`: ids of series, or names of scenarios, benchmarks and projects, or shell
            patterns of names; None is all.
        records: The folder of records.

    Returns:
        The file, and what could not be read or has no place in the format; `document` is what
        `corebound export --json` prints.

    Raises:
        InputError: The format is unknown, an argument does not fit it, nothing can be exported, or
            a file cannot be written.
    """
    if file_format not in {*Format}:
        raise InputError(
            what=f"`{file_format}` is not a format.",
            where="corebound.export",
            fix=f"The formats are {', '.join(Format)}.",
        )
    format_, out, records = Format(file_format), Path(out), Path(records)
    option = "--run" if format_ is Format.HISTORY else "--only"
    if (run if format_ is Format.HISTORY else only) is not None:
        raise InputError(
            what=f"{format_} cannot be combined with this option.",
            where=option,
            fix=f"Leave out {option}.",
        )
    if format_ is Format.HISTORY:
        return Export(out=out, faults=_export_histories(out, records, only or ()))
    return Export(out=out, faults=_export_runs(format_, out, records, run))


def _export_runs(format_: Format, out: Path, records: Path, run: str | None) -> tuple[Fault, ...]:
    """Write the results of recorded runs; returns what was left out."""
    faults: list[Fault] = []
    files = _select_files(records, run, faults, all_runs=format_ in _HISTORY_FORMATS)
    cells = _cells(files, faults)
    if format_ is Format.ASV:
        _write_asv([drop_iterations(at_its_commit(cell)) for cell in cells], out, faults)
    elif format_ is Format.PARQUET:
        _write(out, run_export.as_parquet(cells, str(out)))
    elif format_ is Format.CSV:
        _write(out, run_export.as_csv(cells).encode())
    else:
        complete = _with_results(list(cells), out, faults)
        if format_ is Format.GITHUB:
            complete = _of_one_direction(complete, out, faults)
        _write(out, _SINGLE_RUN_FORMATS[format_](complete).encode())
    return tuple(faults)


def _export_histories(out: Path, records: Path, only: Sequence[str]) -> tuple[Fault, ...]:
    """Write every point of our own and imported series as CSV; returns what cannot be read."""
    suite = read_suite(records)
    selected = [
        series
        for series in suite.series
        if not only
        or series.id in only
        or any(
            fnmatchcase(name, pattern)
            for name in (series.scenario, series.project or "")
            for pattern in only
        )
    ]
    if not selected:
        raise InputError(
            what="no series has this name." if only else "no histories.",
            where=f"--only {' --only '.join(only)}" if only else str(records),
            fix="The columns `project` and `scenario` of an export without --only have the names."
            if only
            else "Measure with `corebound run`, or name another folder with --records.",
        )
    _write(out, history_csv(selected).encode())
    return suite.faults


def _select_files(
    records: Path, run_id: str | None, faults: list[Fault], *, all_runs: bool
) -> list[Path]:
    """Select record files, oldest first; the latest is the last that launched anything."""
    runs = jsonl.runs(records, faults)
    runs.sort(key=lambda entry: (entry[1].started_at, entry[1].id))
    files = [file for file, run in runs if run_id in {None, run.id}]
    if not files:
        raise InputError(
            what="no runs." if run_id is None else f"no run {run_id}.",
            where=str(records),
            fix="Measure with `corebound run`, or name another folder with --records.",
        )
    if all_runs or run_id is not None:
        return files
    return [next(filter(jsonl.has_launched, reversed(files)), files[-1])]


def _cells(files: Iterable[Path], faults: list[Fault]) -> Iterator[ExportedCell]:
    """Yield the cells of runs, with one run in memory at a time."""
    for file in files:
        stored = jsonl.read(file)
        run, unreadable = drop_unreadable_scenarios(stored)
        faults += unreadable
        yield from exported_cells(run, stored.launches)


def _skipped(where: Path, what: str, fix: str) -> Fault:
    return Fault(file=str(where), line=None, what=what, fix=fix)


def _with_results(cells: list[ExportedCell], out: Path, faults: list[Fault]) -> list[ExportedCell]:
    """Select the cells that have a result, and report the others."""
    complete = [cell for cell in cells if cell.is_measured]
    if not complete:
        raise InputError(
            what="no cell of the run has a result.",
            where=str(out),
            fix="See its launches with `corebound report`, or name another run with --run.",
        )
    faults += [
        _skipped(out, f"skipped {cell.cell.id}: {cell.trouble}.", "See its records.")
        for cell in cells
        if not cell.is_measured
    ]
    return complete


def _of_one_direction(
    cells: list[ExportedCell], out: Path, faults: list[Fault]
) -> list[ExportedCell]:
    """Select the cells of which more is better if all are so, else the others."""
    less = [
        cell for cell in cells if cell.cell.metric is None or cell.cell.metric.better == "lower"
    ]
    if less:
        faults += [
            _skipped(
                out,
                f"skipped {cell.cell.id}: unlike in others, more is better in it.",
                "A file has one direction: measure and export this scenario in a run of its own.",
            )
            for cell in cells
            if cell not in less
        ]
    return less or cells


def _write_asv(cells: list[ExportedCell], out: Path, faults: list[Fault]) -> None:
    of_commits = [cell for cell in cells if cell.run.commit is not None and not _is_dirty(cell)]
    runs = {cell.run.id: cell.run for cell in cells}
    if without := [run.id for run in runs.values() if run.commit is None]:
        noun = "run" if len(without) == 1 else "runs"
        faults.append(
            _skipped(
                out,
                f"skipped {noun} {', '.join(without)}: no commit.",
                "asv orders results by commit. Measure in the working tree of a repository.",
            )
        )
    faults += [
        _skipped(
            out,
            f"skipped run {run}: it measured uncommitted changes.",
            "Commit them and measure again: asv would show these results as the commit's.",
        )
        for run in dict.fromkeys(cell.run.id for cell in cells if _is_dirty(cell))
    ]
    if not of_commits:
        raise InputError(
            what="no run measured a commit without changes, and asv orders results by commit.",
            where=str(out),
            fix="Commit your changes and measure again, or export csv.",
        )
    for name, text in asv_export.documents(of_commits, _benchmarks(out)).items():
        _write(out / name, text.encode())


def _is_dirty(cell: ExportedCell) -> bool:
    """Whether the measured code has changes beyond the commit."""
    commit = cell.run.commit_of(cell.cell.environment)
    return commit is not None and commit.dirty


def _benchmarks(out: Path) -> dict[str, Any]:
    """Read the existing benchmarks.json, so that asv's own benchmarks are kept."""
    file = out / BENCHMARKS
    try:
        content = parse_json(atomic_write.read(file))
    except FileNotFoundError:
        return {}
    except (OSError, Unreadable) as error:
        content = error
    if not isinstance(content, dict):
        raise InputError(
            what="not a benchmarks.json of asv.",
            where=str(file),
            fix="Delete it, or name another folder with --out.",
        )
    return content


def _write(file: Path, data: bytes) -> None:
    """Write a file atomically."""
    with report_os_errors("cannot be written", where=file, fix="Name another path with --out."):
        atomic_write.put(file, data)
