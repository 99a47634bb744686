"""`corebound list`, `show` and `log` without a terminal: the recorded runs and their launches."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from corebound.errors import Fault, InputError
from corebound.records import jsonl
from corebound.records.jsonl import Stored, StoredRun
from corebound.records.launch_record import Launch
from corebound.scenario.cell import axes_of_key
from corebound.workflow.execute import RunResult
from corebound.workflow.projects import Notify
from corebound.workflow.resolve_refs import matching_runs
from corebound.workflow.run_index import drop_unreadable_scenarios


class RecordedRun(Struct, frozen=True, kw_only=True):
    """A recorded run, in short.

    Attributes:
        run: Its id.
        file: Its file.
        started_at: When it started, ISO 8601 in UTC.
        host: The host's name.
        scenarios: The names of its scenarios.
        profile: The profile; None without one.
        commit: The commit that was checked out; None outside of a repository.
        launches: The number of launches by status.
    """

    run: str
    file: str
    started_at: str
    host: str
    scenarios: tuple[str, ...]
    profile: str | None
    commit: str | None
    launches: Mapping[str, int]


def list_runs(records: Path, notify: Notify) -> list[StoredRun]:
    """All runs of a folder of records, the newest first; their launches are not read.

    Args:
        notify: Called with a warning for each file that cannot be read.

    Raises:
        InputError: There is no run.
    """
    faults: list[Fault] = []
    stored = jsonl.runs(records, faults)
    for fault in faults:
        notify(f"warning: {fault}")
    if not stored:
        raise InputError(
            what="no run is recorded here.",
            where=str(records),
            fix="Measure something: `corebound run FILE`. Or name a folder with --records.",
        )
    return sorted(stored, key=_moment, reverse=True)


def _moment(stored: StoredRun) -> tuple[str, str]:
    return stored.run.started_at, stored.run.id


def find_run(name: str | None, records: Path, notify: Notify) -> Stored:
    """Read a run with its launches.

    Args:
        name: Its id, the start of it, or its file; None is the latest run. Of several that match,
            the latest is taken.
        notify: Called with a warning for each file that cannot be read.

    Raises:
        InputError: No run matches.
    """
    runs = list_runs(records, notify)
    matches = runs if name is None else matching_runs(name, runs, records)
    latest = max(matches, key=_moment)
    return jsonl.read(latest.file)


def recorded_run(stored: Stored) -> RecordedRun:
    """A run in short."""
    run = stored.run
    return RecordedRun(
        run=run.id,
        file=str(stored.file),
        started_at=run.started_at,
        host=run.host.name,
        scenarios=tuple(str(source.document["name"]) for source in run.scenarios),
        profile=run.profile,
        commit=run.commit.name if run.commit is not None else None,
        launches=dict(Counter(launch.status for launch in stored.launches)),
    )


def recorded_result(stored: Stored, notify: Notify) -> RunResult:
    """The result of a run, as when it ended.

    Args:
        notify: Called with a warning for each line and each scenario that cannot be read.
    """
    run, faults = drop_unreadable_scenarios(stored)
    for fault in faults:
        notify(f"warning: {fault}")
    # An interrupted run cannot be told from a complete one without planning it again.
    return RunResult(run=run, file=stored.file, launches=stored.launches, ending="complete")


class LaunchLog(Struct, frozen=True, kw_only=True):
    """What a launch printed.

    Attributes:
        id: The configuration's id, such as `hashing[binding=none]`.
        scenario: The scenario.
        cell: The configuration, such as `binding=none`.
        axes: The same by axis; values are text.
        run: The run's id.
        launch: The launch's id.
        status: How it ended: `ok`, `failed` and so on.
        reason: Why it did not succeed; None if it did.
        log: Its output, with the traceback if it failed.
    """

    id: str
    scenario: str
    cell: str
    axes: Mapping[str, str]
    run: str
    launch: str
    status: str
    reason: str | None
    log: str

    def __str__(self) -> str:
        """The output."""
        return self.log


def launch_log(stored: Stored, name: str | None) -> LaunchLog:
    """The output of a launch.

    Args:
        name: The launch's id; None is the last launch that failed.

    Raises:
        InputError: There is no such launch.
    """
    launch = _find_launch(stored, name)
    return LaunchLog(
        id=launch.cell.id,
        scenario=launch.cell.scenario,
        cell=launch.cell.key,
        axes=axes_of_key(launch.cell.key),
        run=launch.run,
        launch=launch.id,
        status=launch.status,
        reason=launch.reason,
        log=launch.log,
    )


def _find_launch(stored: Stored, name: str | None) -> Launch:
    if name is None:
        failed = [launch for launch in stored.launches if launch.status in {"failed", "timed-out"}]
        if failed:
            return failed[-1]
    for launch in stored.launches:
        if launch.id == name:
            return launch
    ids = ", ".join(launch.id for launch in stored.launches[:8])
    more = ", …" if len(stored.launches) > 8 else ""
    raise InputError(
        what="no launch of this run failed." if name is None else f"it has no launch `{name}`.",
        where=str(stored.file),
        fix=f"Name one of its launches: {ids}{more}." if ids else "It has no launches yet.",
    )
