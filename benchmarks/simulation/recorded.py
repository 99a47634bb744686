"""Change points in real measurements: launches with labels, and histories of asv.

The true steps of a real history are unknown. Each is searched as it is, and again with an added
step of 5 %.
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

# Shorter histories are not used.
LEAST_POINTS = 40
LABELLED_SERIES = 200


def _found(rng: np.random.Generator, logs: Array) -> tuple[bool, bool]:
    """Whether a series has a change point, and whether an added step of 5 % is found."""
    before = find_steps(logs)
    quarter = logs.size // 4
    at = int(rng.integers(quarter, logs.size - quarter + 1))
    stepped = logs.copy()
    stepped[at:] += STEP
    return bool(before), bool(near(find_steps(stepped), at, "up"))


def launches(rng: np.random.Generator, path: Path) -> None:
    """Search iterations of real launches that are labelled as one level, as if they were nights.

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
    print(f"{len(results)} stretches of {NIGHTS} iterations labelled as one level:")
    _report(results)


def asv(rng: np.random.Generator, path: Path) -> None:
    """Search every series of an asv history, a tar file of its results folder."""
    all_series = series(path)
    print(f"{path.name}: {len(all_series)} series of {LEAST_POINTS} points or more:")
    if all_series:
        _report([_found(rng, logs) for logs in all_series])


def series(path: Path) -> list[Array]:
    """The logarithms of every long enough series of an asv history."""
    return [
        logs
        for points in _asv_series(path).values()
        if len(logs := np.log([value for _, value in sorted(points)])) >= LEAST_POINTS
    ]


def _report(results: Iterable[tuple[bool, bool]]) -> None:
    pairs = list(results)
    print(f"  a change point as measured: {rate(before for before, _ in pairs)};")
    print(f"  an added step of 5 % is found: {rate(found for _, found in pairs)}.\n")


def _asv_series(path: Path) -> dict[tuple[str, ...], list[tuple[int, float]]]:
    """(date, value) by machine, environment, benchmark and parameters."""
    by_key: dict[tuple[str, ...], list[tuple[int, float]]] = defaultdict(list)
    with tarfile.open(path) as archive:
        for member in archive:
            parts = Path(member.name).parts
            if not member.name.endswith(".json") or "results" not in parts[:-2]:
                continue
            content = archive.extractfile(member)
            if content is None or parts[-1] == "machine.json":
                continue
            stored = json.loads(content.read())
            for name, index, value in _asv_values(stored):
                key = (parts[-2], stored.get("env_name", ""), name, str(index))
                by_key[key].append((stored["date"], value))
    return by_key


def _asv_values(stored: dict[str, object]) -> Iterator[tuple[str, int, float]]:
    """The times in one result file, without sizes and failures."""
    results = stored["results"]
    assert isinstance(results, dict)
    for name, result in results.items():
        if isinstance(result, dict):
            values = result.get("result")
        else:
            values = result[0] if isinstance(result, list) and result else None
        for index, value in enumerate(values or []):
            is_time = name.rsplit(".", 1)[-1].startswith("time_")
            if is_time and isinstance(value, int | float) and 0 < value < math.inf:
                yield name, index, float(value)
