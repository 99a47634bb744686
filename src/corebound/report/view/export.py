"""The figures of a page for machines: the same cells, unrounded, units in the names."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from corebound.diagnosis.finding import Finding
from corebound.model.points import Point
from corebound.model.record import Launch
from corebound.report.view.chronicle import Chronicle
from corebound.report.view.command import CommandLine, between_command, row_command
from corebound.report.view.commits_compared import CommitComparison, ComparedSeries
from corebound.report.view.comparing import Compared
from corebound.report.view.evidence import (
    median_of,
    migrations,
    span_of,
    switches,
    threads,
    whole_ns,
)
from corebound.report.view.export_lines import finite, lines_csv
from corebound.report.view.export_operators import profile_data
from corebound.report.view.findings import findings_data
from corebound.report.view.operators import profiled
from corebound.report.view.serving_data import serving_data
from corebound.report.view.study import CellStudy, Study
from corebound.stats.regressions import Change


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


def cells_csv(study: Study, records: str = "") -> str:
    """A scenario's cells as CSV, one line each; absent figures are empty. `records` as above.

    Each line names its scenario, run and host: files of several can be joined.
    An axis may be called as a figure is, so its column begins with `axis_`.
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


def _figures(study: Study, cell: CellStudy, records: str) -> dict[str, Any]:
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
    """The least and the most of any launch, as the page has them; None where all have the same."""
    least, most = span_of(cell, of) or (None, None)
    return {f"{name}_least{unit}": least, f"{name}_most{unit}": most}


def changes_csv(known: Chronicle, records: str = "") -> str:
    """Every change, at least one, a line each: the clear ones, the latest first, then others."""
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
    """The commits its recovery ends between, and the level since then against that before it."""
    good, bad = one.back_between or (None, None)
    return {
        "recovered_last_good_commit": good.commit.sha if good and good.commit else None,
        "recovered_first_bad_commit": bad.commit.sha if bad and bad.commit else None,
        "recovered_left": one.step.recovery.left if one.step.recovery else None,
    }


def _again(one: Change) -> CommandLine | None:
    return between_command((one.series,), one.last_good, one.first_bad)


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
