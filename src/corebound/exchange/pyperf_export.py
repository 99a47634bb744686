"""One run as a suite of pyperf: a benchmark a cell, a pyperf run an `ok` launch.

Source: pyperf 2, its JSON format 1.0.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from corebound.exchange.cells import CellOfRun
from corebound.exchange.pyperf_command import OWN
from corebound.model.record import Launch
from corebound.stats.summary import Warmup, summarise_launch

_S = 1e9


def suite(cells: Sequence[CellOfRun]) -> str:
    """The text of a pyperf file; cells without an `ok` launch are left out, as pyperf has none.

    Args:
        cells: Of one run; one of them at least has an `ok` launch.
    """
    run = cells[0].run
    metadata = _told(
        {
            "unit": "second",
            "hostname": run.host.name,
            "cpu_model_name": run.host.cpu_model,
            "cpu_count": len(run.host.topology.allowed),
            "platform": run.host.kernel,
            "corebound_version": run.corebound,
            "corebound_run": run.id,
            "corebound_host": run.host.id,
            "commit_id": run.commit.sha if run.commit else "",
            "commit_date": run.commit.committed_at if run.commit else "",
            "corebound_dirty": "yes" if run.commit and run.commit.dirty else "",
            "corebound_tree": (run.commit.tree or "") if run.commit else "",
            "commit_subject": run.commit.subject if run.commit else "",
        }
    )
    made = [_benchmark(one) for one in cells if one.summary.launches]
    return f"{json.dumps({'version': '1.0', 'metadata': metadata, 'benchmarks': made})}\n"


def _told(metadata: dict[str, Any]) -> dict[str, Any]:
    """What is known: pyperf takes no empty text, and none of several lines."""
    lines = {
        name: " ".join(value.split()) if isinstance(value, str) else value
        for name, value in metadata.items()
    }
    return {name: value for name, value in lines.items() if value not in {"", None}}


def _benchmark(one: CellOfRun) -> dict[str, Any]:
    lock = one.environment
    used = {summary.launch for summary in one.summary.launches}
    return {
        "metadata": _told(
            {
                "name": one.cell.id,
                "description": one.scenario.title,
                "python_version": lock.python if lock else "",
                "corebound_scenario": one.cell.scenario,
                "corebound_cell": one.cell.key,
                "corebound_scenario_sha256": one.source.sha256,
                OWN: _again(one),
            }
        ),
        "runs": [_run(launch, one.warmup) for launch in one.launches if launch.id in used],
    }


def _again(one: CellOfRun) -> str:
    """The command that measures a cell again; empty where pyperf's one line would not hold it."""
    profile = () if one.run.profile is None else ("--profile", one.run.profile)
    only = ("--only", one.cell.key) if one.cell.axes else ()
    told = shlex.join(("corebound", "run", one.source.path, *profile, *only))
    return told if " ".join(told.split()) == told else ""


def _run(launch: Launch, warmup: Warmup) -> dict[str, Any]:
    warm_ns, kept_ns = _parts(launch, warmup)
    metadata: dict[str, Any] = {
        "date": datetime.fromisoformat(launch.started_at).strftime("%Y-%m-%d %H:%M:%S"),
        "duration": launch.duration_ns / _S,
        "loops": 1,
    }
    peak = max((worker.peak_rss_bytes or 0 for worker in launch.workers), default=0)
    if peak:
        metadata["mem_max_rss"] = peak
    run: dict[str, Any] = {"metadata": metadata, "values": [_seconds(one) for one in kept_ns]}
    if warm_ns:
        run["warmups"] = [[1, _seconds(one)] for one in warm_ns]
    return run


def _seconds(duration_ns: float) -> float:
    # pyperf takes no 0: half a tick of the clock, which a step of no time may have taken.
    return max(duration_ns, 0.5) / _S


def _parts(launch: Launch, warmup: Warmup) -> tuple[list[float], list[float]]:
    """Warm-ups, and what enters a statistic: of all workers, one after another.

    A server's launch has one value, the figure it is judged by: its requests are
    counted, not kept one by one.
    """
    if launch.served is not None:
        return [], [summarise_launch(launch, warmup).median_ns]
    warm: list[float] = []
    kept: list[float] = []
    for worker in launch.workers:
        if worker.wall_ns:
            alone = replace(launch, workers=(worker,))
            start = len(worker.wall_ns) - summarise_launch(alone, warmup).used
            warm += worker.wall_ns[:start]
            kept += worker.wall_ns[start:]
    return warm, kept
