"""Result files of asv, one file at a time, whichever of its two formats they are in.

Source: asv 0.6, `asv/results.py`: version 2 has rows by `result_columns`, whose tails may be
cut; version 1 has an object, or a bare figure, for each benchmark.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from corebound.exchange.asv_machine import facet
from corebound.exchange.reading import Unreadable

# A benchmark of more parameter combinations is a damaged file.
_MOST_CELLS = 1_000_000
# The end of the year 9999, which is as far as ISO 8601 goes.
_LATEST_MS = 253_402_300_800_000
_OTHER_TOOL = "Delete it, or move it out of the folder of results."
_DAMAGED = "Fetch it again from where it was copied, or delete it."
# What version control leaves in a file's place, and how to get the file.
_PLACEHOLDERS = (
    (b"version https://git-lfs", "a pointer of Git LFS", "Fetch the files: `git lfs pull`."),
    (b"/annex/objects/", "a pointer of git-annex", "Fetch the files: `git annex get`."),
    (b"<<<<<<< ", "half of a merge", "Finish the merge, or check one side out."),
)
# As asv reads them; whatever else a row does is damage too.
_DAMAGES = (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError)
# No hash of git or Mercurial, nor a name of a revision, is so long.
_LONGEST_COMMIT = 100
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
        contents: A hash of what asv tells environments apart by: Python, what it has to have,
            variables; None where the file does not tell.
        damaged: Benchmarks that cannot be read, each with why.
    """

    commit: str
    date_ms: int | None
    machine: str | None
    environment: str
    facets: tuple[tuple[str, str], ...]
    outcomes: tuple[Outcome, ...]
    contents: str | None
    damaged: tuple[str, ...] = ()


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
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    for start, what, mend in _PLACEHOLDERS:
        if data.startswith(start):
            raise Unreadable(f"it is {what}.", mend)
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
        row_of = _row_of_2(told) if version == 2 else _row_of_1(told)
        return _file(told, row_of)
    except _DAMAGES as error:
        raise Unreadable(f"it is damaged: {error!r}.", _DAMAGED) from None


def _file(told: Mapping[str, Any], row_of: Callable[[str, Any], _Row]) -> ResultFile:
    params = told.get("params") or {}
    requirements = told.get("requirements") or {}
    apart = {"machine", "python", *requirements}
    commit = told["commit_hash"]
    hashed = isinstance(commit, str) and 0 < len(commit) <= _LONGEST_COMMIT
    if not hashed or not commit.isprintable():
        raise TypeError("its commit is no hash")
    machine = params.get("machine")
    outcomes, damaged = _outcomes(told["results"], row_of)
    if damaged and not outcomes:
        raise ValueError(damaged[0])
    return ResultFile(
        commit=commit,
        date_ms=_date_ms(told.get("date")),
        machine=None if machine is None else str(machine),
        environment=str(told.get("env_name") or _environment(told, requirements)),
        facets=tuple(
            sorted(
                (name, facet(name, _text(value)))
                for name, value in params.items()
                if name not in apart
            )
        ),
        outcomes=outcomes,
        contents=_contents(told),
        damaged=damaged,
    )


def _outcomes(
    results: Mapping[str, Any], row_of: Callable[[str, Any], _Row]
) -> tuple[tuple[Outcome, ...], tuple[str, ...]]:
    """All that can be read, and why the others cannot, both by benchmark."""
    found, damaged = [], []
    for name, row in sorted(results.items()):
        try:
            found.append(_outcome(name, row_of(name, row)))
        except _DAMAGES as error:
            damaged.append(f"{name}: {error!r}")
    return tuple(found), tuple(damaged)


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


def _contents(told: Mapping[str, Any]) -> str | None:
    python, requirements = told.get("python"), told.get("requirements")
    if not isinstance(python, str) or not python or not isinstance(requirements, dict):
        return None
    # Older files know of no variables, for there were none.
    whole = json.dumps([python, requirements, told.get("env_vars") or {}], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _row_of_2(told: Mapping[str, Any]) -> Callable[[str, Any], _Row]:
    columns = told["result_columns"]
    # What is behind a row's end is none.
    behind = [None] * (len(columns) + 1)
    places = [columns.index(name) if name in columns else len(columns) for name in _Row._fields]
    picked = itemgetter(*places)

    def row_of(_name: str, row: Any) -> _Row:
        return _Row._make(picked([*row[: len(columns)], *behind]))

    return row_of


def _row_of_1(told: Mapping[str, Any]) -> Callable[[str, Any], _Row]:
    versions = told.get("benchmark_version") or {}

    def row_of(name: str, value: Any) -> _Row:
        row = value if isinstance(value, dict) else {"result": value}
        bounds = [(one or {}).get("ci_99") or (None, None) for one in _listed(row.get("stats"))]
        result = row.get("result")
        return _Row(
            # Without a list, all of it failed.
            result=None if result is None else _listed(result),
            params=row.get("params"),
            version=versions.get(name),
            stats_ci_99_a=[low for low, _ in bounds],
            stats_ci_99_b=[high for _, high in bounds],
            samples=row.get("samples"),
        )

    return row_of


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _samples(samples: Any) -> Any:
    """Those of a benchmark without parameters were once not in a list of their own."""
    if isinstance(samples, list) and samples and isinstance(samples[0], int | float):
        return [samples]
    return samples


def _outcome(name: str, row: _Row) -> Outcome:
    values, params, samples = row.result, row.params, _samples(row.samples)
    if isinstance(values, int | float):
        values = [values]
    if values is not None and not isinstance(values, list):
        raise TypeError("its figures are no list")
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
