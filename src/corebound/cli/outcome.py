"""What a run came to, in words or JSON, and its exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from corebound import units
from corebound.errors import HostError, LaunchError
from corebound.model.record import Kind, Launch, Run
from corebound.report.view.findings import findings_data
from corebound.report.view.study import CellStudy, Study, study
from corebound.runner import Ending
from corebound.stats.interval import Interval

VERDICTS = {"faster": "▲ faster", "slower": "▼ slower", "equivalent": "= equivalent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A run as far as it came."""

    run: Run
    file: Path
    launches: tuple[Launch, ...]
    ending: Ending


def exit_code(told: Told) -> int:
    """4 if a launch failed, timed out or was invalid; 3 if the host holds no cell; else 0."""
    statuses = {launch.status for launch in told.launches}
    if statuses & {"failed", "timed-out", "invalid"}:
        return LaunchError.exit_code
    holds_none = statuses == {"skipped"} and told.ending == "complete"
    return HostError.exit_code if holds_none else 0


def _studies(told: Told) -> Iterator[Study]:
    for source in told.run.scenarios:
        name = source.document.get("name")
        own = [launch for launch in told.launches if launch.cell.scenario == name]
        yield study(told.run, source, own)


def show(told: Told, console: Console) -> None:
    """Print a table a scenario, then where everything is."""
    for one in _studies(told):
        console.print(_table(one))
    counts = _counts(told, "measure")
    said = ", ".join(f"{number} {status}" for status, number in counts.items())
    if profiled := _counts(told, "profile"):
        said += "; operators: "
        said += ", ".join(f"{number} {status}" for status, number in profiled.items())
    console.print(Text(said))
    if told.ending == "out of time":
        console.print(Text("The budget ran out. Go on with `corebound run --resume`."))
    console.print(Text(f"Records: {told.file}"), soft_wrap=True)


def _counts(told: Told, kind: Kind) -> dict[str, int]:
    return dict(Counter(launch.status for launch in told.launches if launch.kind == kind))


def _table(one: Study) -> Table:
    table = Table(title=one.scenario.title, title_justify="left", box=None, padding=(0, 1))
    axes = ", ".join(axis for axis, _ in one.planned[0].axes) or "cell"
    table.add_column(axes, overflow="fold")
    for heading in ("median", "speed-up", "95 %"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    for cell in one.cells:
        table.add_row(*_row(cell))
    return table


def _row(cell: CellStudy) -> tuple[str, str, str, str, str]:
    median_ns, compared, label = cell.summary.median_ns, cell.comparison, cell.cell.label
    if median_ns is None:
        return label, "–", "–", "–", ", ".join(status for status, _ in cell.summary.counts)
    if compared is None:
        word = "baseline" if cell.baseline is None else "baseline missing"
        return label, units.duration(median_ns), "", "", word
    bounds = compared.interval
    return (
        label,
        units.duration(median_ns),
        units.ratio(compared.speedup_ratio),
        f"{bounds.low:.2f}–{bounds.high:.2f}" if bounds else "–",
        VERDICTS.get(compared.verdict, "? undecided"),
    )


def as_json(told: Told) -> str:
    """Everything `show` prints, for scripts."""
    studies = tuple(_studies(told))
    document: dict[str, Any] = {
        "run": told.run.id,
        "records": str(told.file),
        "ending": told.ending,
        "launches": _counts(told, "measure"),
        "profiles": _counts(told, "profile"),
        "cells": [_cell(cell) for one in studies for cell in one.cells],
        "findings": [
            {"scenario": one.scenario.name, **finding}
            for one in studies
            for finding in findings_data(one)
        ],
    }
    return msgspec.json.format(msgspec.json.encode(document), indent=1).decode()


def _cell(one: CellStudy) -> dict[str, Any]:
    summary, compared = one.summary, one.comparison
    return {
        "id": summary.cell.id,
        "statuses": dict(summary.counts),
        "median_ns": summary.median_ns,
        "median_interval_ns": _bounds(summary.interval),
        "cpu_median_ns": summary.cpu_median_ns,
        "unsettled_launches": summary.unsettled,
        "baseline": one.baseline.id if one.baseline else None,
        "speedup_ratio": compared.speedup_ratio if compared else None,
        "speedup_interval": _bounds(compared.interval) if compared else None,
        "verdict": compared.verdict if compared else None,
        "launches_needed": compared.launches_needed if compared else None,
    }


def _bounds(interval: Interval | None) -> tuple[float, float] | None:
    return None if interval is None else (interval.low, interval.high)
