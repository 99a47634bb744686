"""Steps in what was really measured: labelled launches, and histories that asv kept.

Nobody knows which steps a real history has. So each is taken as it is, and once
more with a step of 5 % put in: what is found there and not before was found.
"""

from __future__ import annotations

import gzip
import json
import math
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from benchmarks.simulation.histories import NIGHTS, STEP, Array, find_steps, near, rate

# A history with fewer points says little either way.
LEAST_POINTS = 40
LABELLED_SERIES = 200


def _found(rng: np.random.Generator, logs: Array) -> tuple[bool, bool]:
    """Whether a series has a step, and whether one of 5 % that is put in is found."""
    before = find_steps(logs)
    quarter = logs.size // 4
    at = int(rng.integers(quarter, logs.size - quarter + 1))
    stepped = logs.copy()
    stepped[at:] += STEP
    return bool(before), bool(near(find_steps(stepped), at, "up"))


def launches(rng: np.random.Generator, path: Path) -> None:
    """Iterations of real launches that are labelled to be of one level, as if they were nights.

    `path` is a gzipped JSON list of benchmarks with `changepoints` (the last index of
    each segment, for each fork) and `series` (seconds).
    """
    stretches = [
        np.log(np.array(series[start : start + NIGHTS]))
        for benchmark in json.loads(gzip.decompress(path.read_bytes()))
        for ends, series in zip(benchmark["changepoints"], benchmark["series"], strict=True)
        for first, last in zip([0, *ends[:-1]], ends, strict=True)
        for start in range(first + 1, last - NIGHTS, NIGHTS)
        if min(series[start : start + NIGHTS]) > 0
    ]
    chosen = rng.permutation(len(stretches))[:LABELLED_SERIES]
    results = [_found(rng, stretches[index]) for index in chosen]
    print(f"{len(results)} stretches of {NIGHTS} iterations that are labelled as of one level:")
    _report(results)


def asv(rng: np.random.Generator, path: Path) -> None:
    """Every series of an asv history, a tar file of its results directory."""
    series = [
        logs
        for points in _asv_series(path).values()
        if len(logs := np.log([figure for _, figure in sorted(points)])) >= LEAST_POINTS
    ]
    print(f"{path.name}: {len(series)} series of {LEAST_POINTS} points or more:")
    if series:
        _report([_found(rng, logs) for logs in series])


def _report(results: Iterable[tuple[bool, bool]]) -> None:
    pairs = list(results)
    print(f"  with a step as they are {rate(before for before, _ in pairs)};")
    print(f"  a step of 5 % that was put in is found in {rate(found for _, found in pairs)}.\n")


def _asv_series(path: Path) -> dict[tuple[str, ...], list[tuple[int, float]]]:
    """(date, figure) by machine, environment, benchmark and parameters."""
    series: dict[tuple[str, ...], list[tuple[int, float]]] = defaultdict(list)
    with tarfile.open(path) as archive:
        for member in archive:
            parts = Path(member.name).parts
            if not member.name.endswith(".json") or "results" not in parts[:-2]:
                continue
            content = archive.extractfile(member)
            if content is None or parts[-1] == "machine.json":
                continue
            kept = json.loads(content.read())
            for name, index, figure in _asv_figures(kept):
                key = (parts[-2], kept.get("env_name", ""), name, str(index))
                series[key].append((kept["date"], figure))
    return series


def _asv_figures(kept: dict[str, object]) -> Iterator[tuple[str, int, float]]:
    """Times of one result file; sizes and what failed are left out."""
    results = kept["results"]
    assert isinstance(results, dict)
    for name, result in results.items():
        if isinstance(result, dict):
            figures = result.get("result")
        else:
            figures = result[0] if isinstance(result, list) and result else None
        for index, figure in enumerate(figures or []):
            is_time = name.rsplit(".", 1)[-1].startswith("time_")
            if is_time and isinstance(figure, int | float) and 0 < figure < math.inf:
                yield name, index, float(figure)
