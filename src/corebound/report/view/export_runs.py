"""The figures of pages about runs for machines: two runs compared, and a host over its runs."""

from __future__ import annotations

import json
import math
from typing import Any

from msgspec import to_builtins

from corebound.model.run import Run
from corebound.report.view.command import again_command, asked_command
from corebound.report.view.comparing import ComparedCell, RunComparison
from corebound.report.view.export import said_of
from corebound.report.view.export_lines import finite, lines_csv
from corebound.report.view.hosts import HostStudy
from corebound.stats.summary import CellSummary


def comparison_csv(found: RunComparison, records: str = "") -> str:
    """Every cell that two runs were compared by, a line each, by change over noise.

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
    """A host as its latest run saw it, its noise, and what the doctor saw in each run.

    Args:
        study: What is known of the host.
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
    """The same as JSON has it, which knows no infinity: what is not known is absent."""
    if isinstance(value, dict):
        return {str(name): _known(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_known(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
