"""`corebound export`: write records in the formats of other tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from corebound.cli.options import Records
from corebound.cli.output.terminal import Console
from corebound.errors import Fault, InputError, encodable, report_os_errors
from corebound.exchange import pyperf, run_export
from corebound.exchange.asv import export as asv_export
from corebound.exchange.reading import Unreadable, document
from corebound.exchange.run_export import CellOfRun, cells_of, without_iterations
from corebound.records import atomic_write, jsonl
from corebound.records.jsonl import RECORDS


class Format(StrEnum):
    """The supported formats."""

    ASV = "asv"
    PYPERF = "pyperf"
    BENCHER = "bencher"
    GITHUB = "github-action-benchmark"
    CSV = "csv"
    PARQUET = "parquet"


# Other formats hold one state only, and would mix the results of two runs.
_HISTORIES = (Format.ASV, Format.CSV, Format.PARQUET)
_ONE_RUN = {
    Format.PYPERF: pyperf.suite,
    Format.BENCHER: run_export.bencher,
    Format.GITHUB: run_export.github_action,
}


def export(
    format_: Annotated[Format, typer.Argument(metavar="FORMAT", help=", ".join(Format))],
    *,
    out: Annotated[
        Path, typer.Option("--out", help="The file to write; of asv, the folder of its results.")
    ],
    run: Annotated[
        str | None,
        typer.Option(
            "--run", help="The run's id. Without it: the latest, or all for asv, csv, parquet."
        ),
    ] = None,
    records: Records = RECORDS,
) -> None:
    """Write records for other tools, or as a table.

    For asv, pyperf, Bencher and github-action-benchmark.
    """
    faults: list[Fault] = []
    cells = _cells(_chosen(records, run, faults, every=format_ in _HISTORIES), faults)
    if format_ is Format.ASV:
        _write_asv([without_iterations(one) for one in cells], out, faults)
    elif format_ is Format.PARQUET:
        _write(out, run_export.as_parquet(cells, str(out)))
    elif format_ is Format.CSV:
        _write(out, run_export.as_csv(cells).encode())
    else:
        _write(out, _ONE_RUN[format_](_with_figures(list(cells), out, faults)).encode())
    warnings = Console(stderr=True, soft_wrap=True)
    for fault in faults:
        warnings.print(Text(f"warning: {fault}"))
    typer.echo(encodable(str(out)))


def _chosen(records: Path, wanted: str | None, faults: list[Fault], *, every: bool) -> list[Path]:
    """Select record files, oldest first; only the first line of the others is read."""
    runs = jsonl.runs(records, faults)
    runs.sort(key=lambda one: (one[1].started_at, one[1].id))
    files = [file for file, run in runs if wanted in {None, run.id}]
    if not files:
        raise InputError(
            what="there is no run." if wanted is None else f"there is no run {wanted}.",
            where=str(records),
            fix="Measure with `corebound run`, or name another folder with --records.",
        )
    return files if every or wanted is not None else files[-1:]


def _cells(files: Iterable[Path], faults: list[Fault]) -> Iterator[CellOfRun]:
    """Yield the cells of runs, with one run in memory at a time."""
    for file in files:
        one = jsonl.read(file)
        cells, unreadable = cells_of(one.run, one.launches, str(file))
        faults += (*one.faults, *unreadable)
        yield from cells


def _left_out(where: Path, what: str, fix: str) -> Fault:
    return Fault(file=str(where), line=None, what=what, fix=fix)


def _with_figures(cells: list[CellOfRun], out: Path, faults: list[Fault]) -> list[CellOfRun]:
    """Select the cells that have a result, and report the others."""
    good = [one for one in cells if one.summary.median_ns is not None]
    if not good:
        raise InputError(
            what="no cell of the run has a figure.",
            where=str(out),
            fix="Look at its launches with `corebound report`, or name another with --run.",
        )
    faults += [
        _left_out(out, f"{one.cell.id} is left out: {one.trouble}.", "Its records tell more.")
        for one in cells
        if one.summary.median_ns is None
    ]
    return good


def _write_asv(cells: list[CellOfRun], out: Path, faults: list[Fault]) -> None:
    of_commits = [one for one in cells if one.run.commit is not None and not _is_dirty(one)]
    runs = {one.run.id: one.run for one in cells}
    if without := [run.id for run in runs.values() if run.commit is None]:
        is_left = (
            "run {} is left out: it is" if len(without) == 1 else "runs {} are left out: they are"
        )
        faults.append(
            _left_out(
                out,
                f"{is_left.format(', '.join(without))} of no commit.",
                "Measure in a repository's working tree: asv orders results by commit, and what"
                " compares several is of none.",
            )
        )
    faults += [
        _left_out(
            out,
            f"run {run} is left out: it measured changes that are not committed.",
            "Commit them and measure again: asv would show these results as the commit's.",
        )
        for run in dict.fromkeys(one.run.id for one in cells if _is_dirty(one))
    ]
    if not of_commits:
        raise InputError(
            what="no run is of a commit alone, and asv orders results by commit.",
            where=str(out),
            fix="Commit your changes and measure again, or export csv.",
        )
    for name, text in asv_export.documents(of_commits, _benchmarks(out)).items():
        _write(out / name, text.encode())


def _is_dirty(one: CellOfRun) -> bool:
    """Whether the measured code has changes beyond the commit."""
    commit = one.run.commit_of(one.cell.environment)
    return commit is not None and commit.dirty


def _benchmarks(out: Path) -> dict[str, Any]:
    """Read the existing benchmarks.json, so that asv's own benchmarks are kept."""
    file = out / asv_export.BENCHMARKS
    try:
        told = document(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, Unreadable) as error:
        told = error
    if not isinstance(told, dict):
        raise InputError(
            what="it is no benchmarks.json of asv.",
            where=str(file),
            fix="Delete it, or name another folder with --out.",
        )
    return told


def _write(file: Path, data: bytes) -> None:
    """Write a file atomically."""
    with report_os_errors("it cannot be written", where=file, fix="Name another place with --out."):
        atomic_write.put(file, data)
