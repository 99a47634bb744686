"""CSV and JSON downloads of what pages show: unrounded values, with units in the names."""

import csv
import io
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from msgspec import to_builtins

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.commit_comparison import CommitComparison
from corebound.analysis.compared import ComparedRow
from corebound.analysis.host_records import HostRecords
from corebound.analysis.json_documents import (
    attributes,
    cell_row,
    commit_columns,
    findings_document,
    interval_columns,
    json_file,
    metric_columns,
    serving_document,
)
from corebound.analysis.run_comparison import RunComparison
from corebound.analysis.scenario_result import CellProfile, ScenarioResult, cell_profiles
from corebound.analysis.suggested_commands import (
    between_command,
    cell_command,
    compare_again_command,
    original_command,
)
from corebound.diagnosis.evidence import Finding
from corebound.records.history import HistoryPoint
from corebound.records.launch_record import ImportedProfile, OperatorProfile
from corebound.records.run_record import Run
from corebound.report.scenario.operators import OUTSIDE, span_ns, types_ns
from corebound.stats.history.regressions import Change
from corebound.stats.intervals import interval_pair, ratio_interval_pair
from corebound.stats.launch_summary import CellSummary
from corebound.text import spreadsheet
from corebound.worker.operator_table import Operator


def operators_csv(result: ScenarioResult) -> str:
    """The operators of every profiled cell as CSV, one line per type; empty without profiles.

    As on the page, a time is that of the latest launch. Its ends are the minimum and maximum of all
    comparable profiles.
    """
    profiled_cells = cell_profiles(result)
    if not profiled_cells:
        return ""
    axes = tuple(
        dict.fromkeys(
            axis for profiled_cell in profiled_cells for axis, _ in profiled_cell.cell.axes
        )
    )
    lines = [
        {
            **{f"axis_{axis}": dict(profiled_cell.cell.axes).get(axis, "") for axis in axes},
            **figures,
        }
        for profiled_cell in profiled_cells
        for figures in profile_data(profiled_cell)["operators"]
    ]
    return csv_text(lines)


def profile_data(profiled_cell: CellProfile) -> dict[str, Any]:
    """A cell's profile; times are per iteration, except those of a call."""
    profile = profiled_cell.profile
    return {
        "axes": dict(profiled_cell.cell.axes),
        "launch": profiled_cell.launch.id,
        **attributes(profile, "iterations", "step_ns"),
        "phases_ns": profile.phases,
        "disturbed": profiled_cell.disturbed,
        "others_like_it": len(profiled_cell.others),
        "operators": _lines(profile, profiled_cell.others),
    }


def imported_csv(profiles: Sequence[ImportedProfile]) -> str:
    """The operators of imported profiles as CSV, one line per type; empty without profiles."""
    lines = [
        {"profile": profile.name, "source": profile.source, "device": profile.device, **figures}
        for profile in profiles
        for figures in _lines(profile.profile)
    ]
    return csv_text(lines) if lines else ""


def _lines(
    profile: OperatorProfile, profiles: Sequence[OperatorProfile] = ()
) -> list[dict[str, Any]]:
    """One line per type, then the time outside operators if that is known."""
    alike = (profile, *profiles)
    lines = [
        _operator(
            profile, operator.type, partial(types_ns, types=(operator.type,)), operator, alike
        )
        for operator in profile.operators
    ]
    if profile.outside_ns is not None:
        lines.append(_operator(profile, OUTSIDE, attrgetter("outside_ns"), None, alike))
    return lines


def _operator(
    profile: OperatorProfile,
    name: str,
    of: Callable[[OperatorProfile], float | None],
    operator: Operator | None,
    alike: Sequence[OperatorProfile],
) -> dict[str, Any]:
    """One line of a profile; the time outside operators has no calls."""
    # An operator with a line took some time, even if it rounds to nothing.
    total_ns, ends_ns = of(profile) or 0, span_ns(alike, of)
    return {
        "operator": name,
        **attributes(operator, "calls"),
        "total_ns": total_ns,
        **interval_columns("total", ends_ns, "_ns"),
        "share_ratio": total_ns / profile.step_ns if profile.step_ns else None,
        **attributes(operator, "quiet_ns"),
        **{
            f"call_{name}": value
            for name, value in attributes(operator, "mean_ns", "min_ns", "max_ns").items()
        },
    }


def cells_json(result: ScenarioResult, findings: Sequence[Finding], records: str = "") -> str:
    """A scenario's cells and the findings in them as JSON; missing values are null.

    `records` is as in `CommandLine.at`.
    """
    run = result.run
    document = {
        "scenario": result.scenario.name,
        "run": run.id,
        "started_at": run.started_at,
        "host": attributes(run.host, "id", "name", "cpu_model"),
        **commit_columns(run.commit),
        **attributes(run, "corebound", "seed"),
        "margin": result.measure.margin,
        "cells": [
            {
                "axes": dict(cell.cell.axes),
                "duplicates": [duplicate.key for duplicate in cell.duplicates],
                **cell_row(cell),
                "command": cell_command(result, cell).at(records),
                "serving": serving_document(cell, run.host),
            }
            for cell in result.cells
        ],
        "profiles": [profile_data(profiled_cell) for profiled_cell in cell_profiles(result)],
        "findings": findings_document(findings),
    }
    return json_file(document)


def cells_csv(result: ScenarioResult, records: str = "") -> str:
    """A scenario's cells as CSV, one line each; missing values are empty. `records` is as above.

    Each line names its scenario, run and host, so that several files can be joined. An axis may
    have the same name as a value, so its column begins with `axis_`.
    """
    axes = tuple(dict.fromkeys(axis for cell in result.cells for axis, _ in cell.cell.axes))
    return csv_text(
        [
            {
                "scenario": result.scenario.name,
                "run": result.run.id,
                "started_at": result.run.started_at,
                "host": result.run.host.id,
            }
            | {f"axis_{axis}": dict(cell.cell.axes).get(axis, "") for axis in axes}
            | {"duplicates": "; ".join(duplicate.key for duplicate in cell.duplicates)}
            | cell_row(cell)
            | {"command": cell_command(result, cell).at(records)}
            for cell in result.cells
        ]
    )


def changes_csv(history: ChangeHistory, records: str = "") -> str:
    """Every change, at least one, with a line each.

    Clear changes come first, the latest first, then the others.
    """
    every = (*history.changes, *history.unclear)
    # All rows as mappings would take several times the memory of their text.
    rows = (_change(change, history, records) for change in every)
    return csv_text(rows, columns=_change(every[0], history, records))


def _change(change: Change, history: ChangeHistory, records: str) -> dict[str, Any]:
    step, good, bad = change.change_point, change.last_good, change.first_bad
    recovered_good, recovered_bad = change.recovered_between or (None, None)
    command = between_command((change.series,), good, bad)
    return {
        "id": change.id,
        "status": history.assessed[change.id].status,
        "because": history.because(change) or None,
        "measured_again": history.answer(change) or None,
        **attributes(change.series, "project", "host"),
        "benchmark": change.series.scenario,
        **attributes(change.series, "cell", "importance", "unit"),
        "level_before": step.before,
        "level_after": step.before * step.ratio,
        "ratio": step.ratio,
        **interval_columns("ratio", ratio_interval_pair(step.interval)),
        "p_value": step.p_value,
        "last_good": good.at,
        "at": change.since,
        "first_bad": bad.at,
        "last_good_commit": _sha(good),
        "first_bad_commit": _sha(bad),
        "subject": bad.commit.subject if bad.commit else None,
        "recovered_last_good_commit": _sha(recovered_good),
        "recovered_first_bad_commit": _sha(recovered_bad),
        "recovered_left": step.recovery.left if step.recovery else None,
        "command": command.at(records) if command else None,
    }


def _sha(point: HistoryPoint | None) -> str | None:
    return point.commit.sha if point and point.commit else None


def commits_csv(comparison: CommitComparison) -> str:
    """Every series of a comparison of two commits, one line each, by change over noise."""
    return csv_text(
        [
            {
                "project": comparison.project,
                "host": series.series.host,
                "benchmark": series.scenario,
                **attributes(series, "cell", "unit"),
                "before_commit": comparison.before.sha,
                "after_commit": comparison.after.sha,
                "before": series.before,
                **interval_columns("before", series.before_point.bounds),
                "after": series.after,
                **interval_columns("after", series.after_point.bounds),
                **_compared(series),
            }
            for series in comparison.series
        ]
    )


def comparison_csv(comparison: RunComparison, records: str = "") -> str:
    """Every cell of a comparison of two runs, one line each, by change over noise.

    Args:
        records: As in `CommandLine.at`.
    """
    before, after = comparison.before, comparison.after
    return csv_text(
        [
            {
                "host": after.host.id,
                **attributes(cell, "scenario", "cell"),
                "before_run": before.id,
                "after_run": after.id,
                **_summary("before", cell.before_summary),
                **_summary("after", cell.after_summary),
                **_compared(cell),
                **attributes(cell, "launches_needed", "floor_ratio"),
                "between_runs_spread_ratio": cell.between.spread_ratio,
                "between_runs_learned_from": cell.between.runs,
                "delay_ratio": cell.delay_ratio,
                "command": compare_again_command(before, after, cell.configuration).at(records),
            }
            for cell in comparison.cells
        ]
    )


def _summary(name: str, summary: CellSummary) -> dict[str, Any]:
    return {
        f"{name}_ns": None if summary.cell.metric else summary.median_ns,
        **interval_columns(
            name, None if summary.cell.metric else interval_pair(summary.interval), "_ns"
        ),
        **{f"{name}_{column}": value for column, value in metric_columns(summary).items()},
        f"{name}_launches": len(summary.launches),
    }


def _compared(row: ComparedRow) -> dict[str, Any]:
    """The comparison before correction; `is_significant`: whether it remains after it."""
    return {
        "ratio": row.speedup_ratio,
        **interval_columns("ratio", row.speedup_interval),
        "p_value": row.p_value,
        **attributes(row.comparison, "verdict"),
        "is_significant": row.is_significant,
    }


def host_json(result: HostRecords, records: str = "") -> str:
    """A host as its latest run recorded it, its noise, and the doctor's results in each run.

    Args:
        records: As in `CommandLine.at`.
    """
    runs = result.latest_runs
    document = {
        "host": to_builtins(runs[0].host),
        "noise": [to_builtins(calibration) for calibration in result.calibrations],
        "runs": [_run(run, records) for run in runs],
    }
    return json_file(document)


def _run(run: Run, records: str) -> dict[str, Any]:
    checks = run.preflight
    return {
        **attributes(run, "id", "started_at"),
        **commit_columns(run.commit),
        "kernel": run.host.kernel,
        "command": original_command(run).at(records),
        "checks": None
        if checks is None
        else [attributes(check, "check", "state", "value") for check in checks],
    }


def csv_text(rows: Iterable[Mapping[str, Any]], columns: Collection[str] = ()) -> str:
    """Rows as CSV, with a column for each name in any row; text is inert in a spreadsheet.

    Args:
        columns: The names if they are known, so that not all rows need to be in memory.
    """
    text = io.StringIO()
    if not columns:
        rows = [*rows]
        columns = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: spreadsheet(value) for name, value in row.items()})
    return text.getvalue()
