"""CSV and JSON downloads of what pages show: unrounded values, with units in the names."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import to_builtins

from corebound.analysis.change_history import ChangeHistory
from corebound.analysis.commands import (
    CommandLine,
    again_command,
    asked_command,
    between_command,
    row_command,
)
from corebound.analysis.commit_comparison import CommitComparison, ComparedSeries
from corebound.analysis.comparison import Compared, ComparedCell, RunComparison
from corebound.analysis.findings import findings_data
from corebound.analysis.host_records import HostStudy
from corebound.analysis.launch_metrics import (
    median_of,
    migrations,
    span_of,
    switches,
    threads,
    whole_ns,
)
from corebound.analysis.operator_profiles import Profiled, profiled
from corebound.analysis.scenario_result import CellStudy, ScenarioResult
from corebound.analysis.server_workers import serving_data
from corebound.diagnosis.evidence import Finding
from corebound.records.history import HistoryPoint
from corebound.records.launch_record import ImportedProfile, Launch, OperatorProfile
from corebound.records.run_record import Run
from corebound.report.scenario.operator_table import OUTSIDE, outside_ns, span_ns, together_ns
from corebound.stats.history.regressions import Change
from corebound.stats.launch_summary import CellSummary
from corebound.text import spreadsheet
from corebound.worker.protocol import Operator


def lines_csv(lines: Sequence[Mapping[str, Any]]) -> str:
    """Format lines as CSV, with a column for every name that occurs in any of them."""
    text = io.StringIO()
    # Lines from different sources may have different columns; each column appears once.
    names = list(dict.fromkeys(name for line in lines for name in line))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for line in lines:
        writer.writerow({name: spreadsheet(value) for name, value in line.items()})
    return text.getvalue()


def finite(value: float) -> float | None:
    """JSON has no infinity: an infinite value becomes None."""
    return value if value < float("inf") else None


def operators_csv(study: ScenarioResult) -> str:
    """The operators of every profiled cell as CSV, one line per type; empty without profiles.

    As on the page, a time is that of the latest launch. Its ends are the minimum and maximum of all
    comparable profiles.
    """
    found = profiled(study)
    if not found:
        return ""
    axes = tuple(dict.fromkeys(axis for one in found for axis, _ in one.cell.axes))
    lines = [
        {**{f"axis_{axis}": dict(one.cell.axes).get(axis, "") for axis in axes}, **figures}
        for one in found
        for figures in profile_data(one)["operators"]
    ]
    return lines_csv(lines)


def profile_data(one: Profiled) -> dict[str, Any]:
    """A cell's profile; times are per iteration, except those of a call."""
    profile = one.profile
    return {
        "axes": dict(one.cell.axes),
        "launch": one.launch.id,
        "iterations": profile.iterations,
        "step_ns": profile.step_ns,
        "phases_ns": profile.phases,
        "disturbed": one.disturbed,
        "others_like_it": len(one.others),
        "operators": _lines(profile, one.others),
    }


def imported_csv(profiles: Sequence[ImportedProfile]) -> str:
    """The operators of imported profiles as CSV, one line per type; empty without profiles."""
    lines = [
        {"profile": one.name, "source": one.source, "device": one.device, **figures}
        for one in profiles
        for figures in _lines(one.profile)
    ]
    return lines_csv(lines) if lines else ""


def _lines(
    profile: OperatorProfile, others: Sequence[OperatorProfile] = ()
) -> list[dict[str, Any]]:
    """One line per type, then the time outside operators if that is known."""
    alike = (profile, *others)
    lines = [
        _operator(profile, each.type, partial(together_ns, types=(each.type,)), each, alike)
        for each in profile.operators
    ]
    if profile.outside_ns is not None:
        lines.append(_operator(profile, OUTSIDE, outside_ns, None, alike))
    return lines


def _operator(
    profile: OperatorProfile,
    name: str,
    of: Callable[[OperatorProfile], float | None],
    one: Operator | None,
    alike: Sequence[OperatorProfile],
) -> dict[str, Any]:
    """One line of a profile; the time outside operators has no calls."""
    # An operator with a line took some time, even if it rounds to nothing.
    total_ns, ends_ns = of(profile) or 0, span_ns(alike, of)
    return {
        "operator": name,
        "calls": one.calls if one else None,
        "total_ns": total_ns,
        "total_low_ns": ends_ns[0] if ends_ns else None,
        "total_high_ns": ends_ns[1] if ends_ns else None,
        "share_ratio": total_ns / profile.step_ns if profile.step_ns else None,
        "quiet_ns": one.quiet_ns if one else None,
        "call_mean_ns": one.mean_ns if one else None,
        "call_min_ns": one.min_ns if one else None,
        "call_max_ns": one.max_ns if one else None,
    }


def cells_json(study: ScenarioResult, found: Sequence[Finding], records: str = "") -> str:
    """A scenario's cells and the findings in them as JSON; missing values are null.

    `records` is as in `CommandLine.at`.
    """
    run = study.run
    document = {
        "scenario": study.scenario.name,
        "run": run.id,
        "started_at": run.started_at,
        "host": {"id": run.host.id, "name": run.host.name, "cpu_model": run.host.cpu_model},
        "commit": run.commit.sha if run.commit else None,
        "dirty": run.commit.dirty if run.commit else None,
        "tree": run.commit.tree if run.commit else None,
        "corebound": run.corebound,
        "seed": run.seed,
        "margin": study.measure.margin,
        "cells": [
            {
                "axes": dict(cell.cell.axes),
                **_figures(study, cell, records),
                "serving": serving_data(cell, run.host),
            }
            for cell in study.cells
        ],
        "profiles": [profile_data(one) for one in profiled(study)],
        "findings": findings_data(found),
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def cells_csv(study: ScenarioResult, records: str = "") -> str:
    """A scenario's cells as CSV, one line each; missing values are empty. `records` is as above.

    Each line names its scenario, run and host, so that several files can be joined. An axis may
    have the same name as a value, so its column begins with `axis_`.
    """
    axes = tuple(dict.fromkeys(axis for cell in study.cells for axis, _ in cell.cell.axes))
    return lines_csv(
        [
            {
                "scenario": study.scenario.name,
                "run": study.run.id,
                "started_at": study.run.started_at,
                "host": study.run.host.id,
            }
            | {f"axis_{axis}": dict(cell.cell.axes).get(axis, "") for axis in axes}
            | _figures(study, cell, records)
            for cell in study.cells
        ]
    )


def _figures(study: ScenarioResult, cell: CellStudy, records: str) -> dict[str, Any]:
    summary, comparison = cell.summary, cell.comparison
    interval, tail = summary.interval, summary.p99_interval
    spread = summary.spread_interval
    ratio = comparison.interval if comparison else None
    cpu_ns = {one.launch: one.cpu_median_ns for one in summary.launches}
    return {
        "median_ns": summary.median_ns,
        "median_low_ns": interval.low if interval else None,
        "median_high_ns": finite(interval.high) if interval else None,
        "p99_ns": summary.p99_ns,
        "p99_low_ns": tail.low if tail else None,
        "p99_high_ns": finite(tail.high) if tail else None,
        "cpu_median_ns": summary.cpu_median_ns,
        **_ends("cpu", cell, lambda launch: cpu_ns.get(launch.id), "_ns"),
        "spread_ratio": summary.spread_ratio,
        "spread_low_ratio": spread.low if spread else None,
        "spread_high_ratio": finite(spread.high) if spread else None,
        "launches_ok": summary.count("ok"),
        "launches_invalid": summary.count("invalid"),
        "launches_failed": summary.count("failed") + summary.count("timed-out"),
        "launches_skipped": summary.count("skipped"),
        "launches_unsettled": summary.unsettled,
        "launches_disturbed": summary.disturbed,
        "launches_left_out": len(summary.left_out),
        "migrations": median_of(cell, migrations),
        **_ends("migrations", cell, migrations),
        "switches": median_of(cell, switches),
        **_ends("switches", cell, switches),
        "threads": median_of(cell, threads),
        **_ends("threads", cell, threads),
        "whole_ns": median_of(cell, whole_ns),
        **_ends("whole", cell, whole_ns, "_ns"),
        "baseline": cell.baseline.key if cell.baseline else None,
        "speedup_ratio": comparison.speedup_ratio if comparison else None,
        "speedup_low_ratio": ratio.low if ratio else None,
        "speedup_high_ratio": finite(ratio.high) if ratio else None,
        "verdict": comparison.verdict if comparison else None,
        "command": row_command(study, cell).at(records),
    }


def _ends(
    name: str, cell: CellStudy, of: Callable[[Launch], float | None], unit: str = ""
) -> dict[str, float | None]:
    """The minimum and maximum over the launches, as on the page.

    None if all have the same value.
    """
    least, most = span_of(cell, of) or (None, None)
    return {f"{name}_least{unit}": least, f"{name}_most{unit}": most}


def changes_csv(known: ChangeHistory, records: str = "") -> str:
    """Every change, at least one, with a line each.

    Clear changes come first, the latest first, then the others.
    """
    return lines_csv(
        [
            {
                "id": one.id,
                "status": known.status(one),
                "because": known.because(one) or None,
                "measured_again": known.answer(one) or None,
                "project": one.series.project,
                "host": one.series.host,
                "benchmark": one.series.scenario,
                "cell": one.series.cell,
                "unit": one.series.unit,
                "level_before": one.step.before,
                "level_after": one.step.before * one.step.ratio,
                "ratio": one.step.ratio,
                "ratio_low": one.step.interval.low if one.step.interval else None,
                "ratio_high": finite(one.step.interval.high) if one.step.interval else None,
                "p_value": one.step.p_value,
                "last_good": one.last_good.at,
                "at": one.since,
                "first_bad": one.first_bad.at,
                "last_good_commit": one.last_good.commit.sha if one.last_good.commit else None,
                "first_bad_commit": one.first_bad.commit.sha if one.first_bad.commit else None,
                "subject": one.first_bad.commit.subject if one.first_bad.commit else None,
                **_recovered(one),
                "command": again.at(records) if (again := _again(one)) else None,
            }
            for one in (*known.changes, *known.unclear)
        ]
    )


def _recovered(one: Change) -> dict[str, Any]:
    """The commits that bound a change's recovery, and the ratio of the level since to before."""
    good, bad = one.back_between or (None, None)
    return {
        "recovered_last_good_commit": good.commit.sha if good and good.commit else None,
        "recovered_first_bad_commit": bad.commit.sha if bad and bad.commit else None,
        "recovered_left": one.step.recovery.left if one.step.recovery else None,
    }


def _again(one: Change) -> CommandLine | None:
    return between_command((one.series,), one.last_good, one.first_bad)


def commits_csv(found: CommitComparison) -> str:
    """Every series of a comparison of two commits, one line each, by change over noise."""
    return lines_csv([_compared_cell(found, one) for one in found.series])


def _compared_cell(found: CommitComparison, one: ComparedSeries) -> dict[str, Any]:
    return {
        "project": found.project,
        "host": one.series.host,
        "benchmark": one.series.scenario,
        "cell": one.series.cell,
        "unit": one.series.unit,
        "before_commit": found.before.sha,
        "after_commit": found.after.sha,
        **_point("before", one.before),
        **_point("after", one.after),
        **said_of(one),
    }


def _point(name: str, point: HistoryPoint) -> dict[str, Any]:
    low, high = point.bounds or (None, None)
    return {name: point.figure, f"{name}_low": low, f"{name}_high": high}


def said_of(one: Compared) -> dict[str, Any]:
    """The comparison of two values before correction; `clear`: whether significant after it."""
    comparison = one.comparison
    interval = comparison.interval if comparison else None
    return {
        "ratio": comparison.speedup_ratio if comparison else None,
        "ratio_low": interval.low if interval else None,
        "ratio_high": finite(interval.high) if interval else None,
        "p_value": comparison.p_value if comparison else None,
        "verdict": comparison.verdict if comparison else None,
        "clear": one.clear,
    }


def comparison_csv(found: RunComparison, records: str = "") -> str:
    """Every cell of a comparison of two runs, one line each, by change over noise.

    Args:
        found: The comparison.
        records: As in `CommandLine.at`.
    """
    return lines_csv([_compared(found, one, records) for one in found.cells])


def _compared(found: RunComparison, one: ComparedCell, records: str) -> dict[str, Any]:
    comparison = one.comparison
    return {
        "host": found.after.host.id,
        "scenario": one.cell.scenario,
        "cell": one.cell.key,
        "before_run": found.before.id,
        "after_run": found.after.id,
        **_side("before", one.before),
        **_side("after", one.after),
        **said_of(one),
        "launches_needed": comparison.launches_needed if comparison else None,
        "floor_ratio": finite(one.floor_ratio) if one.floor_ratio is not None else None,
        "between_runs_spread_ratio": one.between.spread_ratio,
        "between_runs_learned_from": one.between.runs,
        "delay_ratio": one.delay_ratio,
        "command": again_command(found.before, found.after, one.cell).at(records),
    }


def _side(name: str, summary: CellSummary) -> dict[str, Any]:
    interval = summary.interval
    return {
        f"{name}_ns": summary.median_ns,
        f"{name}_low_ns": interval.low if interval else None,
        f"{name}_high_ns": finite(interval.high) if interval else None,
        f"{name}_launches": len(summary.launches),
    }


def host_json(study: HostStudy, records: str = "") -> str:
    """A host as its latest run recorded it, its noise, and the doctor's results in each run.

    Args:
        study: The host with its runs.
        records: As in `CommandLine.at`.
    """
    runs = study.latest_runs
    document = {
        "host": to_builtins(runs[0].host),
        "noise": [to_builtins(one) for one in study.calibrations],
        "runs": [_run(run, records) for run in runs],
    }
    return json.dumps(_known(document), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _run(run: Run, records: str) -> dict[str, Any]:
    checks = run.preflight
    return {
        "id": run.id,
        "started_at": run.started_at,
        "commit": run.commit.sha if run.commit else None,
        "dirty": run.commit.dirty if run.commit else None,
        "tree": run.commit.tree if run.commit else None,
        "kernel": run.host.kernel,
        "command": asked_command(run).at(records),
        "checks": None
        if checks is None
        else [{"check": one.check, "state": one.state, "value": one.value} for one in checks],
    }


def _known(value: Any) -> Any:
    """The same value for JSON, which has no infinity: an unknown value is None."""
    if isinstance(value, dict):
        return {str(name): _known(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_known(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
