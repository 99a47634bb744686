"""Plan a fleet, run it through its engine, and collect its records."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
from collections import ChainMap, Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from corebound import __version__, clock, git
from corebound.errors import CoreboundError, Fault, InputError, ScenarioFaults
from corebound.fleet import agent, folder
from corebound.fleet.collect import Collected, collect_shard
from corebound.fleet.coordinator import (
    DAMAGED,
    UNSIGNED,
    Coordinator,
    assignment_of,
    fleet_of,
    in_flight,
    is_done,
)
from corebound.fleet.engines import Engine, RemoteEngine, open_engine
from corebound.fleet.file import FleetFile, load_fleet
from corebound.fleet.folder import PlanFolder, RecordFile, ShardReport, ShardState
from corebound.fleet.plan import PlannedHost, PlannedScenario, Shard, Source, freeze
from corebound.fleet.source import check_out, pack
from corebound.fleet.status import FleetStatus, fleet_status
from corebound.launch import environments
from corebound.records import atomic_write, commits
from corebound.records.run_record import Commit
from corebound.scenario.cell import is_project
from corebound.workflow import scenarios
from corebound.workflow.options import Argument, Option
from corebound.workflow.projects import Notify

FOLDER = Path("reports/fleet")
# The wait between two questions to an engine that has all its jobs grows to this.
_POLL_S, _MOST_POLLS = 1.0, 30
# `status` looks at the latest rounds for shards that are not collected.
_MOST_ROUNDS = 30
# A worker process that was killed is replaced within seconds.
_GRACE_S = 10.0
_MOST_BYTES = 1 << 20


File = Annotated[Path, Argument("Fleet file.")]
Folder = Annotated[Path, Option("Folder of the plans of all fleets.")]


class FleetRequest(Struct, frozen=True, kw_only=True):
    """Which plan of a fleet."""

    file: File
    round_name: Annotated[
        str | None,
        Option("Round, or id of a plan. Default: what was planned last.", name="--round"),
    ] = None
    folder: Folder = FOLDER

    def open(self) -> PlanFolder:
        """Open the plan.

        Raises:
            CoreboundError: The fleet file is invalid, or there is no such plan.
        """
        return folder.open_folder(self.folder / read_fleet(self.file).name, self.round_name)


def read_fleet(file: Path) -> FleetFile:
    """Read a fleet file.

    Raises:
        ScenarioFaults: It cannot be read, or is invalid.
    """
    try:
        with atomic_write.opened(file) as stream:
            data = stream.read(_MOST_BYTES + 1)
    except OSError as error:
        what = f"the file cannot be read: {error.strerror}."
        fault = Fault(file=str(file), line=None, what=what, fix="Name a fleet file.")
        raise ScenarioFaults((fault,)) from error
    return load_fleet(data, str(file))


def plan_fleet(request: FleetRequest, round_name: str, notify: Notify) -> PlanFolder:
    """Freeze the plan of a fleet. The same inputs give the same plan, with its state.

    Args:
        round_name: Distinguishes repetitions of the same measurement.

    Raises:
        CoreboundError: The fleet file, the commit or a scenario is invalid, or the engine
            cannot be reached.
    """
    fleet = read_fleet(request.file)
    fleet_folder = request.folder / fleet.name
    suite, commit = _planned_commit(request.file, fleet)
    with folder.report_write_errors(fleet_folder):
        fleet_folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=fleet_folder, prefix=".new-") as temporary:
            bundle = Path(temporary, "source.bundle")
            clone = Path(temporary, "source")
            pack(suite, commit.sha, bundle)
            check_out(bundle, commit.sha, clone)
            prefix = git.query(suite, "rev-parse", "--show-prefix") or ""
            source = Source(
                folder=prefix.rstrip("/"),
                sha256=hashlib.sha256(bundle.read_bytes()).hexdigest(),
                size_bytes=bundle.stat().st_size,
            )
            plan = freeze(
                document=fleet.document(),
                round_name=round_name,
                created_at=clock.timestamp(),
                corebound=__version__,
                commit=commit,
                source=source,
                scenarios=_planned_scenarios(fleet, clone / source.folder),
                hosts=_hosts(fleet, fleet_folder, notify),
            )
            return folder.create(fleet_folder, plan, bundle)


def _planned_commit(file: Path, fleet: FleetFile) -> tuple[Path, Commit]:
    """The folder of a fleet file, and the commit of its repository that is to be measured."""
    suite = file.absolute().parent
    sha = git.query(suite, "rev-parse", "--verify", "--quiet", f"{fleet.commit}^{{commit}}")
    if sha is None:
        raise InputError(
            what=f"its folder has no commit `{fleet.commit}`.",
            where=str(file),
            fix="A fleet measures a commit: keep the fleet file and its scenarios in a git"
            " repository.",
        )
    return suite, commits.read_commits(suite, [sha])[sha]


def _planned_scenarios(fleet: FleetFile, suite: Path) -> tuple[PlannedScenario, ...]:
    """Read the scenarios of the planned commit."""
    if not suite.is_dir():
        raise InputError(
            what="the planned commit does not have this folder.",
            where=suite.name,
            fix="Commit it, or choose another `commit`.",
        )
    with contextlib.chdir(suite):
        paths = [Path(path) for path in fleet.scenarios]
        for path in paths:
            if not path.exists():
                raise InputError(
                    what="the planned commit does not have this scenario.",
                    where=str(path),
                    fix="Commit it, or choose another `commit`.",
                )
        loaded = scenarios.load_scenarios(paths, fleet.only, fleet.profile)
        return tuple(
            PlannedScenario(
                name=scenario.scenario.name,
                path=scenario.source.path,
                sha256=scenario.source.sha256,
                environments={
                    name: "" if is_project(name) else environments.lock_sha256(name, Path.cwd())
                    for name in sorted({cell.environment for cell in scenario.cells})
                },
            )
            for scenario in loaded
        )


def _hosts(fleet: FleetFile, fleet_folder: Path, notify: Notify) -> tuple[PlannedHost, ...]:
    """The hosts that are named or selected, with the labels of all their entries, own first."""
    hosts: dict[str, dict[str, str]] = {}
    for entry in sorted(fleet.entries(), key=lambda entry: entry.name is None):
        names = [entry.name] if entry.name is not None else []
        if entry.name is None:
            with contextlib.closing(open_engine(fleet, (), fleet_folder / "engine")) as engine:
                names = list(engine.select(entry))
            notify(f"{len(names)} hosts selected")
        for name in names:
            hosts[name] = {**entry.labels, **hosts.get(name, {})}
    return tuple(PlannedHost(name=name, labels=labels) for name, labels in hosts.items())


@contextmanager
def _connected(plan_folder: PlanFolder) -> Iterator[tuple[FleetFile, Engine]]:
    """The engine of a plan."""
    fleet = fleet_of(plan_folder.plan)
    hosts = tuple(host.name for host in plan_folder.plan.hosts)
    with contextlib.closing(open_engine(fleet, hosts, plan_folder.path / "engine")) as engine:
        yield fleet, engine


def run_fleet(
    plan_folder: PlanFolder,
    notify: Notify,
    *,
    again: bool = False,
    detach: bool = False,
    sleep: Callable[[float], None] = time.sleep,
) -> FleetStatus:
    """Deliver the shards of a plan that are not done, and wait for them.

    Args:
        again: Whether to deliver shards again that have failed or were cancelled.
        detach: Whether to return when the engine has them, if it keeps jobs by itself.
        sleep: Waits some seconds.

    Raises:
        CoreboundError: The engine cannot be reached, or refuses them.
    """
    states = _states(plan_folder)
    if all(map(is_done, states.values())):
        return fleet_status(plan_folder.plan, states)
    with plan_folder.lock(), _connected(plan_folder) as (fleet, engine):
        if detach and not engine.outlives_us:
            raise InputError(
                what=f"the engine {fleet.engine} forgets its tasks when this command ends.",
                where="--detach",
                fix="Omit --detach, and keep the command running.",
            )
        coordinator = Coordinator(plan_folder, fleet, engine, now=clock.timestamp, again=again)
        _cancel_marker(plan_folder).unlink(missing_ok=True)
        try:
            patient = not engine.one_at_a_time
            _wait(coordinator, plan_folder, notify, detach=detach, patient=patient, sleep=sleep)
        except KeyboardInterrupt:
            if not engine.outlives_us:
                coordinator.cancel()
            raise
        return fleet_status(plan_folder.plan, coordinator.states, coordinator.absent)


def _wait(
    coordinator: Coordinator,
    plan_folder: PlanFolder,
    notify: Notify,
    *,
    detach: bool,
    patient: bool,
    sleep: Callable[[float], None],
) -> None:
    """Step until nothing is in flight, and absent hosts have had a moment to come back.

    Steps become rare if that is `patient`: no host idles until the next one.
    """
    idle_s, before, waited = 0.0, "", 0
    while True:
        is_active = coordinator.step()
        status = fleet_status(plan_folder.plan, coordinator.states)
        counts = ", ".join(f"{number} {word}" for word, number in status.counts.items())
        if counts != before:
            notify(counts)
            before = counts
        if detach:
            return
        idle_s = 0.0 if is_active else idle_s + _POLL_S
        if not is_active and (not coordinator.waiting or idle_s > _GRACE_S):
            return
        # A quarter of the wait so far: the end is seen late by that at most.
        polls = min(max(1, waited // 4), _MOST_POLLS) if patient and is_active else 1
        for _ in range(polls):
            if _cancel_marker(plan_folder).exists():
                coordinator.cancel()
                return
            sleep(_POLL_S)
        waited += polls


def _cancel_marker(plan_folder: PlanFolder) -> Path:
    return plan_folder.path / "cancel"


def cancel_fleet(plan_folder: PlanFolder) -> int | None:
    """Stop all shards in flight.

    Returns:
        Their number; None if a running `fleet run` was asked to stop them.

    Raises:
        CoreboundError: The engine cannot be reached.
    """
    try:
        with plan_folder.lock():
            if not any(in_flight(plan_folder.state_of(shard)) for shard in plan_folder.plan.shards):
                return 0
            with _connected(plan_folder) as (fleet, engine):
                return Coordinator(plan_folder, fleet, engine, now=clock.timestamp).cancel()
    except folder.PlanHeldError:
        _cancel_marker(plan_folder).touch()
        return None


def status_of_fleet(plan_folder: PlanFolder) -> FleetStatus:
    """The status of a plan, with the reports that have arrived and the engine's answers.

    Raises:
        CoreboundError: The plan's folder is damaged.
    """
    unasked = ""
    with contextlib.suppress(CoreboundError), plan_folder.lock():
        unasked = _refresh(plan_folder, _Arrived(plan_folder, ()), notify=lambda _message: None)
    return _status(plan_folder, unasked)


def _status(plan_folder: PlanFolder, unasked: str) -> FleetStatus:
    plans = folder.plans(plan_folder.path.parent)
    rounds = Counter(planned.plan.round for planned in plans)
    uncollected = {}
    for other in plans[: -_MOST_ROUNDS - 1 : -1]:
        with contextlib.suppress(CoreboundError):
            counts = fleet_status(other.plan, _states(other)).counts
            number = sum(counts.get(word, 0) for word in ("done", "running", "queued"))
            if number and other.path != plan_folder.path:
                is_alone = rounds[other.plan.round] == 1
                uncollected[other.plan.round if is_alone else other.path.name] = number
    status = fleet_status(plan_folder.plan, _states(plan_folder))
    return replace(status, unasked=unasked, uncollected=uncollected)


def _refresh(plan_folder: PlanFolder, arrived: _Arrived, notify: Notify) -> str:
    """Ask the engine about what is in flight, and take the reports that are here.

    Returns:
        Why the engine could not be asked; empty if it was, or nothing is in flight.
    """
    unasked = ""
    # Dask forgets its tasks when the command that submitted them ends.
    if plan_folder.plan.engine != "dask" and any(map(in_flight, _states(plan_folder).values())):
        try:
            with _connected(plan_folder) as (fleet, engine):
                Coordinator(plan_folder, fleet, engine, now=clock.timestamp).poll()
        except CoreboundError as error:
            unasked = error.what
    _take_reports(plan_folder, arrived, notify)
    return unasked if any(map(in_flight, _states(plan_folder).values())) else ""


def _states(plan_folder: PlanFolder) -> dict[str, ShardState]:
    return {shard.id: plan_folder.state_of(shard) for shard in plan_folder.plan.shards}


class CollectResult(Struct, frozen=True, kw_only=True):
    """What `collect` has merged, by shard, and the status after it."""

    merged: dict[str, Collected]
    status: FleetStatus

    @property
    def has_refused(self) -> bool:
        """Whether the files or the report of any shard were refused."""
        refused = any(merge.problem for merge in self.merged.values())
        return refused or "refused" in self.status.counts

    @property
    def document(self) -> dict[str, Any]:
        """The result as plain data, as `--json` prints it."""
        return {"merged": to_builtins(self.merged), **self.status.document}


def collect_fleet(
    plan_folder: PlanFolder, records: Path, copied: Sequence[Path], notify: Notify
) -> CollectResult:
    """Merge the records of all shards that are done.

    Args:
        copied: Folders with copies of the hosts' working folders, for fleets whose hosts
            cannot be reached from here.

    Raises:
        InputError: The folder of records cannot be written; what is collected stays.
    """
    merged: dict[str, Collected] = {}
    with plan_folder.lock(), _Arrived(plan_folder, copied) as arrived:
        if copied and not any(map(arrived.is_copied, plan_folder.plan.shards)):
            where = ", ".join(map(str, copied))
            notify(f"{where}: no copy of a shard of the plan {plan_folder.plan.id}")
        unasked = _refresh(plan_folder, arrived, notify)
        ids = ChainMap[str, str]({}, plan_folder.host_ids())
        owners = {host_id: host for host, host_id in ids.items()}
        for shard in plan_folder.plan.shards:
            # Files of records are in a folder of their host's id.
            collected = plan_folder.state_of(shard).collected
            owners.update({Path(file).parts[0]: shard.host for file in collected})
        # Once, at the end: with a thousand hosts their ids are a large file.
        arrived.callback(_keep_ids, plan_folder, ids.maps[0])
        for shard in plan_folder.plan.shards:
            state = plan_folder.state_of(shard)
            if state.report is None or not is_done(state):
                continue
            result = collect_shard(
                plan_folder.plan,
                shard,
                files=state.report.records,
                read=partial(arrived.read, shard.host),
                records=records,
                host_ids=ids,
                owners=owners,
            )
            is_there = [(records / file).is_file() for file in state.collected]
            if result.problem and not state.problem and is_there and all(is_there):
                # It was collected before; its host was cleaned up, renamed or replaced since.
                continue
            # What was collected before may be of a machine that is forgotten since.
            if result.host_id is not None and not state.collected:
                owners[ids.setdefault(shard.host, result.host_id)] = shard.host
            if result.problem:
                notify(f"{shard.host}, {shard.scenario}: {result.problem}")
            after = replace(state, collected=result.files, problem=result.problem)
            if after != state:
                plan_folder.write_state(shard, after)
            merged[shard.id] = result
        status = _status(plan_folder, unasked or arrived.unasked)
    if status.unasked:
        notify(f"The engine was not asked: {status.unasked}")
    return CollectResult(merged=merged, status=status)


def _keep_ids(plan_folder: PlanFolder, learned: Mapping[str, str]) -> None:
    if learned:
        # Meanwhile another round may have been collected.
        plan_folder.write_host_ids({**learned, **plan_folder.host_ids()})


def forget_host(plan_folder: PlanFolder, host: str) -> str:
    """Forget which machine a host was, so that the next one of that name is accepted.

    Returns:
        The host id that it had.

    Raises:
        CoreboundError: None is known, or another command works on the plan.
    """
    with plan_folder.lock():
        ids = plan_folder.host_ids()
        if host not in ids:
            raise InputError(
                what=f"no machine of the host `{host}` is known.",
                where=str(plan_folder.path.parent),
                fix=f"Name one of: {', '.join(sorted(ids)[:10]) or 'none, collect first'}.",
            )
        forgotten = ids.pop(host)
        plan_folder.write_host_ids(ids)
        return forgotten


# A file of records is found by this many last parts of its path, a report by three.
_RECORD_PARTS, _REPORT_PARTS = 5, 3


class _Arrived(contextlib.ExitStack):
    """The files of agents: in the plan's working folder, in copies of the hosts' ones, on hosts.

    A file may have been copied several times, and some of the copies be old or incomplete.
    """

    def __init__(self, plan_folder: PlanFolder, copies: Sequence[Path]) -> None:
        """List the copies; the hosts are asked only without any."""
        super().__init__()
        self._plan_folder = plan_folder
        self._may_ask = plan_folder.plan.engine == "dask" and not copies
        self._engine: RemoteEngine | None = None
        # Why the hosts could not be asked.
        self.unasked = ""
        task = assignment_of(plan_folder, fleet_of(plan_folder.plan), plan_folder.plan.shards[0])
        self._work = agent.place(task).parents[1]
        self._files: dict[tuple[str, ...], list[Path]] = {}
        for root in copies:
            for name, parts in (("report.json", _REPORT_PARTS), ("*.jsonl", _RECORD_PARTS)):
                for file in sorted(root.rglob(name)):
                    self._files.setdefault(file.parts[-parts:], []).append(file)

    def is_copied(self, shard: Shard) -> bool:
        """Whether the copies have a report of a shard, of any content."""
        return (shard.host, shard.id, "report.json") in self._files

    def report(self, shard: Shard) -> ShardReport | str | None:
        """The signed report of a shard's agent, best that it is done.

        Returns:
            Why a report does not count if none does; None if there is none.
        """
        own = self._work / shard.host / shard.id / "report.json"
        files = [*self._files.get(own.parts[-_REPORT_PARTS:], ())]
        # False, not an error, if only another user may look there.
        files += [own] if os.access(own, os.R_OK) else []
        read = [report for file in files if (report := agent.read_report(file)) is not None]
        whole = [report for report in read if report.shard == shard.id]
        signed = [report for report in whole if report.is_signed(self._plan_folder.key)]
        if signed:
            return min(signed, key=lambda report: report.state != "done")
        return (UNSIGNED if whole else DAMAGED) if files else None

    def read(self, host: str, record: RecordFile) -> bytes | None:
        """A file of records, whole if any copy is; None if there is none."""
        found = None
        parts = Path(record.path).parts[-_RECORD_PARTS:]
        for file in (Path(record.path), self._work.joinpath(*parts), *self._files.get(parts, ())):
            with contextlib.suppress(OSError):
                found = atomic_write.read(file)
                if hashlib.sha256(found).hexdigest() == record.sha256:
                    return found
        asked = self._ask(host, record)
        return found if asked is None else asked

    def _ask(self, host: str, record: RecordFile) -> bytes | None:
        """A file of records from its host, whose engine is connected at the first question."""
        if self.unasked or not self._may_ask:
            return None
        try:
            if self._engine is None:
                engine = self.enter_context(_connected(self._plan_folder))[1]
                self._engine = cast("RemoteEngine", engine)
            return self._engine.read(host, record)
        except CoreboundError as error:
            self.unasked = error.what
            return None


def _take_reports(plan_folder: PlanFolder, arrived: _Arrived, notify: Notify) -> None:
    """Take the reports of agents that no engine has returned, if they are signed."""
    for shard in plan_folder.plan.shards:
        state = plan_folder.state_of(shard)
        if is_done(state) or (report := arrived.report(shard)) is None:
            continue
        # Beside the job of an engine, a file may be of an earlier job.
        is_by_hand = arrived.is_copied(shard) or not state.attempts
        after = state
        if isinstance(report, ShardReport):
            if is_by_hand or report.state == "done":
                after = replace(state, report=report, problem="")
        elif is_by_hand:
            notify(f"{shard.host}, {shard.scenario}: {report}")
            after = replace(state, problem=report)
        if after != state:
            plan_folder.write_state(shard, after)


def open_or_plan(request: FleetRequest, notify: Notify) -> PlanFolder:
    """Open the plan of a fleet; make the current one if there is none.

    Raises:
        CoreboundError: The fleet file has changed since it was planned, or as `plan_fleet`.
    """
    fleet = read_fleet(request.file)
    if request.round_name is not None:
        return request.open()
    if not (request.folder / fleet.name / "current").exists():
        return plan_fleet(request, "1", notify)
    plan_folder = request.open()
    if plan_folder.plan.document != fleet.document():
        raise InputError(
            what="it has changed since it was planned.",
            where=str(request.file),
            fix="Plan again with `corebound fleet plan`, or name the planned round with --round.",
        )
    return plan_folder


def carry_out_by_hand(
    plan_folder: PlanFolder, host: str, index: int | None
) -> tuple[ShardReport, ...]:
    """Carry out the shards of this host without an engine, one by one.

    Args:
        host: The fleet's name for this host.
        index: The number of the only shard to carry out; None carries out all.
    """
    fleet = fleet_of(plan_folder.plan)
    shards = plan_folder.plan.shards
    chosen = shards if index is None else shards[index : index + 1]
    return tuple(
        # A person who asks wants it resumed.
        agent.carry_out_shard(assignment_of(plan_folder, fleet, shard), host, again=True)
        for shard in chosen
        if shard.host == host
    )
