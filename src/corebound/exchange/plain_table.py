"""Read any table of results, CSV or JSON, whose columns the user names."""

import csv
import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from corebound.exchange.measures import measure_of, more_is_better
from corebound.exchange.reading import Unreadable, clean, parse_json
from corebound.exchange.result_files import (
    Columns,
    Context,
    commit_of,
    key_of,
    point_of,
    series_of,
    utc,
)
from corebound.records import atomic_write
from corebound.records.history import HistoryPoint, Series
from corebound.scenario.metrics import parse_json_path


class _Row(NamedTuple):
    """A row of a table: where it is, in words, and its cells by column."""

    where: str
    cells: Mapping[str, object]


_DELIMITERS = ",;\t|"
# Signatures of encodings; without one it is UTF-8, or what old programs of Windows write.
_ENCODINGS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf(?:inity)?", re.IGNORECASE)
# `2026.01.02 3:04:05 +0100`, of which Python's reader takes only the usual form.
_TIME = re.compile(
    r"(\d{4})[-./](\d\d?)[-./](\d\d?)"
    r"(?:[T ]+(\d\d?):(\d\d)(?::(\d\d)(?:[.,]\d+)?)?)?\s*(Z|UTC|[+-]\d\d:?\d\d)?"
)
_EPOCH = re.compile(r"\d{9,10}(?:\.\d+)?|\d{12,13}|\d{15,16}|\d{18,19}")
_CORRECT = "Correct it, or leave the row out; the rest of the file is imported."


def read(path: Path, context: Context) -> Iterator[Series | Unreadable]:
    """Read a table: JSON, one document or one a line, or CSV, whose first line names the columns.

    Raises:
        Unreadable: It is no table, a named column does not exist, or no value column is named.
    """
    data = atomic_write.read(path)
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] not in {b"[", b"{"}:
        return _read(_csv_rows(_text(data)), context)
    try:
        content = parse_json(data)
    except Unreadable:
        if len(data.splitlines()) < 2 or data.lstrip().startswith(b"["):
            raise
        return _read(_json_lines(data), context)
    return _read(_json_rows(content, context), context)


def _text(data: bytes) -> str:
    for signature, encoding in _ENCODINGS:
        if data.startswith(signature):
            return data.decode(encoding, "replace")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _csv_rows(text: str) -> Iterator[_Row | Unreadable]:
    first = text.lstrip().partition("\n")[0]
    delimiter = max(_DELIMITERS, key=first.count)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    names: list[str] = []
    try:
        for cells in lines:
            where = f"line {lines.line_num}"
            if not any(cell.strip() for cell in cells):
                continue
            if not names:
                names = [cell.strip() for cell in cells]
                if twice := [name for name in names if name and names.count(name) > 1]:
                    raise Unreadable(f"two columns are named `{clean(twice[0])}`.", "Rename one.")
            elif len(cells) != len(names):
                what = f"{where} has {len(cells)} cells, and the first line names {len(names)}."
                yield Unreadable(what, _CORRECT)
            else:
                yield _Row(where, dict(zip(names, map(str.strip, cells), strict=True)))
    except csv.Error as error:
        raise Unreadable(
            f"line {lines.line_num}: {error}.", "Write CSV as RFC 4180 has it."
        ) from None


def _json_rows(content: Any, context: Context) -> Iterator[_Row | Unreadable]:
    path = context.columns.rows if context.columns else None
    try:
        for step in parse_json_path(path) if path else ():
            content = content[step]
    except (LookupError, TypeError, ValueError):
        raise Unreadable(f"no `{path}` in it.", "Name the list with --rows a.b[0].") from None
    if not isinstance(content, list):
        raise Unreadable(
            f"{'the file' if path is None else f'`{path}`'} is not a list of rows.",
            "Name the list of rows with --rows, such as --rows results.",
        )
    for number, row in enumerate(content, start=1):
        yield _flat(f"row {number}", row)


def _json_lines(data: bytes) -> Iterator[_Row | Unreadable]:
    for number, line in enumerate(data.splitlines(), start=1):
        if line.strip():
            try:
                yield _flat(f"line {number}", parse_json(line))
            except Unreadable as error:
                yield Unreadable(f"line {number}: {error.what}", error.fix)


def _flat(where: str, row: object) -> _Row | Unreadable:
    if not isinstance(row, dict):
        return Unreadable(f"{where} is not an object with columns.", _CORRECT)
    cells: dict[str, object] = {}
    nested: list[tuple[str, Mapping[str, object]]] = [("", row)]
    while nested:
        prefix, part = nested.pop()
        for name, value in part.items():
            if isinstance(value, dict):
                nested.append((f"{prefix}{name}.", value))
            else:
                cells[f"{prefix}{name}"] = value
    return _Row(where, cells)


def _read(rows: Iterable[_Row | Unreadable], context: Context) -> Iterator[Series | Unreadable]:
    """Each series of a table, and what is wrong with a row that is skipped."""
    readable: list[_Row] = []
    for row in rows:
        if isinstance(row, Unreadable):
            yield row
        else:
            readable.append(row)
    columns = _require_columns(context.columns, readable)
    points: dict[tuple[str, str], list[HistoryPoint]] = {}
    unknown_revisions: set[str] = set()
    for row in readable:
        for item in _points(row, columns, context, unknown_revisions):
            if isinstance(item, Unreadable):
                yield item
            else:
                key, point = item
                points.setdefault(key, []).append(point)
    unit, rate = _unit(columns)
    for (scenario, cell), own in points.items():
        yield series_of(context, own, scenario=scenario, cell=cell, unit=unit, more_is_better=rate)


def _require_columns(columns: Columns | None, rows: Sequence[_Row]) -> Columns:
    """What the user says of the columns."""
    if not rows:
        raise Unreadable("it has no rows.", "Name a file whose first line names the columns.")
    known = list(dict.fromkeys(name for row in rows for name in row.cells))
    if columns is None or not columns.value:
        numbers = [name for name in known if _number(rows[0].cells.get(name)) is not None]
        names = clean(", ".join(numbers)) or "none"
        raise Unreadable(
            "no column is named as the value.",
            f"Pass --value for each column to compare. Columns with numbers: {names}.",
        )
    named = (columns.time, columns.benchmark, columns.revision, *columns.parameter, *columns.value)
    for name in named:
        if name is not None and name not in known:
            what = f"no column `{clean(name)}`."
            raise Unreadable(what, f"It has: {clean(', '.join(known))}.")
    return columns


def _unit(columns: Columns) -> tuple[str, bool]:
    """The unit of the series, and whether more is better."""
    unit = columns.unit or "value"
    rate = more_is_better(unit) if columns.better is None else columns.better == "higher"
    return ("ns" if _is_time(columns) else unit), rate


def _is_time(columns: Columns) -> bool:
    return measure_of(columns.unit).name == "ns" and columns.better != "higher"


def _fault(row: _Row, column: str, problem: str) -> Unreadable:
    shown = clean(str(row.cells.get(column, "")))[:40]
    return Unreadable(f"{row.where}, column `{clean(column)}`: `{shown}` {problem}", _CORRECT)


def _points(
    row: _Row, columns: Columns, context: Context, unknown_revisions: set[str]
) -> Iterator[tuple[tuple[str, str], HistoryPoint] | Unreadable]:
    """The points of a row with their benchmark and cell, and what is wrong with its cells.

    The first revision that is no hash is added to `unknown_revisions`, and told.
    """
    at = context.moment(None)
    if columns.time is not None and context.at is None:
        moment = _moment(row.cells.get(columns.time))
        if moment is None:
            yield _fault(row, columns.time, "is not a time.")
            return
        at = moment
    commit = context.commit
    if columns.revision is not None and commit is None:
        revision = str(row.cells.get(columns.revision) or "").lower()
        commit = commit_of(revision, at=at)
        if commit is None and revision and not unknown_revisions:
            unknown_revisions.add(revision)
            problem = "is not the hash of a commit: such points have none."
            yield _fault(row, columns.revision, problem)
    scale = measure_of(columns.unit).scale if _is_time(columns) else 1.0
    for name in columns.value:
        cell = row.cells.get(name)
        # An empty cell is no result, as in a table of several benchmarks.
        if cell is not None and cell != "":
            number, series = _number(cell), _series_of(row, columns, name)
            if number is None:
                yield _fault(row, name, "is not a number.")
            elif not series[0]:
                yield _fault(row, columns.benchmark or name, "names no benchmark.")
            else:
                yield series, point_of([number], at=at, commit=commit, scale=scale)


def _series_of(row: _Row, columns: Columns, value: str) -> tuple[str, str]:
    """The benchmark of a value, and its cell."""
    parameters = {name: row.cells.get(name, "") for name in columns.parameter}
    if columns.benchmark is None:
        return value, key_of(parameters)
    metric = {"metric": value} if len(columns.value) > 1 else {}
    return str(row.cells.get(columns.benchmark) or ""), key_of(parameters | metric)


def _number(cell: object) -> float | None:
    """A number of a cell, with a decimal point or comma; None if it is none."""
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return None
    if isinstance(cell, str):
        if _DECIMAL_COMMA.fullmatch(cell):
            cell = cell.replace(",", ".")
        elif not _NUMBER.fullmatch(cell):
            return None
    try:
        number = float(cell)
    except (OverflowError, ValueError):  # an integer of JSON with hundreds of digits
        return None
    return None if math.isnan(number) else number


def _moment(cell: object) -> str | None:
    """A time in UTC: ISO 8601, a similar form, or seconds to nanoseconds since 1970."""
    text = str(cell).strip()
    try:
        if _EPOCH.fullmatch(text):
            whole, _, _ = text.partition(".")
            seconds = int(whole) / 10 ** (3 * ((len(whole) - 9) // 3))
            return utc(datetime.fromtimestamp(seconds, UTC).isoformat())
        if match := _TIME.fullmatch(text):
            year, month, day, hour, minute, second, zone = match.groups()
            zone = "+00:00" if zone in {None, "Z", "UTC"} else zone
            clock = f"{int(hour or 0):02}:{minute or '00'}:{second or '00'}"
            return utc(f"{year}-{int(month):02}-{int(day):02}T{clock}{zone}")
        return utc(text)
    except (Unreadable, OverflowError, OSError, ValueError):
        return None
