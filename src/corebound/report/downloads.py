"""CSV and JSON downloads of what pages show: unrounded values, with units in the names."""

from __future__ import annotations

import csv
import io
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import repeat
from typing import Any

import numpy as np
from msgspec import to_builtins

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.commands import (
    CommandLine,
    between_command,
    cell_command,
    compare_again_command,
    original_command,
)
from corebound.analysis.commit_comparison import CommitComparison
from corebound.analysis.host_records import HostRecords
from corebound.analysis.run_comparison import RunComparison
from corebound.analysis.scenario_result import CellProfile, ScenarioResult, cell_profiles
from corebound.analysis.serialize import (
    cell_row,
    change_row,
    commit_columns,
    compared_cell_row,
    compared_series_row,
    csv_text,
    findings_document,
    json_file,
    serving_document,
)
from corebound.diagnosis.evidence import Finding
from corebound.records.history import EnvironmentKey, Series
from corebound.records.launch_record import ImportedProfile, OperatorProfile
from corebound.records.run_record import Run
from corebound.report.scenario.operators import OUTSIDE, outside_ns, span_ns, types_ns
from corebound.stats.history.regressions import Change
from corebound.text import spreadsheet
from corebound.worker.protocol import Operator


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
        "iterations": profile.iterations,
        "step_ns": profile.step_ns,
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
        lines.append(_operator(profile, OUTSIDE, outside_ns, None, alike))
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
        "calls": operator.calls if operator else None,
        "total_ns": total_ns,
        "total_low_ns": ends_ns[0] if ends_ns else None,
        "total_high_ns": ends_ns[1] if ends_ns else None,
        "share_ratio": total_ns / profile.step_ns if profile.step_ns else None,
        "quiet_ns": operator.quiet_ns if operator else None,
        "call_mean_ns": operator.mean_ns if operator else None,
        "call_min_ns": operator.min_ns if operator else None,
        "call_max_ns": operator.max_ns if operator else None,
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
        "host": {"id": run.host.id, "name": run.host.name, "cpu_model": run.host.cpu_model},
        **commit_columns(run.commit),
        "corebound": run.corebound,
        "seed": run.seed,
        "margin": result.measure.margin,
        "cells": [
            {
                "axes": dict(cell.cell.axes),
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
            | cell_row(cell)
            | {"command": cell_command(result, cell).at(records)}
            for cell in result.cells
        ]
    )


def changes_csv(history: ChangeHistory, records: str = "") -> str:
    """Every change, at least one, with a line each.

    Clear changes come first, the latest first, then the others.
    """
    return csv_text(
        [
            {
                **change_row(change, history),
                "command": command.at(records) if (command := _again(change)) else None,
            }
            for change in (*history.changes, *history.unclear)
        ]
    )


def _again(change: Change) -> CommandLine | None:
    return between_command((change.series,), change.last_good, change.first_bad)


def commits_csv(comparison: CommitComparison) -> str:
    """Every series of a comparison of two commits, one line each, by change over noise."""
    return csv_text([compared_series_row(comparison, series) for series in comparison.series])


def comparison_csv(comparison: RunComparison, records: str = "") -> str:
    """Every cell of a comparison of two runs, one line each, by change over noise.

    Args:
        comparison: The comparison.
        records: As in `CommandLine.at`.
    """
    return csv_text(
        [
            {
                **compared_cell_row(comparison, cell),
                "command": compare_again_command(comparison.before, comparison.after, cell.cell).at(
                    records
                ),
            }
            for cell in comparison.cells
        ]
    )


def host_json(result: HostRecords, records: str = "") -> str:
    """A host as its latest run recorded it, its noise, and the doctor's results in each run.

    Args:
        result: The host with its runs.
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
        "id": run.id,
        "started_at": run.started_at,
        **commit_columns(run.commit),
        "kernel": run.host.kernel,
        "command": original_command(run).at(records),
        "checks": None
        if checks is None
        else [
            {"check": check.check, "state": check.state, "value": check.value} for check in checks
        ],
    }


# This resolves a nanosecond of ten seconds. More digits would exceed any measurement's precision
# and double the size.
_DIGITS = ".10g"
_POINT_COLUMNS = ("host", "cell", "at", "run", "commit", "unit", "figure", "low", "high", "missing")


def history_csv(all_series: Sequence[Series]) -> str:
    """Every point of these series, at least one, with a line each; values in the series' unit.

    The fixed columns come first, then one column for each environment value.
    """
    distinct = dict.fromkeys(
        told for series in all_series for told in series.points.environment_keys
    )
    names = [*dict.fromkeys(name for told in distinct for name, _ in told)]
    behind = {told: _csv_line([dict(told).get(name) for name in names]) for told in distinct}
    header = [
        *_POINT_COLUMNS,
        *(f"{name} there" if name in _POINT_COLUMNS else name for name in names),
    ]
    lines = [
        _csv_line(header),
        *(line for series in all_series for line in _point_lines(series, behind)),
    ]
    return "\n".join(lines) + "\n"


def _point_lines(series: Series, behind: dict[EnvironmentKey, str]) -> Iterator[str]:
    location, unit = _csv_line([series.host, series.cell]), _csv_line([series.unit])
    points = series.points
    columns = (
        repeat(location),
        [
            _moment_columns(at, run, commit.sha if commit else None)
            for at, run, commit in points.moments
        ],
        repeat(unit),
        _format_numbers(points.values),
        _format_numbers(points.lows) or repeat(""),
        _format_numbers(points.highs) or repeat(""),
        [_reason_column(missing) if missing else "" for missing in points.missing] or repeat(""),
    )
    lines = map(",".join, zip(*columns, strict=False))  # `repeat` has no end
    return map(operator.add, lines, _environment_columns(points.environment_keys, behind))


def _format_numbers(values: Sequence[float]) -> list[str]:
    """Format numbers; NaN and infinity become empty."""
    parts = [*map(format, values, repeat(_DIGITS))]
    for at in np.flatnonzero(~np.isfinite(values)).tolist():
        parts[at] = ""
    return parts


def _environment_columns(
    told: Iterable[EnvironmentKey], behind: dict[EnvironmentKey, str]
) -> Iterator[str]:
    """The end of each line, with its environment values.

    Without any there is no comma before them.
    """
    ends = {each: f",{line}" if line else "" for each, line in behind.items()}
    # Most points have the same environment as the one before, which saves the lookup.
    there, end = None, ""
    for each in told:
        if each is not there:
            there, end = each, ends[each]
        yield end


# All series of a project share their timestamps and commits.
@lru_cache(maxsize=65_536)
def _moment_columns(at: str, run: str | None, sha: str | None) -> str:
    return _csv_line([at, run, sha])


@lru_cache(maxsize=4096)
def _reason_column(missing: str) -> str:
    return _csv_line([missing, None])[:-1]


def _csv_line(values: Iterable[str | None]) -> str:
    """Values as a CSV line, quoted if necessary, without its line end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([spreadsheet(value) for value in values])
    return text.getvalue()
