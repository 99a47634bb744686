"""asv's result files, one at a time, whichever of its two formats they are in."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from operator import itemgetter
from typing import Any, TypeAlias

from msgspec import Struct

from corebound.exchange.json_input import DAMAGED, document
from corebound.exchange.reading import Unreadable

# Least size of memory in bytes; smaller ones are in KiB, as older asv told it on Linux, where
# they are not what somebody typed.
_LEAST_BYTES = 1 << 31
_LEAST_KIB = 1 << 16
_GIB = 1 << 30
# Such as 16GB, which `asv machine` asks for; nobody sells a power of ten.
_WRITTEN = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?([MGT])i?B?", re.IGNORECASE)
# Memory comes in eighths of a power of two, and the kernel leaves 19 parts of 20 at least.
_OF_AN_OCTAVE = 4
_LEFT = 0.95


def facet(name: str, text: str) -> str:
    """What a machine has, as asv tells it; its memory in one unit, for asv has changed its own.

    >>> facet("ram", "16428936"), facet("ram", "16GB"), facet("os", "Linux")
    ('16 GiB', '16 GiB', 'Linux')
    """
    size_gib = _memory_gib(text) if name == "ram" else None
    if size_gib is None:
        return text
    # As it was sold: the kernel leaves a little less, and not always as much.
    step_gib = 2.0 ** (math.frexp(size_gib)[1] - _OF_AN_OCTAVE)
    sold_gib = math.ceil(size_gib / step_gib) * step_gib
    size_gib = sold_gib if size_gib >= _LEFT * sold_gib else size_gib
    return f"{size_gib:.1f} GiB".replace(".0 ", " ")


def _memory_gib(text: str) -> float | None:
    """Memory as asv tells it, in KiB of old and in bytes since, or as its user wrote it."""
    if written := _WRITTEN.fullmatch(text):
        return float(written[1]) * 1024.0 ** ("MGT".index(written[2].upper()) - 1) or None
    try:
        told = float(text)
    except ValueError:
        return None
    if not _LEAST_KIB <= told < math.inf:
        return None
    return told / _GIB if told >= _LEAST_BYTES else told / (_GIB >> 10)


# What asv's own kinds of benchmark are measured in, by the start of their names: for trees
# without benchmarks.json. Source: asv's documentation, "Benchmark types and attributes".
_UNITS = (("time", "seconds"), ("mem", "bytes"), ("peakmem", "bytes"))
# A longer one is a sentence, in which anything may stand.
_LONGEST_UNIT = 100
# A word for a time, and what is done in one: `particles / second`, `rows per s`, `it s⁻¹`.
_TIME = r"(?:[nmuµ]s|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?)"
_RATE = re.compile(rf"(.*?\S)(?:\s*/\s*|\s+per\s+){_TIME}|(.*?\S)\s+s⁻¹", re.IGNORECASE)
# `FLOPS` are a rate, `FLOPs` are not; how much faster something is has no time in it.
_OF_THEMSELVES = re.compile(r"[kMGTPE]?FLOPS|[Ss]peed-?up")
# A time in a time is a share.
_TIMES = re.compile(_TIME, re.IGNORECASE)


class Known(Struct, frozen=True, kw_only=True):
    """What benchmarks.json says of a benchmark.

    Attributes:
        title: For the eye.
        unit: In asv's words, such as `seconds`.
        params: Names of its parameters.
        code: Its source, where that is told.
    """

    title: str
    unit: str
    params: tuple[str, ...]
    code: str | None = None


def known(told: Any) -> dict[str, Known]:
    """What benchmarks.json says; entries that say nothing are passed over."""
    entries = told.items() if isinstance(told, dict) else ()
    return {
        name: Known(
            title=str(entry.get("pretty_name") or name),
            unit=str(entry.get("unit") or unit_of(name)),
            params=tuple(map(str, names)) if isinstance(names, list) else (),
            code=code if isinstance(code, str) and code.strip() else None,
        )
        for name, entry in entries
        if isinstance(entry, dict)
        for names, code in ((entry.get("param_names"), entry.get("code")),)
    }


def more_is_better(unit: str) -> bool:
    """Whether a unit, in words, is a rate: so much in a time.

    >>> more_is_better("particles / second"), more_is_better("seconds"), more_is_better("ms per op")
    (True, False, False)
    """
    unit = unit.strip()
    if len(unit) > _LONGEST_UNIT:
        return False
    if _OF_THEMSELVES.fullmatch(unit):
        return True
    found = _RATE.fullmatch(unit)
    return found is not None and not _TIMES.fullmatch(found.group(1) or found.group(2))


def unit_of(benchmark: str) -> str:
    """The unit asv gives a benchmark of such a name that names none itself.

    >>> unit_of("suite.Trees.time_insert"), unit_of("suite.track_size")
    ('seconds', 'unit')
    """
    own = benchmark.rsplit(".", 1)[-1].lower()
    return next((unit for start, unit in _UNITS if own.startswith(start)), "unit")


# The end of the year 9999, which is as far as ISO 8601 goes.
_LATEST_MS = 253_402_300_800_000
_OTHER_TOOL = "Delete it, or move it out of the folder of results."
# As asv reads them; whatever else a row does is damage too.
DAMAGES = (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError)
# No hash of git or Mercurial, nor a name of a revision, is so long.
_LONGEST_COMMIT = 100
_COMMIT = re.compile(rb'"commit_hash"\s*:\s*"([0-9a-zA-Z]+)"')
# What asv writes otherwise in names of environments, for they are names of files too.
_NO_FILE_NAME = re.compile(r'[<>:"/\\^|?*\x00-\x1f]')

# What is read of a benchmark, by the names of version 2's columns.
_COLUMNS = ("result", "params", "version", "stats_ci_99_a", "stats_ci_99_b", "samples")
# It as it stands in the file: a list of figures in the benchmark's own unit, one for each
# combination of parameters (a number, NaN where asv skipped it, None where it failed), or None
# where all of it failed; the values of each parameter, `repr` of the original, the last one
# fastest; asv's hash of what is measured; both ends of its 99 % interval of each figure; what
# each figure was made of.
Row: TypeAlias = tuple[Any, Any, Any, Any, Any, Any]


class ResultFile(Struct, frozen=True, kw_only=True):
    """What asv measured at one commit, on one machine, in one environment.

    Attributes:
        commit: The full hash.
        date_ms: When it was committed, milliseconds since 1970 in UTC; None where untold.
        machine: What asv calls the machine; None where the file does not tell.
        environment: asv's name of it, such as `virtualenv-py3.9-numpy1.20`.
        requirements: What it had to have, each with its version, which may be "".
        measured: Those of them that are under test, such as `pip+foo 1.2`.
        facets: What else is known of the machine, such as ("cpu", "Xeon"), by name.
        contents: A hash of what asv tells environments apart by: Python, what it has to have,
            variables; None where the file does not tell.
        results: What stands there of each benchmark, by its name.
        row_of: Told a name and what stands there, the row that it is; raises one of `DAMAGES`
            where it is none.
    """

    commit: str
    date_ms: int | None
    machine: str | None
    environment: str
    requirements: Mapping[str, str]
    measured: str
    facets: tuple[tuple[str, str], ...]
    contents: str | None
    results: Mapping[str, Any]
    row_of: Callable[[str, Any], Row]


def hashes_in(data: bytes) -> list[str]:
    """What may be the commit of a result file, found without reading all of it."""
    return [found.decode() for found in _COMMIT.findall(data)]


def read(data: bytes, *, under_test: Collection[str] = ()) -> ResultFile:
    """Read one result file, but for its benchmarks, of which each may be damaged by itself.

    Args:
        data: What it holds.
        under_test: Requirements that are what is measured; they are left out of the environment.

    Raises:
        Unreadable: it is damaged, of a newer asv, or no result file.
    """
    told = document(data)
    if not isinstance(told, dict) or "commit_hash" not in told or "results" not in told:
        raise Unreadable("it is no result file of asv.", _OTHER_TOOL)
    version = told.get("version", 1)
    if version not in (1, 2):
        raise Unreadable(
            f"it is of version {version!r}, and 1 and 2 are known.", "Update corebound."
        )
    try:
        row_of = _row_of_2(told) if version == 2 else _row_of_1(told)
        return _file(told, row_of, under_test)
    except DAMAGES as error:
        raise damaged(repr(error)) from None


def damaged(why: str) -> Unreadable:
    """What is to be said of a file of which nothing can be read."""
    return Unreadable(f"it is damaged: {why}.", DAMAGED)


def _file(
    told: Mapping[str, Any], row_of: Callable[[str, Any], Row], under_test: Collection[str]
) -> ResultFile:
    params = told.get("params") or {}
    wanted = told.get("requirements")
    named = wanted.items() if isinstance(wanted, dict) else ()
    requirements = {name: _text(version) for name, version in named}
    measured = {name: each for name, each in requirements.items() if name in under_test}
    apart = {"machine", "python", *requirements}
    commit = told["commit_hash"]
    hashed = isinstance(commit, str) and 0 < len(commit) <= _LONGEST_COMMIT
    if not hashed or not commit.isprintable():
        raise TypeError("its commit is no hash")
    machine = params.get("machine")
    results = told["results"]
    if not isinstance(results, dict):
        raise TypeError("its results are no object")
    return ResultFile(
        commit=commit,
        date_ms=_date_ms(told.get("date")),
        machine=None if machine is None else str(machine),
        environment=_without(
            str(told.get("env_name") or _environment(told, requirements)), measured
        ),
        requirements=requirements,
        measured=", ".join(f"{name} {each}".strip() for name, each in sorted(measured.items())),
        facets=tuple(
            sorted(
                (name, facet(name, _text(value)))
                for name, value in params.items()
                if name not in apart
            )
        ),
        contents=_contents(told, measured),
        results=results,
        row_of=row_of,
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _date_ms(value: object) -> int | None:
    # A text or a negative date is of a broken tool; a truth is an int in Python.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if math.isfinite(value) and 0 <= value < _LATEST_MS else None


def _environment(told: Mapping[str, Any], requirements: Mapping[str, str]) -> str:
    """The name as asv makes it where an old file has none."""
    words = [f"py{told.get('python', '')}"]
    words += [f"{name}{version}" for name, version in sorted(requirements.items())]
    return "-".join(words)


def _without(environment: str, measured: Mapping[str, str]) -> str:
    """A name that asv made, less what it says of some requirements."""
    for name, version in measured.items():
        word = "-" + _NO_FILE_NAME.sub("_", name + version)
        before, _, behind = environment.partition(word)
        # Another word may begin as this one does.
        if behind[:1] in {"", "-"}:
            environment = before + behind
    return environment


def _contents(told: Mapping[str, Any], measured: Collection[str]) -> str | None:
    python, requirements = told.get("python"), told.get("requirements")
    if not isinstance(python, str) or not python or not isinstance(requirements, dict):
        return None
    # Older files know of no variables, for there were none.
    others = {name: each for name, each in requirements.items() if name not in measured}
    whole = json.dumps([python, others, told.get("env_vars") or {}], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _row_of_2(told: Mapping[str, Any]) -> Callable[[str, Any], Row]:
    columns = told["result_columns"]
    # What is behind a row's end is none, and none is behind all that a row can have.
    behind = [None] * (len(columns) + 1)
    places = [columns.index(name) if name in columns else -1 for name in _COLUMNS]
    picked: Callable[[list[Any]], Row] = itemgetter(*places)

    def row_of(_name: str, row: Any) -> Row:
        return picked(row + behind)

    return row_of


def _row_of_1(told: Mapping[str, Any]) -> Callable[[str, Any], Row]:
    versions = told.get("benchmark_version") or {}

    def row_of(name: str, value: Any) -> Row:
        row = value if isinstance(value, dict) else {"result": value}
        bounds = [(one or {}).get("ci_99") or (None, None) for one in _listed(row.get("stats"))]
        result = row.get("result")
        return (
            # Without a list, all of it failed.
            None if result is None else _listed(result),
            row.get("params"),
            versions.get(name),
            [low for low, _ in bounds],
            [high for _, high in bounds],
            row.get("samples"),
        )

    return row_of


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]
