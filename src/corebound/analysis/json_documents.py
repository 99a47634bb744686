"""Cells and comparisons as plain data, for `--json` output, downloads and exports.

A document is a JSON object; its intervals are pairs, such as `speedup_interval`. A row is flat, for
CSV; the ends of its intervals have columns of their own, such as `speedup_low_ratio`. Values are
not rounded, names end in their units, and None stands for a value that is missing or infinite.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import to_builtins
from msgspec.structs import replace

from corebound.analysis.commit_comparison import (
    COMMITS_CAVEAT,
    CellAtCommits,
    CommitComparison,
    ComparedSeries,
    InterleavedComparison,
    Side,
)
from corebound.analysis.compared import ComparedRow
from corebound.analysis.hardware import HardwareClass
from corebound.analysis.host_comparison import ConfigurationRow, HostComparison
from corebound.analysis.launch_metrics import (
    context_switches,
    median_of,
    migrations,
    span_of,
    threads,
    total_wall_ns,
)
from corebound.analysis.run_comparison import RUNS_CAVEAT, ComparedCell, RunComparison
from corebound.analysis.scenario_result import CellResult
from corebound.analysis.server_workers import worker_activity
from corebound.analysis.unconfirmed import Unconfirmed
from corebound.analysis.wording import open_reason
from corebound.diagnosis.evidence import Finding
from corebound.machine.identity import Host
from corebound.records.calibration import Noise
from corebound.records.launch_record import Launch
from corebound.records.run_record import Commit, Run
from corebound.scenario.cell import cell_identity
from corebound.stats import intervals
from corebound.stats.between_runs import BetweenRuns
from corebound.stats.comparison import Comparison, ModeComparison
from corebound.stats.launch_summary import CellSummary, value_ends, value_of
from corebound.stats.server_summary import StreamedCell, TypicalValue, summarise_served

# Larger powers are no numbers.
_MOST_LOG = 700.0


def attributes(result: object | None, *names: str) -> dict[str, Any]:
    """Attributes of a result as plain data, by their names; paths are text. None has None each."""
    return {
        name: None if result is None else to_builtins(getattr(result, name), enc_hook=str)
        for name in names
    }


def _spread_pair(interval: intervals.Interval | None) -> intervals.Ends | None:
    return interval.ends if interval and intervals.is_usable_spread(*interval.ends) else None


def interval_columns(name: str, ends: intervals.Ends | None, unit: str = "") -> dict[str, Any]:
    """The two ends of an interval, as `{name}_low{unit}` and `{name}_high{unit}`."""
    low, high = ends or (None, None)
    return {f"{name}_low{unit}": low, f"{name}_high{unit}": high}


def _modes_document(by_mode: ModeComparison | None) -> dict[str, Any] | None:
    """Both comparisons of launches of two modes, and the modes of each block's launches."""
    if by_mode is None:
        return None
    modes = by_mode.modes
    return {
        "decides": "same mode" if by_mode.is_same_mode else "both modes",
        "same_mode_speedup_ratio": modes.speedup_ratio,
        "same_mode_speedup_interval": intervals.ratio_interval_pair(modes.interval),
        "both_modes_speedup_ratio": by_mode.expected_ratio,
        "both_modes_speedup_interval": intervals.ratio_interval_pair(by_mode.expected_interval),
        "slow_ratio": modes.slow_ratio,
        "cell_fast": to_builtins(modes.share("cell")),
        "baseline_fast": to_builtins(modes.share("baseline")),
        "share_p_value": modes.share_p_value,
        "blocks": to_builtins(modes.blocks),
    }


def comparison_document(comparison: Comparison | None) -> dict[str, Any]:
    """The values of a comparison; None each if it could not be made.

    `speedup_…` is the baseline's time over the cell's, `slowdown_…` the reciprocal.
    """
    ratios = ("speedup_ratio", "speedup_interval", "slowdown_ratio", "slowdown_interval")
    return {
        **attributes(comparison, *ratios, "verdict", "p_value"),
        "pairs": comparison.pairs if comparison else 0,
        "inconclusive_because": open_reason(comparison) if comparison else None,
        **attributes(comparison, "launches_needed"),
        "modes": _modes_document(comparison.by_mode) if comparison else None,
        **attributes(comparison.host_speeds if comparison else None, "slow_blocks"),
    }


def cell_document(
    cell: CellResult, host: Host, *, is_finding: bool, noise: Noise | None
) -> dict[str, Any]:
    """A cell of one run.

    Args:
        is_finding: Whether it differs from its baseline after correction for the whole run.
        noise: The noise floor for the number of its launches; None if unknown.
    """
    summary = cell.summary
    return {
        **cell_identity(summary.cell.scenario, summary.cell.key),
        "duplicates": [duplicate.id for duplicate in cell.duplicates],
        "statuses": dict(summary.counts),
        "median_ns": cell.times.median_ns,
        "median_interval_ns": intervals.interval_pair(cell.times.interval),
        "metrics": [
            {
                **attributes(each.cell.metric, "name", "unit", "better"),
                "value": value_of(each),
                "interval": value_ends(each),
            }
            for each in cell.reported
        ],
        "p99_ns": summary.p99_ns,
        "p99_interval_ns": intervals.interval_pair(summary.p99_interval),
        "cpu_median_ns": summary.cpu_median_ns,
        "launch_medians_ns": [launch.wall_median_ns for launch in summary.launches],
        "unsettled_launches": summary.unsettled,
        "disturbed_launches": [launch.launch for launch in summary.launches if launch.disturbed],
        "left_out_launches": [launch.launch for launch in summary.left_out],
        "baseline": cell.baseline.id if cell.baseline else None,
        **comparison_document(cell.comparison),
        "least_slowdown_ratio": cell.least_slowdown_ratio,
        "is_significant": is_finding,
        "noise": noise,
        "serving": serving_document(cell, host),
    }


def unconfirmed_document(seen: Unconfirmed) -> dict[str, Any]:
    """The largest difference of a scenario where nothing is decided, and what decides it."""
    effect = seen.effect
    return {
        **cell_identity(effect.cell.cell.scenario, effect.cell.cell.key),
        "baseline": effect.other.cell.id,
        "speedup_ratio": effect.comparison.speedup_ratio,
        "because": seen.reason,
        "says": f"{seen.says} {seen.basis}.",
        "confirm": seen.command.line,
        "confirm_s": seen.duration_s,
    }


def cell_row(cell: CellResult) -> dict[str, Any]:
    """A cell of one run as columns, without its axes."""
    summary, comparison = cell.summary, cell.comparison
    cpu_ns = {launch.launch: launch.cpu_median_ns for launch in summary.launches}
    ends = comparison.speedup_interval if comparison else None
    return {
        "median_ns": cell.times.median_ns,
        **interval_columns("median", intervals.interval_pair(cell.times.interval), "_ns"),
        **metric_columns(summary),
        "p99_ns": summary.p99_ns,
        **interval_columns("p99", intervals.interval_pair(summary.p99_interval), "_ns"),
        "cpu_median_ns": summary.cpu_median_ns,
        **_span_columns("cpu", cell, lambda launch: cpu_ns.get(launch.id), "_ns"),
        "spread_ratio": summary.spread_ratio,
        **interval_columns("spread", _spread_pair(summary.spread_interval), "_ratio"),
        "launches_ok": summary.count("ok"),
        "launches_invalid": summary.count("invalid"),
        "launches_failed": summary.count("failed") + summary.count("timed-out"),
        "launches_skipped": summary.count("skipped"),
        "launches_unsettled": summary.unsettled,
        "launches_disturbed": summary.disturbed,
        "launches_left_out": len(summary.left_out),
        "migrations": median_of(cell, migrations),
        **_span_columns("migrations", cell, migrations),
        "switches": median_of(cell, context_switches),
        **_span_columns("switches", cell, context_switches),
        "threads": median_of(cell, threads),
        **_span_columns("threads", cell, threads),
        "whole_ns": median_of(cell, total_wall_ns),
        **_span_columns("whole", cell, total_wall_ns, "_ns"),
        **serving_columns(cell.launches),
        "baseline": cell.baseline.key if cell.baseline else None,
        **attributes(comparison, "speedup_ratio"),
        **interval_columns("speedup", ends, "_ratio"),
        **attributes(comparison, "verdict"),
    }


def metric_columns(summary: CellSummary) -> dict[str, Any]:
    """The metric that is compared, as columns; empty if times are."""
    if (metric := summary.cell.metric) is None:
        return {}
    return {
        "metric": metric.name,
        "unit": metric.unit,
        "better": metric.better,
        "value": value_of(summary),
        **interval_columns("value", value_ends(summary)),
    }


def serving_columns(launches: Iterable[Launch]) -> dict[str, float | None]:
    """Throughput, and the tokens of streams, as columns; empty if nothing was served."""
    served = summarise_served(launches)
    if served is None:
        return {}
    columns: dict[str, float | None] = {"requests_per_s": served.per_s.value}
    if served.streamed is not None:
        tokens = streamed_document(served.streamed)
        columns |= {name: tokens[name] for name in StreamedCell.__struct_fields__}
    return columns


def _span_columns(
    name: str, cell: CellResult, metric: Callable[[Launch], float | None], unit: str = ""
) -> dict[str, float | None]:
    """The minimum and maximum over the launches; None if all have the same value."""
    minimum, maximum = span_of(cell, metric) or (None, None)
    return {f"{name}_least{unit}": minimum, f"{name}_most{unit}": maximum}


def serving_document(cell: CellResult, host: Host) -> dict[str, Any] | None:
    """Throughput, latencies, cost per request, errors, workers; None if nothing was served."""
    served = summarise_served(cell.launches)
    if served is None:
        return None
    return {
        "launches": served.launches,
        **_estimate("requests_per_s", served.per_s),
        **_estimate("p50_ns", served.p50_ns),
        **_estimate("p90_ns", served.p90_ns),
        **_estimate("p99_ns", served.p99_ns),
        "p99_9_ns": served.p99_9_ns,
        **_estimate("cpu_ns_per_request", served.cpu_ns),
        **attributes(served, "requests", "errors"),
        "streamed": None if served.streamed is None else streamed_document(served.streamed),
        "workers": _workers(cell, host),
    }


def streamed_document(streamed: StreamedCell) -> dict[str, Any]:
    """The tokens of streams: rate, times to the first and from one to the next, and goodput."""
    document: dict[str, Any] = {}
    for name in (
        "tokens_per_s", "first_token_p50_ns", "first_token_p99_ns", "per_token_p50_ns",
        "per_token_p99_ns",
    ):  # fmt: skip
        document |= _estimate(name, getattr(streamed, name))
    return document | attributes(streamed, "good_per_s", "good_share")


def _estimate(name: str, estimate: TypicalValue | None) -> dict[str, Any]:
    if estimate is None:
        return {name: None, f"{name}_interval": None}
    return {name: estimate.value, f"{name}_interval": intervals.interval_pair(estimate.interval)}


def _workers(cell: CellResult, host: Host) -> dict[str, Any]:
    workers = worker_activity(cell, host)
    return {
        "cpu_use": {str(cpu): use for cpu, use in workers.cpu_use.items()},
        "worker_overlap_share": workers.overlap,
        "migrations": workers.migrations,
        "core_bound_share": workers.core_bound,
        "core_bound_share_by_worker": list(workers.core_bound_workers),
        "memory_bound_share": workers.memory_bound,
        "remote_loads": workers.remote_loads,
        "remote_memory_share": workers.remote_memory,
        "unavailable": dict(workers.unavailable),
    }


def findings_document(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The findings of a diagnosis, with cells by their keys."""
    return [
        {
            **to_builtins(replace(finding, cells=())),
            "cells": [cell.key for cell in finding.cells],
        }
        for finding in findings
    ]


def commit_columns(commit: Commit | None) -> dict[str, Any]:
    """The measured revision: its commit, and the tree if it had uncommitted changes."""
    return {"commit": commit.sha if commit else None, **attributes(commit, "dirty", "tree")}


def _run(run: Run) -> dict[str, Any]:
    """One of two runs that are compared."""
    return {
        "run": run.id,
        "started_at": run.started_at,
        "host": run.host.id,
        "commit": run.commit.sha if run.commit else None,
        **attributes(run.commit, "subject", "dirty", "tree"),
    }


def _commit(commit: Commit) -> dict[str, Any]:
    """One of two commits that are compared."""
    return {"commit": commit.sha, **attributes(commit, "committed_at", "subject")}


def compare_document(
    comparison: RunComparison | CommitComparison | InterleavedComparison,
) -> dict[str, Any]:
    """A comparison as `corebound compare --json` prints it."""
    match comparison:
        case RunComparison():
            return _runs(comparison)
        case CommitComparison():
            return _commits(comparison)
        case InterleavedComparison():
            return _interleaved(comparison)


def _runs(comparison: RunComparison) -> dict[str, Any]:
    return {
        "before": _run(comparison.before),
        "after": _run(comparison.after),
        "note": RUNS_CAVEAT,
        "noise": comparison.noise,
        "changes": [attributes(change, "name", "before", "after") for change in comparison.changes],
        "cells": [_compared_cell(cell) for cell in comparison.cells],
        **_uncompared(comparison, "run"),
    }


def _commits(comparison: CommitComparison) -> dict[str, Any]:
    return {
        "project": comparison.project,
        "before": _commit(comparison.before),
        "after": _commit(comparison.after),
        "note": COMMITS_CAVEAT,
        "series": [_compared_series(series) for series in comparison.series],
        **_uncompared(comparison, "commit"),
    }


def _compared_cell(cell: ComparedCell) -> dict[str, Any]:
    return {
        **cell_identity(cell.scenario, cell.cell),
        "before_ns": cell.before,
        "after_ns": cell.after,
        "before_disturbed_launches": cell.before_summary.disturbed,
        "after_disturbed_launches": cell.after_summary.disturbed,
        "before_left_out_launches": len(cell.before_summary.left_out),
        "after_left_out_launches": len(cell.after_summary.left_out),
        **_compared(cell),
        "floor_ratio": cell.floor_ratio,
        "between_runs": between_runs_document(cell.between),
        "delay_ratio": cell.delay_ratio,
    }


def _compared_series(series: ComparedSeries) -> dict[str, Any]:
    return {
        **cell_identity(series.scenario, series.cell),
        "series": series.series.id,
        "host": series.series.host,
        **attributes(series, "unit", "before", "after"),
        **_compared(series),
    }


def _compared(row: ComparedRow) -> dict[str, Any]:
    """The comparison before correction; `is_significant`: whether it remains after it."""
    return {**comparison_document(row.comparison), "is_significant": row.is_significant}


def _uncompared(comparison: RunComparison | CommitComparison, side: str) -> dict[str, Any]:
    return {
        "not_alike": [
            {"id": name, "because": reason} for name, reason in comparison.not_comparable
        ],
        "only_in_one": [{"id": name, side: only} for name, only in comparison.only_in_one],
    }


def between_runs_document(between: BetweenRuns) -> dict[str, Any]:
    """The run-to-run variation of one cell."""
    return {
        **attributes(between, "spread_ratio", "freedom", "runs"),
        "source": "earlier runs" if between.runs else "default",
    }


def _interleaved(comparison: InterleavedComparison) -> dict[str, Any]:
    return {
        "project": comparison.sides.subject,
        "base": _side(comparison.sides.base),
        "head": _side(comparison.sides.head),
        "ending": comparison.ending,
        "records": str(comparison.records),
        "regressions": sum(cell.is_regression for cell in comparison.cells),
        "noise": comparison.noise,
        "cells": [_cell_at_commits(cell) for cell in comparison.cells],
    }


def _side(side: Side) -> object:
    """A commit in the form that records use, or the description of another kind of side."""
    return to_builtins(side.commit) or {"name": side.name, "title": side.title}


def _cell_at_commits(cell: CellAtCommits) -> dict[str, Any]:
    return {
        **cell_identity(cell.scenario, cell.cell),
        "base_ns": cell.before,
        "head_ns": cell.after,
        **comparison_document(cell.comparison),
        **attributes(cell, "verdict", "is_regression", "cpu_ratio", "missing"),
    }


def json_file(document: Any) -> str:
    """The content of a JSON file: indented, with a final newline, infinite numbers as null."""
    # What msgspec does not know are floats of NumPy.
    text = msgspec.json.format(msgspec.json.encode(document, enc_hook=float), indent=1)
    return f"{text.decode()}\n"


def hosts_document(comparison: HostComparison) -> dict[str, Any]:
    """Results across hosts; ratios are baseline time over cell time, times are in ns.

    A metric of a command is in its unit.
    """
    names, too_few = comparison.class_names, comparison.too_few
    return {
        "classes": [
            {
                "class": names[hardware],
                "label": hardware.label or None,
                "cpu_model": hardware.cpu_model,
                "cores": hardware.shape,
                "hosts": [host.id for host in hosts],
                "outliers_tested": hardware not in too_few,
            }
            for hardware, hosts in comparison.classes.items()
        ],
        "hosts": [
            {"id": host.id, "name": host.name, "class": names[host.hardware], "facts": host.facts}
            for host in comparison.hosts
        ],
        "scenarios": [
            {
                **attributes(scenario, "name", "title", "other_version"),
                "configurations": [_configuration_document(row, names) for row in scenario.rows],
            }
            for scenario in comparison.scenarios
        ],
        "outlier_hosts": [
            {
                "host": outlier.host.id,
                "name": outlier.host.name,
                "class": names[outlier.host.hardware],
                "values": [
                    {"scenario": scenario.name, "cell": row.key, "kind": row.kind}
                    for scenario, row, _ in outlier.rows
                ],
                **attributes(outlier, "differs"),
            }
            for outlier in comparison.outliers
        ],
        "recommended": [
            {
                "class": names.get(advice.hardware, advice.hardware.name),
                **attributes(advice, "scenario", "objective"),
                "configurations": [
                    {"configuration": name, "hosts": number} for name, number in advice.recommended
                ],
            }
            for advice in comparison.advice
        ],
    }


def _finite_exp(log: float | None) -> float | None:
    return math.exp(log) if log is not None and log < _MOST_LOG else None


def _configuration_document(
    row: ConfigurationRow, names: Mapping[HardwareClass, str]
) -> dict[str, Any]:
    metric = row.metric if row.kind == "time" else None
    name = "value" if metric else {"speedup": "speedup_ratio", "time": "time_ns"}[row.kind]

    def measured(
        name: str, value: float | None, ends: tuple[float, float] | None
    ) -> dict[str, Any]:
        if metric is not None:
            value, ends = value and metric.from_time_ns(value), ends and metric.span_of(ends)
        return {name: value, "interval": ends}

    return {
        "cell": row.key,
        "configuration": row.name,
        "kind": row.kind if metric is None else "metric",
        "metric": row.metric and attributes(row.metric, "name", "unit", "better"),
        "classes_differ": row.differs,
        "difference_p_value": row.difference and row.difference.p_value,
        "classes": [
            {
                "class": names[each.hardware],
                **measured(name, each.value, intervals.interval_pair(each.interval)),
                "verdict": each.verdict,
                "spread": math.expm1(each.estimate.spread)
                if each.estimate is not None and each.estimate.spread is not None
                else None,
                "hosts": [
                    {
                        "host": member.host.id,
                        **measured("value", *member.cell.of(row.kind)),
                        "verdict": member.cell.verdict,
                        "deviation_ratio": math.exp(member.deviation.log),
                        "limit_ratio": _finite_exp(member.deviation.limit),
                        "outlier": member.deviation.is_outlier,
                    }
                    for member in each.members
                ],
                "without": [{"host": name, "reason": reason} for name, reason in each.without],
            }
            for each in row.classes
        ],
    }
