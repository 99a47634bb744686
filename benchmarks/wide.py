"""Generate a history with the shape of large asv projects: few files, many cells.

Real ones have thousands of combinations of parameters, on several machines and in several
environments with long names, each measured about a hundred times. sunpy's has many files and few
series. `python -m benchmarks.publish --wide` compares the costs, and `--deep` those of a history
with one machine and more commits.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

BENCHMARKS = 300
COMMITS = 120
# About 8,000 series of 350 points.
DEEP_BENCHMARKS = 450
DEEP_COMMITS = 350
# Parameters as asv writes them, with Python notation, commas and brackets.
_AXES = {
    "dtype": ("'int64'", "'float64'", "'object'", "'datetime64[ns, tz]'", "'string[pyarrow]'"),
    "unique": ("True", "False"),
    "axis": ("0", "1"),
    "size": ("1000", "100000", "1000000"),
    "method": tuple(f"'{name}'" for name in ("mean", "sum", "median", "std", "var", "skew",
                                            "count", "nunique", "first", "last", "rank")),
    "index": ("<class 'pandas.core.indexes.range.RangeIndex'>", "<function f at 0x7f1>", "None"),
    "window": ("('rolling', {'window': 10})", "('expanding', {})"),
}  # fmt: skip
_LONG = "conda-py3.10-Cython3.0-jinja2-matplotlib-numba-numexpr-openpyxl-pyarrow-pytables-scipy"
# For each machine, its environments, and the interval between measured commits.
_MACHINES = {
    "runner": ((_LONG,), 1),
    "desk": (("conda-py3.10-Cython0.29.32", "conda-py3.11-Cython3.0"), 4),
}
_ONE_MACHINE = {"runner": _MACHINES["runner"]}
_NOISES = (0.005, 0.01, 0.03, 0.08)
_DAY_MS = 86_400_000
_BEGAN_MS = 1_577_836_800_000
_COLUMNS = ("result", "params", "version", "started_at", "duration", "stats_ci_99_a",
            "stats_ci_99_b")  # fmt: skip


class _Benchmark(Struct, frozen=True, kw_only=True):
    """A benchmark: its parameters, and the level of each cell (row) at each commit, in seconds."""

    names: tuple[str, ...]
    values: tuple[tuple[str, ...], ...]
    levels: NDArray[np.float64]
    noises: NDArray[np.float64]


def make_deep(into: Path, *, benchmarks: int = DEEP_BENCHMARKS) -> None:
    """Write a project with one machine and one environment, measured at 350 commits."""
    make(into, benchmarks=benchmarks, commits=DEEP_COMMITS, machines=_ONE_MACHINE)


def make(
    into: Path,
    *,
    benchmarks: int = BENCHMARKS,
    commits: int = COMMITS,
    machines: Mapping[str, tuple[tuple[str, ...], int]] = _MACHINES,
) -> None:
    """Write an asv project with its results, which are the same every time.

    A third of the cells have one step, some have two, and a tenth of the benchmarks have one in all
    their cells. One result in a hundred is missing.

    Args:
        into: An empty folder.
        benchmarks: The number of benchmarks, each with 1 to 165 cells.
        commits: The number of commits.
        machines: For each machine, its environments, and the interval between measured commits.
    """
    rng = np.random.default_rng(11)
    made = {
        f"module{number % 12}.Class{number % 50}.time_{number}": _benchmark(rng, commits)
        for number in range(benchmarks)
    }
    known = {
        name: {
            "name": name, "param_names": shape.names, "params": shape.values, "type": "time",
            "unit": "seconds", "version": hashlib.sha256(name.encode()).hexdigest(), "code": "",
        }
        for name, shape in made.items()
    }  # fmt: skip
    _write(into / "results" / "benchmarks.json", {**known, "version": 2})
    for machine, (environments, every) in machines.items():
        folder = into / "results" / machine
        about = {"machine": machine, "arch": "x86_64", "cpu": "a processor", "num_cpu": "8",
                 "os": "Linux", "ram": "32000000"}  # fmt: skip
        _write(folder / "machine.json", {**about, "version": 1})
        for environment, at in itertools.product(environments, range(0, commits, every)):
            sha = hashlib.sha1(f"{at}".encode(), usedforsecurity=False).hexdigest()
            content = {
                "commit_hash": sha, "env_name": environment, "date": _BEGAN_MS + at * _DAY_MS,
                "params": {**about, "python": "3.10"}, "python": "3.10", "requirements": {},
                "env_vars": {}, "result_columns": _COLUMNS, "durations": {}, "version": 2,
                "results": {
                    name: _row(shape, at, str(known[name]["version"]), rng)
                    for name, shape in made.items()
                    if rng.random() > 0.01
                },
            }  # fmt: skip
            _write(folder / f"{sha[:8]}-{environment}.json", content)


def _benchmark(rng: np.random.Generator, commits: int) -> _Benchmark:
    chosen = rng.choice(sorted(_AXES), size=rng.integers(0, 4), replace=False)
    values = tuple(_AXES[str(name)] for name in chosen)
    cells = int(np.prod([len(several) for several in values], dtype=np.int64))
    levels = 10 ** rng.uniform(-5, 0, size=(cells, 1)) * np.ones((1, commits))
    shared = [rng.integers(commits)] * (rng.random() < 0.1)
    for cell in range(cells):
        own = rng.integers(commits, size=rng.choice([0, 0, 1, 2]))
        for at in (*shared, *own):
            levels[cell, at:] *= rng.choice([0.7, 0.85, 1.1, 1.3, 2.0])
    return _Benchmark(
        names=tuple(map(str, chosen)),
        values=values,
        levels=levels,
        noises=rng.choice(_NOISES, size=cells),
    )


def _row(shape: _Benchmark, at: int, version: str, rng: np.random.Generator) -> list[Any]:
    """The entry of a benchmark in the result file of a commit."""
    times_s = shape.levels[:, at] * np.exp(rng.normal(0, shape.noises))
    # asv itself stores only five digits of an interval.
    bounds = ([float(f"{end:.4e}") for end in times_s * factor] for factor in (0.98, 1.02))
    return [times_s.tolist(), shape.values, version, _BEGAN_MS, 10.0, *bounds]


def _write(file: Path, content: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")
