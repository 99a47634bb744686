"""Results as pandas DataFrames: one tidy table for launches, iterations, comparisons and so on.

Units are in the names of columns. What is unknown is missing (`pandas.NA`). Every axis of a
scenario has a column `axis_NAME`, whose values are text as on the pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corebound.analysis.compared import ComparedRow, baseline_rows
from corebound.analysis.json_documents import attributes, interval_columns
from corebound.analysis.scenario_result import ScenarioResult, cell_profiles
from corebound.exchange.run_export import ExportedCell, axis_columns, cell_columns, frame
from corebound.records.history import Series
from corebound.records.launch_record import Launch, Worker
from corebound.records.run_record import Run
from corebound.scenario.cell import axes_of_key
from corebound.stats.intervals import interval_pair
from corebound.stats.warmup import Warmup, counted_iterations, first_used_iteration, reported_times

if TYPE_CHECKING:
    import pandas as pd

_TEXT, _NUMBER, _COUNT, _TRUTH = "string", "Float64", "Int64", "boolean"
_RUN = {
    "run": _TEXT, "started_at": _TEXT, "host_id": _TEXT, "host": _TEXT, "commit": _TEXT,
    "scenario": _TEXT, "cell": _TEXT,
}  # fmt: skip
# The columns of each table, with their types in pandas.
RUNS = {
    "run": _TEXT, "started_at": _TEXT, "host_id": _TEXT, "host": _TEXT, "cpu_model": _TEXT,
    "kernel": _TEXT, "commit": _TEXT, "subject": _TEXT, "dirty": _TRUTH, "profile": _TEXT,
    "scenarios": _TEXT, "corebound": _TEXT,
}  # fmt: skip
ITERATIONS = {
    **_RUN, "launch": _TEXT, "block": _COUNT, "worker": _COUNT, "iteration": _COUNT,
    "counts": _TRUTH, "disturbed": _TRUTH, "wall_ns": _COUNT, "cpu_ns": _COUNT,
}  # fmt: skip
_COMPARISON = {
    "speedup_ratio": _NUMBER, "speedup_low_ratio": _NUMBER, "speedup_high_ratio": _NUMBER,
    "verdict": _TEXT, "is_significant": _TRUTH, "p_value": _NUMBER, "pairs": _COUNT,
    "launches_needed": _COUNT, "margin_ratio": _NUMBER,
}  # fmt: skip
COMPARISONS = {
    **_RUN, "baseline": _TEXT, "baseline_median_ns": _NUMBER, "median_ns": _NUMBER,
    "median_low_ns": _NUMBER, "median_high_ns": _NUMBER, **_COMPARISON,
}  # fmt: skip
HISTORY = {
    "project": _TEXT, "scenario": _TEXT, "cell": _TEXT, "host_id": _TEXT, "host": _TEXT,
    "unit": _TEXT, "at": _TEXT, "run": _TEXT, "commit": _TEXT, "value": _NUMBER, "low": _NUMBER,
    "high": _NUMBER, "head_value": _NUMBER, "anchor_value": _NUMBER, "launches": _COUNT,
    "missing": _TEXT,
}  # fmt: skip
OPERATORS = {
    **_RUN, "launch": _TEXT, "operator": _TEXT, "calls": _NUMBER, "total_ns": _NUMBER,
    "total_low_ns": _NUMBER, "total_high_ns": _NUMBER, "share_ratio": _NUMBER,
    "quiet_ns": _NUMBER, "call_mean_ns": _NUMBER, "call_min_ns": _NUMBER, "call_max_ns": _NUMBER,
}  # fmt: skip
COMPARED = {
    "scenario": _TEXT, "cell": _TEXT, "before": _NUMBER, "after": _NUMBER, "unit": _TEXT,
    **_COMPARISON,
}  # fmt: skip
CHANGES = {
    "id": _TEXT, "scenario": _TEXT, "cell": _TEXT, "project": _TEXT, "host": _TEXT, "unit": _TEXT,
    "is_regression": _TRUTH, "is_alarm": _TRUTH, "is_significant": _TRUTH, "state": _TEXT,
    "status": _TEXT, "ratio": _NUMBER, "ratio_low": _NUMBER, "ratio_high": _NUMBER,
    "last_good": _TEXT, "first_bad": _TEXT, "since": _TEXT,
}  # fmt: skip


def runs(all_runs: Iterable[Run]) -> pd.DataFrame:
    """One row for each run."""
    return frame(
        (
            {
                "run": run.id,
                "started_at": run.started_at,
                "host_id": run.host.id,
                "host": run.host.name,
                **attributes(run.host, "cpu_model", "kernel"),
                "commit": run.commit.sha if run.commit else None,
                **attributes(run.commit, "subject", "dirty"),
                **attributes(run, "profile", "corebound"),
                "scenarios": ", ".join(str(source.document["name"]) for source in run.scenarios),
            }
            for run in all_runs
        ),
        RUNS,
    )


def iterations(cells: Iterable[ExportedCell]) -> pd.DataFrame:
    """One row for each timed iteration of the launches with samples, warm-up included."""
    import pandas as pd

    parts = [
        {**cell_columns(cell.run, cell.cell), **_iteration_columns(launch, worker, cell.warmup)}
        for cell in cells
        for launch in cell.launches
        for worker in launch.workers
    ]
    axes = sorted({name for part in parts for name in part if name.startswith("axis_")})
    types = ITERATIONS | dict.fromkeys(axes, _TEXT)
    return pd.DataFrame(
        {name: pd.array(_joined(parts, name), dtype=type_) for name, type_ in types.items()}
    )


def _joined(parts: Sequence[Mapping[str, Any]], name: str) -> Any:
    """A column of all parts; what is no array in one is the value of all its iterations."""
    columns = [
        values
        if isinstance(values := part.get(name), np.ndarray)
        else np.full(len(part["iteration"]), values, object)
        for part in parts
    ]
    return np.concatenate(columns) if columns else []


def _iteration_columns(launch: Launch, worker: Worker, warmup: Warmup) -> dict[str, Any]:
    n = len(worker.wall_ns)
    counts, disturbed = np.zeros(n, bool), np.zeros(n, bool)
    is_alone = len(launch.workers) == 1
    if n and launch.status == "ok":
        counted = np.array(counted_iterations(worker, is_alone=is_alone))
        reported = reported_times(launch.cell, worker)
        first = first_used_iteration(worker, warmup, is_alone=is_alone, reported=reported)
        counts[counted[counted >= first]] = True
    for part in worker.disturbed:
        disturbed[part.first : part.last + 1] = True
    return {
        "launch": launch.id,
        "block": launch.block,
        "worker": worker.slot,
        "iteration": np.arange(n),
        "counts": counts,
        "disturbed": disturbed,
        "wall_ns": np.array(worker.wall_ns, object),
        "cpu_ns": np.array(worker.cpu_ns if len(worker.cpu_ns) == n else [None] * n, object),
    }


def comparisons(results: Iterable[ScenarioResult]) -> pd.DataFrame:
    """One row for each configuration that has a baseline, in each run."""
    return frame(_comparisons(results), COMPARISONS)


def _comparisons(results: Iterable[ScenarioResult]) -> Iterator[dict[str, Any]]:
    for result in results:
        pairs = [*result.ranked]
        rows = baseline_rows(pairs, margin=result.measure.margin)
        for pair, row in zip(pairs, rows, strict=True):
            yield {
                **cell_columns(result.run, pair.cell.cell),
                "baseline": pair.baseline.cell.key,
                "baseline_median_ns": pair.baseline.times.median_ns,
                "median_ns": pair.cell.times.median_ns,
                **interval_columns("median", interval_pair(pair.cell.times.interval), "_ns"),
                **_values(row, _COMPARISON),
            }


def _values(row: ComparedRow, columns: Iterable[str]) -> dict[str, Any]:
    return {
        **{name: getattr(row, name) for name in columns if hasattr(row, name)},
        **interval_columns("speedup", row.speedup_interval, "_ratio"),
        "margin_ratio": row.margin,
    }


def compared_rows(rows: Iterable[ComparedRow]) -> pd.DataFrame:
    """One row for each row of a comparison."""
    return frame(
        ({**_values(row, COMPARED), **axis_columns(row.axes.items())} for row in rows), COMPARED
    )


def history(all_series: Iterable[Series]) -> pd.DataFrame:
    """One row for each point of each series, oldest first."""
    return frame(
        (
            {
                "project": series.project,
                "scenario": series.scenario,
                "cell": series.cell,
                "host_id": series.host,
                "host": series.host_name,
                "unit": series.unit,
                "at": point.at,
                "run": point.run,
                "commit": point.commit.sha if point.commit else None,
                "value": point.value,
                "low": point.bounds[0] if point.bounds else None,
                "high": point.bounds[1] if point.bounds else None,
                "head_value": point.sides[0] if point.sides else None,
                "anchor_value": point.sides[1] if point.sides else None,
                "launches": len(point.launches) or None,
                "missing": point.missing,
                **axis_columns(axes_of_key(series.cell).items()),
            }
            for series in all_series
            for point in series.points
        ),
        HISTORY,
    )


def operators(results: Iterable[ScenarioResult]) -> pd.DataFrame:
    """One row for each operator of each profiled configuration, in each run."""
    from corebound.report.downloads import profile_data

    return frame(
        (
            {**cell_columns(result.run, profiled.cell), "launch": profiled.launch.id, **operator}
            for result in results
            for profiled in cell_profiles(result)
            for operator in profile_data(profiled)["operators"]
        ),
        OPERATORS,
    )
