"""One run for services that draw what they are sent: Bencher, github-action-benchmark.

Source: Bencher, "Bencher Metric Format (BMF) JSON"; github-action-benchmark, README,
"customSmallerIsBetter". Cells without a figure are left out, for both take numbers only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from corebound.exchange.cells import CellOfRun

_INDENT = 1


def bencher(cells: Sequence[CellOfRun]) -> str:
    """Latency of each cell in nanoseconds, Bencher's own unit of it, with its 95 % interval."""
    document = {}
    for one, figure_ns in _figures(cells):
        metric = {"value": figure_ns}
        if bounds := one.summary.interval:
            metric |= {"lower_value": bounds.low, "upper_value": bounds.high}
        document[one.cell.id] = {"latency": metric}
    return _text(document)


def github_action(cells: Sequence[CellOfRun]) -> str:
    """A list of figures of which smaller is better, each with its interval in words."""
    return _text([_entry(one, figure_ns) for one, figure_ns in _figures(cells)])


def _entry(one: CellOfRun, figure_ns: float) -> dict[str, Any]:
    run, bounds = one.run, one.summary.interval
    entry: dict[str, Any] = {"name": one.cell.id, "unit": "ns", "value": figure_ns}
    if bounds:
        entry["range"] = f"{bounds.low:.0f} to {bounds.high:.0f}"
    said = [one.scenario.title, f"{len(one.summary.launches)} launches", f"run {run.id}"]
    entry["extra"] = "\n".join([*said, f"{run.host.name}, {run.host.cpu_model}"])
    return entry


def _figures(cells: Iterable[CellOfRun]) -> Iterable[tuple[CellOfRun, float]]:
    for one in cells:
        if one.summary.median_ns is not None:
            yield one, one.summary.median_ns


def _text(document: Any) -> str:
    return f"{json.dumps(document, indent=_INDENT, ensure_ascii=False, allow_nan=False)}\n"
