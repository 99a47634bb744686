"""The figures of a page for machines: the same cells, unrounded, units in the names."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from corebound.diagnosis.finding import Finding
from corebound.model.points import Point
from corebound.model.profile import ImportedProfile, OperatorProfile
from corebound.model.wire import Operator
from corebound.report.view.chronicle import Chronicle
from corebound.report.view.command import row_command, series_command
from corebound.report.view.commits_compared import CommitComparison, ComparedSeries
from corebound.report.view.comparing import Compared
from corebound.report.view.evidence import median_of, migrations, switches, threads, whole_ns
from corebound.report.view.findings import findings_data
from corebound.report.view.operator_notes import OUTSIDE
from corebound.report.view.operator_times import outside_ns, span_ns, together_ns
from corebound.report.view.operators import Profiled, profiled
from corebound.report.view.serving_data import serving_data
from corebound.report.view.study import CellStudy, Study


def cells_json(study: Study, found: Sequence[Finding], records: str = "") -> str:
    """A scenario's cells and what stands out in them as JSON; absent figures are null.

    `records` as in `CommandLine.at`.
    """
    run = study.run
    document = {
        "scenario": study.scenario.name,
        "run": run.id,
        "started_at": run.started_at,
        "host": {"id": run.host.id, "name": run.host.name, "cpu_model": run.host.cpu_model},
        "commit": run.commit.sha if run.commit else None,
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
        "profiles": [_profile(one) for one in profiled(study)],
        "findings": findings_data(found),
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def cells_csv(study: Study, records: str = "") -> str:
    """A scenario's cells as CSV, one line each; absent figures are empty. `records` as above."""
    axes = tuple(dict.fromkeys(axis for cell in study.cells for axis, _ in cell.cell.axes))
    names = (*axes, *(_figures(study, study.cells[0], records) if study.cells else ()))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for cell in study.cells:
        values = dict(cell.cell.axes)
        axis_values = {axis: values.get(axis, "") for axis in axes}
        row: dict[str, Any] = {**axis_values, **_figures(study, cell, records)}
        writer.writerow({name: inert(value) for name, value in row.items()})
    return text.getvalue()


def operators_csv(study: Study) -> str:
    """The operators of every profiled cell as CSV, one line a type; empty without any.

    As on the page a time is of the latest launch, its ends the least and the most of all
    profiles like it.
    """
    found = profiled(study)
    if not found:
        return ""
    axes = tuple(dict.fromkeys(axis for one in found for axis, _ in one.cell.axes))
    lines = [
        {**{axis: dict(one.cell.axes).get(axis, "") for axis in axes}, **figures}
        for one in found
        for figures in _profile(one)["operators"]
    ]
    return lines_csv(lines)


def lines_csv(lines: Sequence[Mapping[str, Any]]) -> str:
    """Lines as CSV under all names that any of them has."""
    text = io.StringIO()
    # Lines of different hands may differ in their columns; each column stands once.
    names = list(dict.fromkeys(name for line in lines for name in line))
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    for line in lines:
        writer.writerow({name: inert(value) for name, value in line.items()})
    return text.getvalue()


def _profile(one: Profiled) -> dict[str, Any]:
    """A cell's profile; times are of one iteration, but for those of a call."""
    profile = one.profile
    return {
        "axes": dict(one.cell.axes),
        "launch": one.launch.id,
        "iterations": profile.iterations,
        "step_ns": profile.step_ns,
        "phases_ns": profile.phases,
        "others_like_it": len(one.others),
        "operators": _lines(profile, one.others),
    }


def imported_csv(profiles: Sequence[ImportedProfile]) -> str:
    """The operators of imported profiles as CSV, one line a type; empty without any."""
    lines = [
        {"profile": one.name, "source": one.source, "device": one.device, **figures}
        for one in profiles
        for figures in _lines(one.profile)
    ]
    return lines_csv(lines) if lines else ""


def _lines(
    profile: OperatorProfile, others: Sequence[OperatorProfile] = ()
) -> list[dict[str, Any]]:
    """A line a type, then what is outside of operators where that is known."""
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
    """A line of a profile; what is outside operators is called by nobody."""
    # What has a line took time, if none worth telling.
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


def inert(value: Any) -> Any:
    """Text that a spreadsheet would take for a formula gets an apostrophe."""
    if isinstance(value, str) and value[:1] in {"=", "+", "-", "@", "\t", "\r"}:
        return f"'{value}"
    return value


def _figures(study: Study, cell: CellStudy, records: str) -> dict[str, Any]:
    summary, comparison = cell.summary, cell.comparison
    interval, tail = summary.interval, summary.p99_interval
    spread = summary.spread_interval
    ratio = comparison.interval if comparison else None
    return {
        "median_ns": summary.median_ns,
        "median_low_ns": interval.low if interval else None,
        "median_high_ns": finite(interval.high) if interval else None,
        "p99_ns": summary.p99_ns,
        "p99_low_ns": tail.low if tail else None,
        "p99_high_ns": finite(tail.high) if tail else None,
        "cpu_median_ns": summary.cpu_median_ns,
        "spread_ratio": summary.spread_ratio,
        "spread_low_ratio": spread.low if spread else None,
        "spread_high_ratio": finite(spread.high) if spread else None,
        "launches_ok": summary.count("ok"),
        "launches_invalid": summary.count("invalid"),
        "launches_failed": summary.count("failed") + summary.count("timed-out"),
        "launches_skipped": summary.count("skipped"),
        "launches_unsettled": summary.unsettled,
        "migrations": median_of(cell, migrations),
        "switches": median_of(cell, switches),
        "threads": median_of(cell, threads),
        "whole_ns": median_of(cell, whole_ns),
        "baseline": cell.baseline.key if cell.baseline else None,
        "speedup_ratio": comparison.speedup_ratio if comparison else None,
        "speedup_low_ratio": ratio.low if ratio else None,
        "speedup_high_ratio": finite(ratio.high) if ratio else None,
        "verdict": comparison.verdict if comparison else None,
        "command": row_command(study, cell).at(records),
    }


def finite(value: float) -> float | None:
    """JSON knows no infinity: an end that is not known is absent."""
    return value if value < float("inf") else None


def changes_csv(known: Chronicle, records: str = "") -> str:
    """Every clear change, at least one, a line each, the latest first."""
    return lines_csv(
        [
            {
                "id": one.id,
                "status": known.status(one),
                "project": one.series.project,
                "host": one.series.host,
                "benchmark": one.series.scenario,
                "cell": one.series.cell,
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
                "command": again.at(records) if (again := series_command((one.series,))) else None,
            }
            for one in known.changes
        ]
    )


def commits_csv(found: CommitComparison) -> str:
    """Every series that two commits were compared by, a line each, by change over noise."""
    return lines_csv([_compared(found, one) for one in found.series])


def _compared(found: CommitComparison, one: ComparedSeries) -> dict[str, Any]:
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


def _point(name: str, point: Point) -> dict[str, Any]:
    low, high = point.bounds or (None, None)
    return {name: point.figure, f"{name}_low": low, f"{name}_high": high}


def said_of(one: Compared) -> dict[str, Any]:
    """What two figures say of one another, by itself; `clear`: as one of all too."""
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
