"""Export runs as asv results: scenarios as benchmarks, axes as parameters, launches as samples.

Source: asv 0.6, `asv/results.py`, format 2. docs/how-to/exchange.md lists what it cannot represent.
"""

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from msgspec import Struct

from corebound.exchange.asv.layout import BENCHMARKS
from corebound.exchange.run_export import ExportedCell
from corebound.scenario.cell import Cell
from corebound.stats.intervals import geometric_mean_interval
from corebound.text import path_component

_COLUMNS = (
    "result", "params", "version", "started_at", "duration", "stats_ci_99_a", "stats_ci_99_b",
    "stats_q_25", "stats_q_75", "stats_number", "stats_repeat", "samples",
)  # fmt: skip
_S = 1e9
# asv supports only full products of parameters. With more gaps per cell than this, a single
# parameter lists the cells themselves.
_MOST_GAPS = 4


def documents(cells: Sequence[ExportedCell], benchmarks: Mapping[str, Any]) -> dict[str, str]:
    """Build every file of the tree as text, by its path below the results folder.

    Args:
        cells: Cells of runs of one commit, oldest run first. If a cell has several results at one
            commit, on one host and in one environment, the last result counts.
        benchmarks: The existing content of benchmarks.json; other names are kept.
    """
    by_scenario = _by_scenario(cells)
    shapes = {
        name: _shape([cell.cell for cell in own_cells]) for name, own_cells in by_scenario.items()
    }
    entries = {
        _name(scenario): _benchmark(own_cells[-1], shapes[scenario])
        for scenario, own_cells in by_scenario.items()
    }
    files: dict[str, Any] = {BENCHMARKS: {**benchmarks, **entries, "version": 2}}
    for key, results in _by_file(cells).items():
        host = results[-1].run.host
        files[f"{key[0]}/machine.json"] = {**_machine(results[-1]), "hostname": host.name}
        files["/".join(key)] = _result(results, shapes)
    return {name: f"{json.dumps(document)}\n" for name, document in sorted(files.items())}


def _name(scenario: str) -> str:
    """Avoid the name `version`, which asv's files reserve; scenario names have no capitals."""
    return "Version" if scenario == "version" else scenario


def _by_scenario(cells: Sequence[ExportedCell]) -> dict[str, list[ExportedCell]]:
    by_scenario: dict[str, list[ExportedCell]] = {}
    for cell in cells:
        by_scenario.setdefault(cell.cell.scenario, []).append(cell)
    return by_scenario


def _by_file(cells: Sequence[ExportedCell]) -> dict[tuple[str, str], list[ExportedCell]]:
    """Group cells by machine folder and result file."""
    files: dict[tuple[str, str], dict[str, ExportedCell]] = {}
    for cell in cells:
        sha = cell.run.commit.sha if cell.run.commit else ""
        name = path_component(f"{sha[:8]}-{_environment(cell)}") + ".json"
        file_cells = files.setdefault((path_component(cell.run.host.id), name), {})
        file_cells.pop(cell.cell.id, None)  # so that the latest result is last
        file_cells[cell.cell.id] = cell
    return {key: list(file_cells.values()) for key, file_cells in files.items()}


def _environment(cell: ExportedCell) -> str:
    return f"corebound-{cell.cell.environment}"


def _machine(cell: ExportedCell) -> dict[str, Any]:
    host = cell.run.host
    memory = host.memory_bytes
    return {
        "machine": host.id,
        "cpu": host.cpu_model,
        "num_cpu": str(len(host.topology.allowed)),
        "os": host.kernel,
        "ram": "" if memory is None else f"{memory / 2**30:.0f} GiB",
        "version": 1,
    }


class _Shape(Struct, frozen=True, kw_only=True):
    """A benchmark's parameters: the scenario's axes if `axes`, else one that lists its cells."""

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    axes: bool

    def of(self, cell: Cell) -> tuple[str, ...]:
        """The parameter combination of a cell."""
        return tuple(value for _, value in cell.axes) if self.axes else (cell.key,)


def _shape(cells: Sequence[Cell]) -> _Shape:
    different = {cell.axes for cell in cells}
    names = {tuple(name for name, _ in axes) for axes in different}
    if len(names) == 1:
        (axis_names,) = names
        values = tuple(
            tuple(dict.fromkeys(dict(cell.axes)[name] for cell in cells)) for name in axis_names
        )
        if math.prod(map(len, values)) <= len(different) * _MOST_GAPS:
            return _Shape(names=axis_names, values=values, axes=True)
    keys = tuple(dict.fromkeys(cell.key for cell in cells))
    return _Shape(names=("cell",), values=(keys,), axes=False)


def _params(shape: _Shape) -> list[list[str]]:
    return [[repr(value) for value in axis] for axis in shape.values]


def _benchmark(last: ExportedCell, shape: _Shape) -> dict[str, Any]:
    return {
        "name": _name(last.cell.scenario),
        "pretty_name": last.scenario.title,
        "code": json.dumps(last.source.document, indent=1, ensure_ascii=False),
        "type": "time",
        "unit": "seconds",
        "version": last.source.sha256,
        "param_names": list(shape.names),
        "params": _params(shape),
        "timeout": 60.0,
        "min_run_count": 2,
        "number": 1,
        "repeat": 0,
        "rounds": 1,
        "sample_time": 0.01,
        "warmup_time": 0,
    }


def _result(cells: Sequence[ExportedCell], shapes: Mapping[str, _Shape]) -> dict[str, Any]:
    last = cells[-1]
    commit, lock = last.run.commit, last.environment
    python = lock.python if lock else ""
    rows = {
        _name(name): _row(shapes[name], scenario_cells)
        for name, scenario_cells in _by_scenario(cells).items()
    }
    machine = {name: value for name, value in _machine(last).items() if name != "version"}
    return {
        "commit_hash": commit.sha if commit else "",
        "env_name": _environment(last),
        "date": _ms(commit.committed_at) if commit else 0,
        "params": {**machine, "python": python, "environment": last.cell.environment},
        "python": python,
        "requirements": {},
        "env_vars": {},
        "result_columns": list(_COLUMNS),
        "results": rows,
        "durations": {},
        "version": 2,
    }


def _ms(at: str) -> int:
    """A time in asv's unit; 0 (no date) if git's date is beyond the year 9999."""
    try:
        return round(datetime.fromisoformat(at).timestamp() * 1000)
    except ValueError:
        return 0


def _row(shape: _Shape, cells: Sequence[ExportedCell]) -> list[Any]:
    """One benchmark's results; cells that were never planned count as skipped."""
    version = cells[-1].source.sha256
    by_values = {shape.of(cell.cell): cell for cell in cells if cell.source.sha256 == version}
    row_cells = [by_values.get(values) for values in itertools.product(*shape.values)]
    stats = [_stats(cell) for cell in row_cells]
    return [
        [_value(cell) for cell in row_cells],
        _params(shape),
        # A version of its own, so that asv ignores results of older forms of the scenario.
        version,
        _ms(cells[-1].run.started_at),
        sum(launch.duration_ns for cell in cells for launch in cell.launches) / _S,
        *([cell and cell[name] for cell in stats] for name in ("low", "high", "q25", "q75")),
        [cell and 1 for cell in stats],
        [cell and cell["repeat"] for cell in stats],
        [_samples(cell) or None for cell in row_cells],
    ]


def _value(cell: ExportedCell | None) -> float | None:
    """Seconds; NaN is asv's value for skipped, and None its value for failed."""
    if cell is None or all(launch.status == "skipped" for launch in cell.launches):
        return math.nan
    median_ns = cell.times.median_ns
    return None if median_ns is None else median_ns / _S


def _samples(cell: ExportedCell | None) -> list[float]:
    return [launch.wall_median_ns / _S for launch in cell.summary.launches] if cell else []


def _stats(cell: ExportedCell | None) -> dict[str, float | None] | None:
    """Statistics by asv's names: the bounds are for 99 %, not for the 95 % of corebound's pages."""
    samples = _samples(cell)
    if not samples:
        return None
    bounds = geometric_mean_interval(samples, confidence=0.99)
    low, high = (bounds.low, bounds.high) if bounds else (-math.inf, math.inf)
    q25, q75 = np.quantile(samples, (0.25, 0.75))
    return {
        "low": low, "high": high, "q25": float(q25), "q75": float(q75), "repeat": len(samples),
    }  # fmt: skip
