"""Parse asv's result files, one at a time, in either of the two formats."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Collection, Mapping
from operator import itemgetter
from typing import Any, TypeAlias

from msgspec import Struct

from corebound.exchange.reading import DAMAGED, Unreadable, parse_json

# The smallest plausible memory size in bytes. Smaller numbers are in KiB, as older versions of
# asv wrote on Linux, where the value is not typed by a user.
_LEAST_BYTES = 1 << 31
_LEAST_KIB = 1 << 16
_GIB = 1 << 30
# Such as 16GB, which `asv machine` asks for. Memory is never sold in powers of ten.
_MEMORY_TEXT = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?([MGT])i?B?", re.IGNORECASE)
# Memory comes in eighths of a power of two; the kernel leaves at least 19/20 of it.
_STEPS_PER_OCTAVE = 4
_USABLE_SHARE = 0.95


def normalise_facet(name: str, text: str) -> str:
    """A property of a machine as asv reports it; memory in one unit, since asv has changed its own.

    >>> normalise_facet("ram", "16428936"), normalise_facet("ram", "16GB")
    ('16 GiB', '16 GiB')
    >>> normalise_facet("os", "Linux")
    'Linux'
    """
    size_gib = _memory_gib(text) if name == "ram" else None
    if size_gib is None:
        return text
    # The nominal size: the kernel reports a little less, and not always the same amount.
    step_gib = 2.0 ** (math.frexp(size_gib)[1] - _STEPS_PER_OCTAVE)
    sold_gib = math.ceil(size_gib / step_gib) * step_gib
    size_gib = sold_gib if size_gib >= _USABLE_SHARE * sold_gib else size_gib
    return f"{size_gib:.1f} GiB".replace(".0 ", " ")


def _memory_gib(text: str) -> float | None:
    """Memory in KiB (older asv), in bytes (newer asv), or as typed by the user."""
    if written := _MEMORY_TEXT.fullmatch(text):
        return float(written[1]) * 1024.0 ** ("MGT".index(written[2].upper()) - 1) or None
    try:
        size = float(text)
    except ValueError:
        return None
    if not _LEAST_KIB <= size < math.inf:
        return None
    return size / _GIB if size >= _LEAST_BYTES else size / (_GIB >> 10)


# Units of asv's own kinds of benchmark, by the start of their names: for trees without
# benchmarks.json. Source: asv's documentation, "Benchmark types and attributes".
_UNITS = (("time", "seconds"), ("mem", "bytes"), ("peakmem", "bytes"))


class BenchmarkEntry(Struct, frozen=True, kw_only=True):
    """A benchmark's entry in benchmarks.json.

    Attributes:
        title: The name to display.
        unit: In asv's words, such as `seconds`.
        params: The names of its parameters.
        code: Its source, if known.
    """

    title: str
    unit: str
    params: tuple[str, ...]
    code: str | None = None


def parse_benchmarks(document: Any) -> dict[str, BenchmarkEntry]:
    """Parse benchmarks.json; skip entries without content."""
    entries = document.items() if isinstance(document, dict) else ()
    return {
        name: BenchmarkEntry(
            title=str(entry.get("pretty_name") or name),
            unit=str(entry.get("unit") or unit_of(name)),
            params=tuple(map(str, names)) if isinstance(names, list) else (),
            code=code if isinstance(code, str) and code.strip() else None,
        )
        for name, entry in entries
        if isinstance(entry, dict)
        for names, code in ((entry.get("param_names"), entry.get("code")),)
    }


def unit_of(benchmark: str) -> str:
    """The unit asv gives a benchmark of this name that declares none.

    >>> unit_of("suite.Trees.time_insert"), unit_of("suite.track_size")
    ('seconds', 'unit')
    """
    own = benchmark.rsplit(".", 1)[-1].lower()
    return next((unit for start, unit in _UNITS if own.startswith(start)), "unit")


# The end of the year 9999, the limit of ISO 8601.
_LATEST_MS = 253_402_300_800_000
_OTHER_TOOL = "Delete the file, or move it out of the results folder."
# What a malformed row raises. Rows are read as asv reads them; anything else is damage too.
DAMAGES = (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError)
# Longer than any hash of git or Mercurial and any revision name.
_LONGEST_COMMIT = 100
_COMMIT = re.compile(rb'"commit_hash"\s*:\s*"([0-9a-zA-Z]+)"')
# Characters that asv replaces in names of environments, because the names become file names.
_NO_FILE_NAME = re.compile(r'[<>:"/\\^|?*\x00-\x1f]')

# The parts of a benchmark that are read, by the names of version 2's columns.
_COLUMNS = ("result", "params", "version", "stats_ci_99_a", "stats_ci_99_b", "samples")
# A benchmark's content in the file: a list of results in the benchmark's own unit, one for each
# combination of parameters (a number, NaN if asv skipped it, None if it failed), or None if all
# of it failed; the values of each parameter, `repr` of the original, the last one fastest; asv's
# hash of what is measured; the lower and upper bounds of the 99 % interval of each result; the
# samples of each result.
Row: TypeAlias = tuple[Any, Any, Any, Any, Any, Any]


class ResultFile(Struct, frozen=True, kw_only=True):
    """The results of one commit, on one machine, in one environment.

    Attributes:
        commit: The full hash.
        date_ms: The commit's date, milliseconds since 1970 in UTC; None if unknown.
        machine: asv's name of the machine; None if the file lacks it.
        environment: asv's name of it, such as `virtualenv-py3.9-numpy1.20`.
        requirements: Its requirements, each with its version, which may be "".
        measured: The requirements that are under test, such as `pip+foo 1.2`.
        facets: Other properties of the machine, such as ("cpu", "Xeon"), by name.
        contents: A hash of what distinguishes environments in asv: Python, requirements,
            variables; None if the file lacks it.
        results: The raw entry of each benchmark, by its name.
        row_of: Converts a name and a raw entry to a row; raises one of `DAMAGES` if the entry is
            invalid.
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
    """Find possible commits of a result file without parsing all of it."""
    return [sha.decode() for sha in _COMMIT.findall(data)]


def read(data: bytes, *, under_test: Collection[str] = ()) -> ResultFile:
    """Read a result file except for its benchmarks, each of which may be damaged on its own.

    Args:
        under_test: Requirements that are what is measured; omitted from the environment.

    Raises:
        Unreadable: The file is damaged, of a newer asv, or not a result file.
    """
    content = parse_json(data)
    if not isinstance(content, dict) or "commit_hash" not in content or "results" not in content:
        raise Unreadable("not an asv result file.", _OTHER_TOOL)
    version = content.get("version", 1)
    if version not in (1, 2):
        raise Unreadable(
            f"unsupported format version {version!r}; only 1 and 2 are supported.",
            "Update corebound.",
        )
    try:
        row_of = _row_of_2(content) if version == 2 else _row_of_1(content)
        return _file(content, row_of, under_test)
    except DAMAGES as error:
        raise damaged(repr(error)) from None


def damaged(reason: str) -> Unreadable:
    """The error for a file of which nothing can be read."""
    return Unreadable(f"damaged: {reason}.", DAMAGED)


def _file(
    content: Mapping[str, Any], row_of: Callable[[str, Any], Row], under_test: Collection[str]
) -> ResultFile:
    params = content.get("params") or {}
    requirement_entries = content.get("requirements")
    entries = requirement_entries.items() if isinstance(requirement_entries, dict) else ()
    requirements = {name: _text(version) for name, version in entries}
    measured = {name: each for name, each in requirements.items() if name in under_test}
    not_facets = {"machine", "python", *requirements}
    commit = content["commit_hash"]
    is_valid = isinstance(commit, str) and 0 < len(commit) <= _LONGEST_COMMIT
    if not is_valid or not commit.isprintable():
        raise TypeError("`commit_hash` is not a hash")
    machine = params.get("machine")
    results = content["results"]
    if not isinstance(results, dict):
        raise TypeError("`results` is not an object")
    return ResultFile(
        commit=commit,
        date_ms=_date_ms(content.get("date")),
        machine=None if machine is None else str(machine),
        environment=_without_requirements(
            str(content.get("env_name") or _environment(content, requirements)), measured
        ),
        requirements=requirements,
        measured=", ".join(f"{name} {each}".strip() for name, each in sorted(measured.items())),
        facets=tuple(
            sorted(
                (name, normalise_facet(name, _text(value)))
                for name, value in params.items()
                if name not in not_facets
            )
        ),
        contents=_contents(content, measured),
        results=results,
        row_of=row_of,
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _date_ms(value: object) -> int | None:
    # Only a broken tool writes a text or a negative date. In Python, a bool is an int.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if math.isfinite(value) and 0 <= value < _LATEST_MS else None


def _environment(content: Mapping[str, Any], requirements: Mapping[str, str]) -> str:
    """Build the environment's name as asv does, for old files without one."""
    parts = [f"py{content.get('python', '')}"]
    parts += [f"{name}{version}" for name, version in sorted(requirements.items())]
    return "-".join(parts)


def _without_requirements(environment: str, measured: Mapping[str, str]) -> str:
    """Remove requirements from a name that asv built."""
    for name, version in measured.items():
        part = "-" + _NO_FILE_NAME.sub("_", name + version)
        before, _, rest = environment.partition(part)
        # A longer word may begin with the same text.
        if rest[:1] in {"", "-"}:
            environment = before + rest
    return environment


def _contents(content: Mapping[str, Any], measured: Collection[str]) -> str | None:
    python, requirements = content.get("python"), content.get("requirements")
    if not isinstance(python, str) or not python or not isinstance(requirements, dict):
        return None
    # Older files have no variables, because asv did not support them.
    others = {name: version for name, version in requirements.items() if name not in measured}
    text = json.dumps([python, others, content.get("env_vars") or {}], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _row_of_2(content: Mapping[str, Any]) -> Callable[[str, Any], Row]:
    columns = content["result_columns"]
    # Pad a row with None: for columns cut off at its end, and for those it lacks (index -1).
    padding = [None] * (len(columns) + 1)
    indices = [columns.index(name) if name in columns else -1 for name in _COLUMNS]
    pick: Callable[[list[Any]], Row] = itemgetter(*indices)

    def row_of(_name: str, row: Any) -> Row:
        return pick(row + padding)

    return row_of


def _row_of_1(content: Mapping[str, Any]) -> Callable[[str, Any], Row]:
    versions = content.get("benchmark_version") or {}

    def row_of(name: str, value: Any) -> Row:
        row = value if isinstance(value, dict) else {"result": value}
        bounds = [
            (stats or {}).get("ci_99") or (None, None) for stats in _as_list(row.get("stats"))
        ]
        result = row.get("result")
        return (
            # Without a list, everything failed.
            None if result is None else _as_list(result),
            row.get("params"),
            versions.get(name),
            [low for low, _ in bounds],
            [high for _, high in bounds],
            row.get("samples"),
        )

    return row_of


def _as_list(value: Any) -> Any:
    return value if isinstance(value, list) else [value]
