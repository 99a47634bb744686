"""Result files of asv, one file at a time, whichever of its two formats they are in.

Source: asv 0.6, `asv/results.py`: version 2 has rows by `result_columns`, whose tails may be
cut; version 1 has an object, or a bare figure, for each benchmark.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from corebound.exchange.reading import Unreadable

# A benchmark of more parameter combinations is a damaged file.
_MOST_CELLS = 1_000_000
# The end of the year 9999, which is as far as ISO 8601 goes.
_LATEST_MS = 253_402_300_800_000
_OTHER_TOOL = "Delete it, or move it out of the folder of results."
_DAMAGED = "Fetch it again from where it was copied, or delete it."

_COMMIT = re.compile(rb'"commit_hash"\s*:\s*"([0-9a-zA-Z]+)"')

_decoder = msgspec.json.Decoder()


class _Row(NamedTuple):
    """What is read of a benchmark, by the names of version 2's columns."""

    result: Any
    params: Any
    version: Any
    stats_ci_99_a: Any
    stats_ci_99_b: Any
    samples: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one benchmark came to in one file.

    Attributes:
        benchmark: Its name.
        params: The values of each parameter as asv wrote them, `repr` of the original;
            figures are of their Cartesian product, the last one fastest.
        values: Figures in the benchmark's own unit: a number, NaN where asv skipped it,
            None where it failed. May be shorter than the product. None: all of it failed.
        bounds: (low, high) of asv's 99 % interval for each value, None where it has none.
        samples: What each value was made of; empty where asv did not keep it.
        version: asv's hash of what is measured; None in files that do not tell.
    """

    benchmark: str
    params: tuple[tuple[str, ...], ...]
    values: tuple[object, ...] | None
    bounds: tuple[tuple[float, float] | None, ...]
    samples: tuple[tuple[float, ...], ...]
    version: str | None

    @property
    def cells(self) -> int:
        """How many combinations of parameters there are; 1 without parameters."""
        return math.prod(len(values) for values in self.params)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFile:
    """What asv measured at one commit, on one machine, in one environment.

    Attributes:
        commit: The full hash.
        date_ms: When it was committed, milliseconds since 1970 in UTC; None where untold.
        machine: What asv calls the machine; None where the file does not tell.
        environment: asv's name of it, such as `virtualenv-py3.9-numpy1.20`.
        facets: What else is known of the machine, such as ("cpu", "Xeon"), by name.
        outcomes: By benchmark.
    """

    commit: str
    date_ms: int | None
    machine: str | None
    environment: str
    facets: tuple[tuple[str, str], ...]
    outcomes: tuple[Outcome, ...]


def hashes_in(data: bytes) -> list[str]:
    """What may be the commit of a result file, found without reading all of it."""
    return [found.decode() for found in _COMMIT.findall(data)]


def document(data: bytes) -> Any:
    """JSON as Python writes it, which has NaN and Infinity where a figure is none.

    Raises:
        Unreadable: it is no JSON.
    """
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is no whole JSON: {error}.", _DAMAGED) from None


def read(data: bytes) -> ResultFile:
    """Read one result file.

    Raises:
        Unreadable: it is damaged, of a newer asv, or no result file.
    """
    told = document(data)
    if not isinstance(told, dict) or "commit_hash" not in told or "results" not in told:
        raise Unreadable("it is no result file of asv.", _OTHER_TOOL)
    version = told.get("version", 1)
    if version not in {1, 2}:
        raise Unreadable(
            f"it is of version {version!r}, and 1 and 2 are known.", "Update corebound."
        )
    try:
        return _file(told, _rows_2(told) if version == 2 else _rows_1(told))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise Unreadable(f"it is damaged: {error!r}.", _DAMAGED) from None


def _file(told: Mapping[str, Any], rows: Mapping[str, _Row]) -> ResultFile:
    params = told.get("params") or {}
    requirements = told.get("requirements") or {}
    apart = {"machine", "python", *requirements}
    commit = told["commit_hash"]
    if not isinstance(commit, str) or not commit:
        raise TypeError("its commit is no text")
    machine = params.get("machine")
    return ResultFile(
        commit=commit,
        date_ms=_date_ms(told.get("date")),
        machine=None if machine is None else str(machine),
        environment=str(told.get("env_name") or _environment(told, requirements)),
        facets=tuple(
            sorted((name, _text(value)) for name, value in params.items() if name not in apart)
        ),
        outcomes=tuple([_outcome(name, rows[name]) for name in sorted(rows)]),
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _date_ms(value: object) -> int | None:
    # A text or a negative date is of a broken tool; a truth is an int in Python.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if math.isfinite(value) and 0 <= value < _LATEST_MS else None


def _environment(told: Mapping[str, Any], requirements: Mapping[str, Any]) -> str:
    """The name as asv makes it where an old file has none."""
    words = [f"py{told.get('python', '')}"]
    words += [f"{name}{_text(wanted)}" for name, wanted in sorted(requirements.items())]
    return "-".join(words)


def _rows_2(told: Mapping[str, Any]) -> dict[str, _Row]:
    columns = told["result_columns"]
    # What is behind a row's end is none.
    behind = [None] * (len(columns) + 1)
    places = [columns.index(name) if name in columns else len(columns) for name in _Row._fields]
    picked = itemgetter(*places)
    return {
        name: _Row._make(picked([*row[: len(columns)], *behind]))
        for name, row in told["results"].items()
    }


def _rows_1(told: Mapping[str, Any]) -> dict[str, _Row]:
    versions = told.get("benchmark_version") or {}
    rows = {}
    for name, value in told["results"].items():
        row = value if isinstance(value, dict) else {"result": value}
        stats = _listed(row.get("stats"))
        rows[name] = _Row(
            result=_listed(row.get("result")),
            params=row.get("params"),
            version=versions.get(name),
            stats_ci_99_a=[one and one["ci_99"][0] for one in stats or ()],
            stats_ci_99_b=[one and one["ci_99"][1] for one in stats or ()],
            samples=_samples_1(row.get("samples")),
        )
    return rows


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _samples_1(samples: Any) -> Any:
    """Samples of a benchmark without parameters were not yet in a list of their own."""
    if isinstance(samples, list) and samples and isinstance(samples[0], int | float):
        return [samples]
    return samples


def _outcome(name: str, row: _Row) -> Outcome:
    values, params, samples = row.result, row.params, row.samples
    outcome = Outcome(
        benchmark=name,
        params=tuple([tuple(map(str, axis)) for axis in params]) if params else (),
        values=None if values is None else tuple(values),
        bounds=_bounds(row.stats_ci_99_a, row.stats_ci_99_b),
        samples=tuple([tuple(map(float, one or ())) for one in samples]) if samples else (),
        version=_text(row.version) or None,
    )
    if params and outcome.cells > _MOST_CELLS:
        raise ValueError(f"{name} has {outcome.cells:,} combinations of parameters")
    return outcome


def _bounds(
    lows: Sequence[Any] | None, highs: Sequence[Any] | None
) -> tuple[tuple[float, float] | None, ...]:
    if not lows or not highs:
        return ()
    return tuple(
        [
            None if low is None or high is None else (float(low), float(high))
            for low, high in zip(lows, highs, strict=False)
        ]
    )
