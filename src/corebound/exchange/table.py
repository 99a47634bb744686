"""Launches as a table, a row each, whatever became of them: CSV and Parquet."""

from __future__ import annotations

import csv
import importlib
import io
from collections.abc import Iterable
from typing import Any

from corebound.errors import InputError
from corebound.exchange.cells import CellOfRun
from corebound.foreign import spreadsheet
from corebound.model.record import Launch

# Begins the name of a column of one of the scenarios' axes.
_AXIS = "axis_"
# Name and type of each column; types as pyarrow calls them.
_COLUMNS = (
    ("run", "string"), ("started_at", "string"), ("host_id", "string"), ("host", "string"),
    ("commit", "string"), ("committed_at", "string"), ("dirty", "bool_"), ("tree", "string"),
    ("scenario", "string"), ("cell", "string"), ("environment", "string"), ("launch", "string"),
    ("block", "int64"), ("launched_at", "string"), ("status", "string"), ("reason", "string"),
    ("median_ns", "float64"), ("p99_ns", "float64"), ("cpu_median_ns", "float64"),
    ("iterations", "int64"), ("settled", "bool_"), ("duration_ns", "int64"),
)  # fmt: skip


def columns(rows: Iterable[dict[str, Any]]) -> tuple[tuple[str, str], ...]:
    """Names and types of the columns: those of every table, then an `axis_…` for each axis."""
    axes = dict.fromkeys(name for row in rows for name in row if name.startswith(_AXIS))
    return (*_COLUMNS, *((axis, "string") for axis in axes))


def made(cells: Iterable[CellOfRun]) -> list[dict[str, Any]]:
    """A row a launch; what is not known, or not of its axes, is missing."""
    return [_row(one, launch) for one in cells for launch in one.launches]


def _row(one: CellOfRun, launch: Launch) -> dict[str, Any]:
    run, commit = one.run, one.run.commit_of(one.cell.environment)
    row: dict[str, Any] = {
        "run": run.id,
        "started_at": run.started_at,
        "host_id": run.host.id,
        "host": run.host.name,
        "scenario": one.cell.scenario,
        "cell": one.cell.key,
        "environment": one.cell.environment,
        "launch": launch.id,
        "block": launch.block,
        "launched_at": launch.started_at,
        "status": launch.status,
        "reason": launch.reason,
        "duration_ns": launch.duration_ns,
    }
    row |= {f"{_AXIS}{axis}": value for axis, value in one.cell.axes}
    if commit is not None:
        row |= {"commit": commit.sha, "committed_at": commit.committed_at, "dirty": commit.dirty}
        row |= {"tree": commit.tree}
    figures = next((own for own in one.summary.launches if own.launch == launch.id), None)
    if figures is not None:
        row |= {
            "median_ns": figures.median_ns,
            "p99_ns": figures.p99_ns,
            "cpu_median_ns": figures.cpu_median_ns,
            "iterations": figures.used,
            "settled": figures.settled,
        }
    return row


def as_csv(cells: Iterable[CellOfRun]) -> str:
    """The table as CSV; what is missing is empty."""
    text = io.StringIO()
    rows = made(cells)
    names = [name for name, _ in columns(rows)]
    writer = csv.DictWriter(text, names, restval="", lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: spreadsheet(value) for name, value in row.items()})
    return text.getvalue()


def as_parquet(cells: Iterable[CellOfRun], where: str) -> bytes:
    """The table as Parquet; what is missing is null.

    Raises:
        InputError: pyarrow, which writes it, is not installed.
    """
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise InputError(
            what="Parquet needs pyarrow, which is not installed.",
            where=where,
            mend="Install it with `pip install 'corebound[parquet]'`, or export csv.",
        ) from error
    rows = made(cells)
    schema = arrow.schema([(name, getattr(arrow, type_)()) for name, type_ in columns(rows)])
    sink = io.BytesIO()
    parquet.write_table(arrow.Table.from_pylist(rows, schema=schema), sink)
    return sink.getvalue()
