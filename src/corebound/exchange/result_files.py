"""Read result files of other tools as series, one launch for each process that measured."""

import math
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import Fault, InputError
from corebound.exchange.reading import (
    DAMAGED,
    Progress,
    Unreadable,
    clean,
    digest_of,
    label,
    parse_json,
    reporting_damage,
)
from corebound.records import atomic_write
from corebound.records.history import (
    INCOMPARABLE,
    EnvironmentKey,
    HistoryPoint,
    HistoryPoints,
    Series,
)
from corebound.records.run_record import Commit
from corebound.scenario.metrics import Better
from corebound.stats.intervals import geometric_mean, geometric_mean_interval

# The least change that matters, as in a scenario.
MARGIN = 0.02
UNNAMED_HOST = "unnamed"
_NO_VALUE, _NO_NUMBER = "no value", "not a number"
_MEASURE = "Measure it again; the rest of the file is imported."
_SHA = re.compile(r"[0-9a-f]{7,64}")


class Columns(Struct, frozen=True, kw_only=True):
    """What the columns of a table are; of nested JSON, a name has dots.

    Attributes:
        value: The columns with values; each is a benchmark, or a metric of one.
        time: The column with the time of measurement; None takes the user's, or the file's.
        benchmark: The column with the name of the benchmark; None names it after the value.
        revision: The column with the hash of the commit.
        unit: The unit of all values.
        better: Whether higher or lower values are better; None decides by the unit.
        rows: Where in JSON the list of rows is, such as `results[0].runs`; None: the whole file.
    """

    value: tuple[str, ...]
    time: str | None = None
    benchmark: str | None = None
    parameter: tuple[str, ...] = ()
    revision: str | None = None
    unit: str = ""
    better: Better | None = None
    rows: str | None = None


class Context(Struct, frozen=True, kw_only=True):
    """What the user states about files that the files do not contain.

    Attributes:
        host: The name of the machine; replaces the files' own.
        commit: The commit that was measured; replaces the files' own.
        at: When it was measured, ISO 8601 in UTC; replaces the files' own.
        modified_at: When the file was last written.
        columns: What the columns of a table are; None for other files.
    """

    project: str
    host: str | None = None
    commit: Commit | None = None
    at: str | None = None
    modified_at: str = ""
    columns: Columns | None = None

    def moment(self, own: object) -> str:
        """The time of measurement: the user's, the file's own, or that of its last change.

        Raises:
            Unreadable: The file's own is not a time.
        """
        if self.at is not None:
            return self.at
        return utc(own) if own else self.modified_at

    def point(
        self, values: Sequence[object], *, scale: float = 1.0, missing: str | None = None
    ) -> HistoryPoint:
        """A point of a file that has neither time nor commit; see `point_of`."""
        at = self.moment(None)
        return point_of(values, at=at, commit=self.commit, scale=scale, missing=missing)

    def host_name(self, own: object) -> str:
        """The name of the machine: the user's, or the file's own."""
        return label(str(self.host or own or UNNAMED_HOST))


# Reads a file, or a folder: each series, and what is wrong with a part that is skipped.
Reader = Callable[[Path, Context], Iterable[Series | Unreadable]]


class ResultFiles(Struct, frozen=True, kw_only=True):
    """The result of reading files: series, the number of files, and errors."""

    series: tuple[Series, ...]
    files: int
    faults: tuple[Fault, ...]


def read_all(
    paths: Sequence[Path], read: Reader, context: Context, progress: Progress
) -> ResultFiles:
    """Read files; report and skip those that cannot be read.

    Args:
        context: What the user says about all of them.
        progress: Called with the number of files read and the total.

    Raises:
        InputError: No file can be read.
    """
    faults: list[Fault] = []
    series: list[Series] = []
    files = 0
    for number, path in enumerate(paths):
        progress(number, len(paths))
        try:
            written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            items = [*read(path, replace(context, modified_at=_text(written)))]
        except Unreadable as error:
            items = [error]
        except OSError as error:
            items = [Unreadable(f"cannot be read: {error.strerror}.", "Check its path.")]
        found = [item for item in items if isinstance(item, Series)]
        series += found
        files += bool(found)
        errors = [item for item in items if isinstance(item, Unreadable)]
        faults += [_fault(path, f"skipped: {error.what}", error.fix) for error in errors]
        faults += [_fault(path, what, _MEASURE) for part in found for what in _damaged(part)]
    if not series:
        first = faults[0] if faults else _fault(paths[0], "no results.", "Name another file.")
        raise InputError(what=first.what, where=first.file, fix=first.fix)
    return ResultFiles(series=_with_joined_launches(series), files=files, faults=tuple(faults))


def _fault(path: Path, what: str, fix: str) -> Fault:
    return Fault(file=str(path), line=None, what=what, fix=fix)


def _damaged(series: Series) -> Iterator[str]:
    """Each kind of value of a series that is no number; a failure that a tool reports is none."""
    for reason in dict.fromkeys(filter(None, series.points.missing)):
        if reason.startswith((_NO_VALUE, _NO_NUMBER)):
            yield f"no result: {series.scenario} [{series.cell}]: {reason}."


def read_json(path: Path) -> Any:
    """Read a file of JSON; raises what `atomic_write.read` and `parse_json` do."""
    return parse_json(atomic_write.read(path))


def each_row(
    rows: object, read_row: Callable[[Any], Series], *, what: str = "benchmark"
) -> Iterator[Series | Unreadable]:
    """Read every row of a list; a damaged one does not cost the others.

    Raises:
        Unreadable: It is not a list.
    """
    if not isinstance(rows, list):
        raise Unreadable(f"damaged: the {what}s are not a list.", DAMAGED)
    for number, row in enumerate(rows, start=1):
        try:
            with reporting_damage():
                item: Series | Unreadable = read_row(row)
        except Unreadable as error:
            item = Unreadable(f"{what} {number}: {error.what}", error.fix)
        yield item


def _with_joined_launches(all_series: Sequence[Series]) -> tuple[Series, ...]:
    """Make one point of the results of several files of one commit, day and environment.

    Each file is a process of its own, so together they show how much processes differ. Results in
    different units stay apart.
    """
    groups: dict[tuple[str, str, bool], list[Series]] = {}
    for series in all_series:
        key = series.id, series.unit, series.more_is_better
        groups.setdefault(key, []).append(series)
    return tuple(
        replace(
            parts[-1],
            points=HistoryPoints.of(_joined([point for part in parts for point in part.points])),
        )
        for parts in groups.values()
    )


def _joined(points: Sequence[HistoryPoint]) -> list[HistoryPoint]:
    """Points in time, those of one commit, day and environment joined."""
    groups: dict[object, list[HistoryPoint]] = {}
    for point in sorted(points, key=lambda each: each.at):
        commit = point.commit
        day = (commit.sha, point.at[:10]) if commit else (point.at, "")
        groups.setdefault((day, point.environment_key), []).append(point)
    joined = []
    for group in groups.values():
        first = group[0]
        launches = [value for point in group for value in point.launches]
        joined.append(
            first
            if len(group) == 1
            else point_of(
                launches,
                at=first.at,
                commit=first.commit,
                environment_key=first.environment_key,
                missing=next((point.missing for point in group if point.missing), None),
            )
        )
    return sorted(joined, key=lambda point: point.at)


def point_of(
    values: Sequence[object],
    *,
    at: str,
    commit: Commit | None,
    scale: float = 1.0,
    environment_key: EnvironmentKey = (),
    missing: str | None = None,
) -> HistoryPoint:
    """A point from the values of processes.

    Args:
        values: One value for each process, as the file has it. Samples within a process are
            one value, because they do not show how much processes differ.
        at: The time, ISO 8601 in UTC.
        scale: The factor from the file's unit to that of the series.
        environment_key: What else may change a value.
        missing: Why there is no value, if there are none.
    """
    read = [_number(value, scale) for value in values]
    problems = [problem for problem in read if isinstance(problem, str)]
    reason = problems[0] if problems else None if read else missing or "no result"
    launches = () if reason else tuple(number for number in read if isinstance(number, float))
    interval = geometric_mean_interval(launches) if launches else None
    bounded = interval is not None and math.isfinite(interval.high)
    return HistoryPoint(
        at=at,
        run=None,
        commit=commit,
        value=geometric_mean(launches) if launches else None,
        bounds=(interval.low, interval.high) if interval and bounded else None,
        launches=launches,
        missing=reason,
        environment_key=environment_key,
    )


def median_of(samples: Sequence[object]) -> object:
    """The median of a process's samples; if one of them is not a finite number, that one."""
    for sample in samples:
        if not isinstance(sample, int | float) or not math.isfinite(sample):
            return sample
    return statistics.median(samples) if samples else None  # type: ignore[type-var]


def _number(value: object, scale: float) -> float | str:
    """A number of a file, perhaps as text, in the series' unit; or why it has no ratio."""
    if value is None:
        return _NO_VALUE
    try:
        number = float(value) * scale if isinstance(value, int | float | str) else math.nan
    except ValueError:
        number = math.nan
    except OverflowError:
        number = math.inf
    if math.isnan(number):
        return f"{_NO_NUMBER}: {clean(str(value))[:40]}"
    if math.isinf(number):
        return "the value is infinite"
    return number if number > 0 else INCOMPARABLE


def series_of(
    context: Context,
    points: Sequence[HistoryPoint],
    *,
    scenario: str,
    host: object = None,
    cell: str = "default",
    unit: str = "ns",
    more_is_better: bool = False,
    commit_url: str | None = None,
) -> Series:
    """A series of another tool; names are made safe to store and display."""
    name = label(scenario) or UNNAMED_HOST
    host_name = context.host_name(host)
    return Series(
        project=context.project,
        host=host_name,
        host_name=host_name,
        scenario=name,
        title=name,
        cell=label(cell) or "default",
        unit=label(unit),
        margin=MARGIN,
        reproduce=(),
        points=HistoryPoints.of(points),
        more_is_better=more_is_better,
        commit_url=commit_url,
    )


def key_of(parameters: Mapping[str, Any]) -> str:
    """A cell's key for parameters; `default` without any.

    >>> key_of({"rows": 10, "kind": "a,b=c"}), key_of({})
    ('rows=10,kind=a;b=c', 'default')
    """
    names = (_part(name).replace("=", ":") for name in parameters)
    pairs = zip(names, map(_part, parameters.values()), strict=True)
    return ",".join(map("=".join, pairs)) or "default"


def _part(value: object) -> str:
    text = str(value)
    # A comma becomes a semicolon, so a text with semicolons of its own needs another name.
    return f"{text.replace(',', ';')} {digest_of(text)}" if ";" in text else text.replace(",", ";")


def environment_of(values: Mapping[str, object]) -> EnvironmentKey:
    """What may change a value besides the commit, without what is unknown."""
    return tuple(
        (name, clean(str(value))) for name, value in values.items() if value not in (None, "")
    )


def commit_of(sha: object, *, subject: object = "", at: str, dirty: bool = False) -> Commit | None:
    """A commit of a file; None if the text is not a hash."""
    if not isinstance(sha, str) or not _SHA.fullmatch(sha):
        return None
    return Commit(
        sha=sha, subject=clean(str(subject).partition("\n")[0]), committed_at=at, dirty=dirty
    )


def committed_at(text: object, measured_at: str) -> str:
    """When a commit was made; when it was measured, if that is unknown."""
    try:
        return utc(text)
    except Unreadable:
        return measured_at


def utc(text: object) -> str:
    """An ISO 8601 time in UTC, to the second; a time without a zone is in UTC.

    Raises:
        Unreadable: It is not a time.

    >>> utc("2026-01-02T03:04:05+01:00"), utc("2026-01-02 03:04:05.5")
    ('2026-01-02T02:04:05Z', '2026-01-02T03:04:05Z')
    """
    try:
        moment = datetime.fromisoformat(str(text))
        zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return _text(zoned.astimezone(UTC))
    except (ValueError, OverflowError):
        raise Unreadable(
            f"{clean(repr(text))} is not a time.", "Pass the time of measurement with --date."
        ) from None


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
