"""Read result files of other tools as series, one launch for each process that measured."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import Fault, InputError
from corebound.exchange.reading import Progress, Unreadable, clean
from corebound.records.history import (
    INCOMPARABLE,
    EnvironmentKey,
    HistoryPoint,
    HistoryPoints,
    Series,
)
from corebound.records.run_record import Commit
from corebound.stats.intervals import geometric_mean, geometric_mean_interval

# The least change that matters, as in a scenario.
MARGIN = 0.02
UNNAMED_HOST = "unnamed"
_SHA = re.compile(r"[0-9a-f]{7,64}")


class Context(Struct, frozen=True, kw_only=True):
    """What the user states about files that the files do not contain.

    Attributes:
        project: The project of the history.
        host: The name of the machine; replaces the files' own.
        commit: The commit that was measured; replaces the files' own.
        at: When it was measured, ISO 8601 in UTC; replaces the files' own.
        modified_at: When the file was last written.
    """

    project: str
    host: str | None = None
    commit: Commit | None = None
    at: str | None = None
    modified_at: str = ""

    def moment(self, own: object) -> str:
        """The time of measurement: the user's, the file's own, or that of its last change.

        Raises:
            Unreadable: The file's own is not a time.
        """
        if self.at is not None:
            return self.at
        return utc(own) if own else self.modified_at

    def host_name(self, own: object) -> str:
        """The name of the machine: the user's, or the file's own."""
        return clean(str(self.host or own or UNNAMED_HOST))


Reader = Callable[[Path, Context], Sequence[Series]]


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
        paths: The files.
        read: Reads one of them.
        context: What the user says about all of them.
        progress: Called with the number of files read and the total.

    Raises:
        InputError: No file can be read.
    """
    faults: list[Fault] = []
    series: list[Series] = []
    for number, path in enumerate(paths):
        progress(number, len(paths))
        try:
            written = datetime.fromtimestamp(path.stat().st_mtime, UTC)
            series += read(path, replace(context, modified_at=_text(written)))
        except Unreadable as error:
            faults.append(_fault(path, error.what, error.fix))
        except OSError as error:
            faults.append(_fault(path, f"cannot be read: {error.strerror}.", "Check its path."))
    if not series:
        first = faults[0] if faults else _fault(paths[0], "no results.", "Name another file.")
        raise InputError(what=first.what, where=first.file, fix=first.fix)
    return ResultFiles(
        series=_with_joined_launches(series), files=len(paths) - len(faults), faults=tuple(faults)
    )


def _fault(path: Path, what: str, fix: str) -> Fault:
    return Fault(file=str(path), line=None, what=f"skipped: {what}", fix=fix)


def _with_joined_launches(all_series: Sequence[Series]) -> tuple[Series, ...]:
    """Make one point of the results of several files of one commit, day and environment.

    Each file is a process of its own, so together they show how much processes differ.
    """
    by_id: dict[str, list[Series]] = {}
    for series in all_series:
        by_id.setdefault(series.id, []).append(series)
    return tuple(
        replace(
            parts[-1],
            points=HistoryPoints.of(_joined([point for part in parts for point in part.points])),
        )
        for parts in by_id.values()
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
    launches: Sequence[float],
    *,
    at: str,
    commit: Commit | None,
    environment_key: EnvironmentKey = (),
    missing: str | None = None,
) -> HistoryPoint:
    """A point from the values of processes.

    Args:
        launches: One value for each process, in the series' unit. Samples within a process are
            one value, because they do not show how much processes differ.
        at: The time, ISO 8601 in UTC.
        commit: The commit, if known.
        environment_key: What else may change a value.
        missing: Why there is no value, if there are no launches.
    """
    usable = bool(launches) and all(0 < value < math.inf for value in launches)
    interval = geometric_mean_interval(launches) if usable else None
    bounded = interval is not None and math.isfinite(interval.high)
    reason = INCOMPARABLE if launches else missing or "no result"
    return HistoryPoint(
        at=at,
        run=None,
        commit=commit,
        value=geometric_mean(launches) if usable else None,
        bounds=(interval.low, interval.high) if interval and bounded else None,
        launches=tuple(launches) if usable else (),
        missing=None if usable else reason,
        environment_key=environment_key,
    )


def series_of(
    context: Context,
    points: Sequence[HistoryPoint],
    *,
    host: str,
    scenario: str,
    cell: str = "default",
    unit: str = "ns",
    more_is_better: bool = False,
    commit_url: str | None = None,
) -> Series:
    """A series of another tool; names are made safe to store and display."""
    name = clean(scenario) or UNNAMED_HOST
    return Series(
        project=context.project,
        host=host,
        host_name=host,
        scenario=name,
        title=name,
        cell=clean(cell) or "default",
        unit=clean(unit),
        margin=MARGIN,
        reproduce=(),
        points=HistoryPoints.of(points),
        more_is_better=more_is_better,
        commit_url=commit_url,
    )


def key_of(parameters: Mapping[str, Any]) -> str:
    """A cell's key for parameters; `default` without any.

    >>> key_of({"rows": 10, "kind": "a,b=c"}), key_of({})
    ('rows=10,kind=a;b:c', 'default')
    """
    pairs = (f"{_part(name)}={_part(value)}" for name, value in parameters.items())
    return ",".join(pairs) or "default"


def _part(text: object) -> str:
    return str(text).replace(",", ";").replace("=", ":")


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
