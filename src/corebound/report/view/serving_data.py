"""What a server's cell came to, for machines: unrounded, units in the names."""

from __future__ import annotations

from typing import Any

from corebound.model.run import Host
from corebound.report.view.serving_workers import workers_data
from corebound.report.view.study import CellStudy
from corebound.stats.serving import Estimate, summarise_served


def serving_data(cell: CellStudy, host: Host) -> dict[str, Any] | None:
    """Throughput, latencies, cost of a request, errors, workers; None where nothing was served."""
    served = summarise_served(cell.launches)
    if served is None:
        return None
    return {
        "launches": served.launches,
        **_with_interval("requests_per_s", served.per_s),
        **_with_interval("p50_ns", served.p50_ns),
        **_with_interval("p90_ns", served.p90_ns),
        **_with_interval("p99_ns", served.p99_ns),
        "p99_9_ns": served.p99_9_ns,
        **_with_interval("cpu_ns_per_request", served.cpu_ns),
        "requests": served.requests,
        "errors": served.errors,
        "workers": workers_data(cell, host),
    }


def _with_interval(name: str, estimate: Estimate) -> dict[str, Any]:
    interval = estimate.interval
    bounds = None if interval is None else (interval.low, interval.high)
    return {name: estimate.value, f"{name}_interval": bounds}
