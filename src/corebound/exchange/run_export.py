"""Export a run to other tools: CSV, Parquet, Bencher, github-action-benchmark."""

from __future__ import annotations

import hashlib
import importlib
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict, replace

from corebound.analysis.json_documents import attributes, commit_columns, json_file, serving_columns
from corebound.analysis.scenario_result import CellResult, analyse_scenario
from corebound.errors import MissingPackageError
from corebound.records.codec import canonical
from corebound.records.launch_record import Launch
from corebound.records.run_record import EnvironmentLock, Run, ScenarioSource
from corebound.scenario.cell import PROJECT, Cell
from corebound.scenario.compared_axis import without_commits
from corebound.scenario.models import Scenario
from corebound.stats.launch_summary import value_ends, value_of
from corebound.stats.server_summary import StreamedCell
from corebound.stats.warmup import Warmup
from corebound.text import spreadsheet

if TYPE_CHECKING:
    import pandas as pd


class ExportedCell(CellResult, frozen=True, kw_only=True):
    """A cell's result with its run and scenario.

    Attributes:
        source, scenario: The cell's scenario.
        warmup: How warm-ups are separated from the other iterations.
    """

    run: Run
    source: ScenarioSource
    scenario: Scenario
    warmup: Warmup

    @property
    def environment(self) -> EnvironmentLock | None:
        """The environment that the cell ran in."""
        return self.run.lock_of(self.cell.environment)

    @property
    def trouble(self) -> str | None:
        """The outcome, in words, of the first launch that was not `ok`."""
        return next(
            (
                f"{launch.status}: {launch.reason}"
                for launch in self.launches
                if launch.status != "ok"
            ),
            None,
        )


def exported_cells(run: Run, launches: Sequence[Launch]) -> Iterator[ExportedCell]:
    """The cells of a run with a launch, in the order of its scenarios; profiles are omitted.

    Args:
        launches: Its launches, in any order.

    Raises:
        ScenarioFaults: This version cannot read one of its scenarios.
    """
    for source in run.scenarios:
        result = analyse_scenario(run, source, launches)
        for cell in result.cells:
            yield ExportedCell(
                **asdict(cell),
                run=run,
                source=source,
                scenario=result.scenario,
                warmup=result.measure.warmup,
            )


def at_its_commit(cell: ExportedCell) -> ExportedCell:
    """A cell of a comparison of commits as if its commit alone had been measured.

    The commit is no longer an axis but that of its run; its environment is the project's. The
    scenario is the same for all commits.
    """
    commit = cell.run.commit_of(cell.cell.environment)
    if cell.run.commit is not None or cell.cell.commit is None or commit is None:
        return cell
    axes = tuple(pair for pair in cell.cell.axes if pair[0] != "commit")
    document = without_commits(cell.source.document)
    locks = tuple(
        replace(lock, name=PROJECT)
        for lock in cell.run.environments
        if lock.name == cell.cell.environment
    )
    own_cell = replace(cell.cell, axes=axes, environment=PROJECT, commit=None)
    return replace(
        cell,
        cell=own_cell,
        summary=replace(cell.summary, cell=own_cell),
        run=replace(cell.run, commit=commit, environments=locks),
        source=ScenarioSource(
            path=cell.source.path,
            sha256=hashlib.sha256(canonical(document)).hexdigest(),
            document=document,
        ),
    )


def drop_iterations(cell: ExportedCell) -> ExportedCell:
    """Drop the iterations, which the summary covers: a history would hold millions of them."""
    launches = tuple(replace(launch, workers=(), log="", host=None) for launch in cell.launches)
    return replace(cell, launches=launches)


# The prefix of columns for the scenarios' axes.
_AXIS = "axis_"
# The common columns, with their types in pandas; each can hold missing values.
_COLUMNS = {
    "run": "string", "started_at": "string", "host_id": "string", "host": "string",
    "commit": "string", "committed_at": "string", "dirty": "boolean", "tree": "string",
    "scenario": "string", "cell": "string", "environment": "string", "launch": "string",
    "block": "Int64", "launched_at": "string", "status": "string", "reason": "string",
    "median_ns": "Float64", "p99_ns": "Float64", "cpu_median_ns": "Float64",
    "iterations": "Int64", "settled": "boolean", "duration_ns": "Int64",
}  # fmt: skip
# The columns of metrics and of servers, which a table without any has not.
_OPTIONAL = {
    **dict.fromkeys(("metric", "unit", "better"), "string"),
    "value": "Float64",
    **dict.fromkeys(("requests_per_s", *StreamedCell.__struct_fields__), "Float64"),
}
# The types of pyarrow that they are written as.
_PARQUET = {"string": "string", "boolean": "bool_", "Int64": "int64", "Float64": "float64"}


def frame(rows: Iterable[Mapping[str, Any]], types: Mapping[str, str]) -> pd.DataFrame:
    """A data frame with these columns, then those of the axes; unknown values are missing."""
    # Loading it takes half a second; four formats do without.
    import pandas as pd

    listed = list(rows)
    axes = dict.fromkeys(name for row in listed for name in row if name.startswith(_AXIS))
    all_types = {**types, **dict.fromkeys(axes, "string")}
    return pd.DataFrame(listed, columns=list(all_types)).astype(all_types)


def axis_columns(axes: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The columns of a configuration's axes."""
    return {f"{_AXIS}{axis}": value for axis, value in axes}


def cell_columns(run: Run, cell: Cell) -> dict[str, Any]:
    """The columns that every table of runs begins with, and those of the axes."""
    commit = run.commit_of(cell.environment)
    return {
        "run": run.id,
        "started_at": run.started_at,
        "host_id": run.host.id,
        "host": run.host.name,
        "commit": commit.sha if commit else None,
        "scenario": cell.scenario,
        "cell": cell.key,
        **axis_columns(cell.axes),
    }


def table(cells: Iterable[ExportedCell]) -> pd.DataFrame:
    """A data frame with a row for each launch, and a column `axis_…` for each axis.

    Servers have columns for their throughput and, if they stream, for tokens, and commands that
    report a metric for its value.

    Unknown values, and axes that a launch's scenario does not have, are missing. Times are in
    nanoseconds.
    """
    rows = [_row(cell, launch) for cell in cells for launch in cell.launches]
    optional = {name: kind for name, kind in _OPTIONAL.items() if any(name in row for row in rows)}
    return frame(rows, _COLUMNS | optional)


def as_csv(cells: Iterable[ExportedCell]) -> str:
    """The table as CSV; missing values are empty."""
    text: str = (
        table(cells).map(spreadsheet, na_action="ignore").to_csv(index=False, lineterminator="\n")
    )
    return text


def as_parquet(cells: Iterable[ExportedCell], where: str) -> bytes:
    """The table as Parquet; missing values are null.

    Raises:
        HostError: pyarrow, which writes Parquet, is not installed.
    """
    try:
        arrow = importlib.import_module("pyarrow")
    except ImportError as error:
        raise MissingPackageError(
            "pyarrow", needed_for="Parquet", where=where, otherwise=", or export csv"
        ) from error
    launches = table(cells)
    types = _COLUMNS | _OPTIONAL
    schema = arrow.schema(
        [(name, getattr(arrow, _PARQUET[types.get(name, "string")])()) for name in launches]
    )
    sink = io.BytesIO()
    launches.to_parquet(sink, engine="pyarrow", index=False, schema=schema)
    return sink.getvalue()


def _row(cell: ExportedCell, launch: Launch) -> dict[str, Any]:
    row: dict[str, Any] = {
        **cell_columns(cell.run, cell.cell),
        "environment": cell.cell.environment,
        "launch": launch.id,
        "block": launch.block,
        "launched_at": launch.started_at,
        **attributes(launch, "status", "reason", "duration_ns"),
    }
    commit = cell.run.commit_of(cell.cell.environment)
    if commit is not None:
        row |= {**commit_columns(commit), "committed_at": commit.committed_at}
    summaries = cell.summary.launches
    summary = next((summary for summary in summaries if summary.launch == launch.id), None)
    if summary is not None:
        row |= attributes(summary, "p99_ns", "cpu_median_ns", "settled")
        row["median_ns"] = summary.wall_median_ns
        if metric := cell.cell.metric:
            row |= {"metric": metric.name, **attributes(metric, "unit", "better")}
            row["value"] = metric.from_time_ns(summary.median_ns)
        row["iterations"] = summary.used
    return row | serving_columns([launch])


def bencher(cells: Sequence[ExportedCell]) -> str:
    """The latency of each cell in nanoseconds, as Bencher expects, with its 95 % interval.

    If its command reports a metric, that instead.
    """
    document = {}
    for cell, _ in _medians(cells):
        measure = {"value": value_of(cell.summary)}
        if ends := value_ends(cell.summary):
            measure |= {"lower_value": ends[0], "upper_value": ends[1]}
        name = cell.cell.metric.name if cell.cell.metric else "latency"
        document[cell.cell.id] = {name: measure}
    return json_file(document)


def github_action(cells: Sequence[ExportedCell]) -> str:
    """A list of values, each with its interval as text: times, or the metric of a command.

    Whether more is better is not in the file, so it must be the same for all cells.
    """
    return json_file([_entry(cell) for cell, _ in _medians(cells)])


def _entry(cell: ExportedCell) -> dict[str, Any]:
    run, metric = cell.run, cell.cell.metric
    unit, digits = ("ns", ".0f") if metric is None else (metric.unit, ".6g")
    name = cell.cell.id if metric is None else f"{cell.cell.id} {metric.name}"
    entry: dict[str, Any] = {"name": name, "unit": unit, "value": value_of(cell.summary)}
    if ends := value_ends(cell.summary):
        entry["range"] = " to ".join(format(end, digits) for end in ends)
    details = [cell.scenario.title, f"{len(cell.summary.launches)} launches", f"run {run.id}"]
    entry["extra"] = "\n".join([*details, f"{run.host.name}, {run.host.cpu_model}"])
    return entry


def _medians(cells: Iterable[ExportedCell]) -> Iterable[tuple[ExportedCell, float]]:
    for cell in cells:
        if cell.summary.median_ns is not None:
            yield cell, cell.summary.median_ns
