"""A run to be measured: a new one, one that was interrupted, or one as it was recorded."""

from __future__ import annotations

import io
import os
import secrets
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound import __version__
from corebound.asv_bridge.snapshot import objects_of
from corebound.errors import CoreboundError, HostError, InputError, git_needed
from corebound.launch import scratch
from corebound.launch.environments import Environment
from corebound.machine import discovery, identity
from corebound.machine.identity import Host
from corebound.planning.plan import HostCapabilities
from corebound.planning.slots import CannotRun
from corebound.records import git_commit, jsonl
from corebound.records.jsonl import RECORDS
from corebound.records.launch_record import Launch
from corebound.records.run_record import SCHEMA, Commit, Run
from corebound.runner import Task, is_complete
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import is_project
from corebound.scenario.models import CommandWorkload, ProfileName, Scenario
from corebound.text import one_line
from corebound.workflow import projects, scenarios
from corebound.workflow.projects import Say
from corebound.workflow.scenarios import Loaded

# Each takes some 20 ms to look through. Whoever has completed so many since has given up what
# was interrupted before them.
_MOST_COMPLETE = 20


class RunRequest(Struct, frozen=True, kw_only=True):
    """What the user asked to be measured, as it was asked.

    `config` is the asv.conf.json of the project under test; `python` an interpreter
    that has the project already, which is then not built. Of the project, the commit that is
    checked out is measured where `committed`, else the working tree. `records` is the folder
    they go to, which is no part of that tree.
    """

    files: tuple[Path, ...]
    profile: ProfileName | None
    only: tuple[str, ...]
    seed: int | None
    config: Path = projects.CONFIG
    python: Path | None = None
    committed: bool = False
    records: Path = RECORDS


class PreparedRun(Struct, frozen=True, kw_only=True):
    """A run, what it is made of, and what of it has been done.

    `note` says which run is continued, or why a new one begins although one was to be.
    """

    run: Run
    file: Path
    tasks: tuple[Task, ...]
    done: tuple[Launch, ...]
    note: str | None

    @property
    def unfit(self) -> tuple[CannotRun, ...]:
        """Why cells of it cannot be launched."""
        return tuple(
            planned.unfit
            for task in self.tasks
            for planned in task.planned
            if planned.unfit is not None
        )


def begin(wanted: RunRequest, records: Path, say: Say) -> PreparedRun:
    """Prepare a new run; `say` is told what takes time.

    Raises:
        CoreboundError: scenarios, environments or the host do not allow it.
    """
    run, tasks = planned(_loaded(wanted), wanted, say)
    return PreparedRun(run=run, file=jsonl.file_of(run, records), tasks=tasks, done=(), note=None)


def resume(wanted: RunRequest, records: Path, say: Say, *, operators: bool) -> PreparedRun:
    """Prepare to continue the run of this host that was interrupted last.

    Where files were named and no run is of the same work, a new run begins.

    Args:
        wanted: What the user asked for; without files, those of the run.
        records: The folder of records.
        say: Told what takes time.
        operators: Whether operators are to be profiled; a run may lack only that.

    Raises:
        InputError: no files were named, and there is no run that can go on.
        CoreboundError: as `begin`.
    """
    known = written(records / _host().id, say)
    if not known:
        if wanted.files:
            return begin(wanted, records, say)
        raise InputError(
            what="there is no run of this host to go on with.",
            where=str(records),
            mend="Start one: `corebound run scenarios/`.",
        )
    plans = _Plans(wanted, say)
    file, latest = known[0]
    differs, refusal = None, None
    try:
        differs = difference(latest, plans.like(latest)[0])
    except CoreboundError as error:
        if wanted.files:
            raise
        refusal = error
    if differs is not None and not wanted.files:
        refusal = InputError(
            what=f"the latest run cannot go on: {differs}.",
            where=str(file),
            mend="Start a new run by naming the scenario files.",
        )
    # Older runs are not meant while the latest one waits to be continued.
    if refusal is None or _is_complete(latest, file, operators=operators):
        found = interrupted(known, plans.like, operators=operators)
        if found is not None:
            return found
    if refusal is not None:
        raise refusal
    return replace(begin(wanted, records, say), note=f"A new run begins, for {differs}.")


def written(folder: Path, say: Say) -> Sequence[tuple[Path, Run]]:
    """The files of a host's runs, the last written first; those that cannot be read are told.

    A file's name tells when its run began, by a clock that may have been set back since.
    """
    found = []
    for file in folder.glob("*.jsonl"):
        try:
            state = file.stat()
            if stat.S_ISREG(state.st_mode):
                found.append((state.st_mtime_ns, file, jsonl.read_run(file)))
        except FileNotFoundError:
            continue  # a link to nowhere, or removed since the folder was listed
        except InputError as error:
            say(one_line(f"Skipped {error.where}: {error.what}"))
    return [(file, run) for _, file, run in sorted(found, key=lambda one: one[:2], reverse=True)]


def interrupted(
    known: Iterable[tuple[Path, Run]],
    like: Callable[[Run], tuple[Run, tuple[Task, ...]]],
    *,
    operators: bool,
) -> PreparedRun | None:
    """The first of runs that can go on and has something left to do, else the first that can.

    Args:
        known: Runs and their files, the last written first.
        like: Plans a run anew, as things are now.
        operators: Whether operators are to be profiled.

    Returns:
        None where no run can go on.
    """
    complete: list[PreparedRun] = []
    for file, run in known:
        try:
            now, tasks = like(run)
        except CoreboundError:
            continue  # such as a scenario's file that is gone
        if difference(run, now) is not None:
            continue
        done = jsonl.read(file).launches
        found = PreparedRun(run=run, file=file, tasks=tasks, done=done, note=None)
        if not is_complete(run, tasks, done, operators=operators):
            note = f"Continuing the run of {run.started_at}: {file} holds {len(done)} launches."
            return replace(found, note=note)
        complete.append(found)
        if len(complete) == _MOST_COMPLETE:
            break
    return complete[0] if complete else None


def _host() -> Host:
    return identity.host(discovery.live())


def _is_complete(run: Run, file: Path, *, operators: bool) -> bool:
    """Whether a run has all that its scenarios asked for, as its record holds them."""
    try:
        loaded = scenarios.recorded(run)
        means = scenarios.live_means(scenarios.environments_of(loaded, Path.cwd()))
    except CoreboundError:
        return False
    tasks = tuple(
        scenarios.task_of(one, means, profile=run.profile, seed=run.seed) for one in loaded
    )
    return is_complete(run, tasks, jsonl.read(file).launches, operators=operators)


class _Plans:
    """Plans runs anew; those that differ in their seed alone share the work."""

    def __init__(self, wanted: RunRequest, say: Say) -> None:
        self._wanted = wanted
        self._say = say
        self._known: dict[object, _Plan] = {}

    def like(self, before: Run) -> tuple[Run, tuple[Task, ...]]:
        """A new run of what the user asked for, or if that is no files, of an earlier run's.

        Raises:
            CoreboundError: scenarios, environments or the host do not allow it.
        """
        wanted = self._wanted if self._wanted.files else _as_before(before, self._wanted)
        key = wanted.files, wanted.profile, wanted.only
        if key not in self._known:
            self._known[key] = _planned(_loaded(wanted), wanted, self._say)
        return self._known[key].seeded(before.seed if wanted.seed is None else wanted.seed)


def _as_before(run: Run, wanted: RunRequest) -> RunRequest:
    return replace(
        wanted,
        files=tuple(Path(source.path) for source in run.scenarios),
        profile=run.profile,
        only=run.only,
    )


def _loaded(wanted: RunRequest) -> tuple[Loaded, ...]:
    return scenarios.load_all(wanted.files, wanted.only, wanted.profile)


class _Plan(Struct, frozen=True, kw_only=True):
    """What a run measures on this host, whatever its seed."""

    run: Run
    loaded: tuple[Loaded, ...]
    means: HostCapabilities

    def seeded(self, seed: int) -> tuple[Run, tuple[Task, ...]]:
        """The run with a seed."""
        run = replace(self.run, seed=seed)
        return run, tuple(
            scenarios.task_of(one, self.means, profile=run.profile, seed=seed)
            for one in self.loaded
        )


def planned(
    loaded: tuple[Loaded, ...],
    wanted: RunRequest,
    say: Say,
    *,
    seed: int | None = None,
    unmade: Mapping[str, CannotRun] | None = None,
) -> tuple[Run, tuple[Task, ...]]:
    """A new run of scenarios on this host; the project under test is built where they need it.

    Args:
        loaded: The scenarios.
        wanted: What was asked; its files have been loaded.
        say: Told what takes time.
        seed: The run's, where `wanted` names none; None: a random one.
        unmade: Why an environment is not there, where that is known already.

    Raises:
        CoreboundError: environments or the host do not allow it.
    """
    plan = _planned(loaded, wanted, say, unmade=unmade)
    chosen = next((one for one in (wanted.seed, seed) if one is not None), None)
    return plan.seeded(secrets.randbelow(2**31) if chosen is None else chosen)


def _planned(
    loaded: tuple[Loaded, ...],
    wanted: RunRequest,
    say: Say,
    *,
    unmade: Mapping[str, CannotRun] | None = None,
) -> _Plan:
    cells = scenarios.cells_of(loaded)
    if wanted.python is None:
        project = projects.built(
            cells,
            wanted.config,
            say,
            outputs=(wanted.records,),
            committed=wanted.committed,
        )
    else:
        project = projects.given(cells, wanted.python)
    made = scenarios.environments_of(loaded, Path.cwd(), project)
    means = scenarios.live_means(made, {**project.unmade, **(unmade or {})})
    run = Run(
        schema=SCHEMA,
        id=secrets.token_hex(4),
        started_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        corebound=__version__,
        argv=("corebound", *sys.argv[1:]),
        seed=0,
        profile=wanted.profile,
        only=wanted.only,
        host=identity.host(means.topology),
        commit=_commit_of(made.values()),
        scenarios=tuple(one.source for one in loaded),
        environments=tuple(one.lock for one in made.values() if one is not None),
    )
    return _Plan(run=run, loaded=loaded, means=means)


def _commit_of(made: Iterable[Environment | None]) -> Commit | None:
    """The commit of the folder we are in, with the changes that were measured.

    Changes there are of no account where all that ran was built of commits.
    """
    here = git_commit.commit(Path.cwd())
    held = [one.lock.commit for one in made if one is not None]
    same = [one for one in held if one is not None and here is not None and one.sha == here.sha]
    changed = next((one for one in same if one.tree is not None), None)
    return changed or (same[0] if same and None not in held else here)


def difference(before: Run, now: Run) -> str | None:
    """Why launches of `now` would not be comparable with those of `before`, or None."""
    compared: Sequence[tuple[str, object, object]] = (
        ("the scenarios are others", _names(before), _names(now)),
        ("a scenario has changed", _hashes(before), _hashes(now)),
        ("the profile is another", before.profile, now.profile),
        ("other cells were asked for", before.only, now.only),
        ("the seed is another", before.seed, now.seed),
        ("corebound is another version", before.corebound, now.corebound),
        ("an environment has changed", before.environments, now.environments),
        ("the host has changed", _machine(before), _machine(now)),
        ("the commit is another", _commit(before), _commit(now)),
    )
    return next((why for why, one, other in compared if one != other), None)


def _names(run: Run) -> set[str]:
    return {source.path for source in run.scenarios}


def _hashes(run: Run) -> set[str]:
    return {source.sha256 for source in run.scenarios}


def _machine(run: Run) -> tuple[object, ...]:
    """What of a host has to stay: a hypervisor may well give and take memory meanwhile."""
    allowed = tuple(cpu.id for cpu in run.host.topology.allowed)
    return run.host.id, run.host.kernel, allowed


def _commit(run: Run) -> tuple[str, bool, str | None] | None:
    commit = run.commit
    return None if commit is None else (commit.sha, commit.dirty, commit.tree)


def host_differs(before: Run) -> tuple[str, ...]:
    """What of this host is not as it was then."""
    topology = discovery.live()
    here, then = identity.host(topology), before.host
    said = []
    if here.id != then.id:
        said.append(f"the host is {here.name} ({here.id}), and was {then.name} ({then.id})")
    elif [cpu.id for cpu in topology.allowed] != [cpu.id for cpu in then.topology.allowed]:
        said.append("other CPUs may be used than then")
    if here.kernel != then.kernel:
        said.append(f"the kernel is {here.kernel}, and was {then.kernel}")
    if __version__ != before.corebound:
        said.append(f"corebound is {__version__}, and was {before.corebound}")
    return tuple(said)


def environment_differs(cell: Cell, before: Run, now: Run) -> tuple[str, ...]:
    """What of the cell's environment is not as it was then."""
    here, then = (run.lock_of(cell.environment) for run in (now, before))
    if then is None:
        return ()
    if here is None:
        mend = f"`corebound environment make {cell.environment}` makes it"
        if is_project(cell.environment):
            mend = "what was said above tells why"
        return (f"the environment {cell.environment} is not there: {mend}",)
    said = []
    if here.python != then.python:
        said.append(f"Python is {here.python}, and was {then.python}")
    changed = sorted(set(here.packages) ^ set(then.packages))
    if changed:
        listed = ", ".join(
            f"{'+' if one in here.packages else '−'}{one}" for one in changed[:8]
        ) + (", …" if len(changed) > 8 else "")
        said.append(f"the environment {cell.environment} holds other packages: {listed}")
    return tuple(said)


def checked_out(
    before: Run,
    path: str,
    scenario: Scenario,
    stack: ExitStack,
    snapshots: Path | None = None,
) -> Path:
    """The scenario's file with its own modules beside it, as they were in the run's commit.

    Args:
        before: The run.
        path: Of the file, as recorded.
        scenario: What is in it.
        stack: Removes what is made here.
        snapshots: The store of snapshots, where the run measured a working tree with changes.

    Raises:
        HostError: that commit is not here, or no git to take it out with.
    """
    is_own = isinstance(scenario.workload, CommandWorkload) or ":" in scenario.workload
    now = git_commit.commit(Path.cwd())
    if before.commit is None or not is_own or Path(path).is_absolute():
        return Path(path)
    if now is not None and now.sha == before.commit.sha and not now.dirty:
        return Path(path)
    top = _git("rev-parse", "--show-prefix")
    archive = _git(
        "archive",
        "--format=tar",
        f"{before.commit.tree or before.commit.sha}:{(top or b'').decode().strip()}",
        objects="" if snapshots is None else objects_of(snapshots),
    )
    if archive is None and before.commit.tree is not None:
        raise HostError(
            what=f"the working tree it was measured of, {before.commit.name}, is not here.",
            where=path,
            mend="It can be measured again only where its snapshot was taken.",
        )
    if archive is None:
        raise HostError(
            what=f"the commit it was measured at, {before.commit.sha[:10]}, is not here.",
            where=path,
            mend="Fetch it: `git fetch --all`.",
        )
    folder = stack.enter_context(scratch.made())
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder / path


def _git(*words: str, objects: str = "") -> bytes | None:
    """What git says, who finds objects in these folders too; None where it fails."""
    with git_needed(Path.cwd()):
        done = subprocess.run(
            ("git", *words),
            env={**os.environ, "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    return done.stdout if done.returncode == 0 else None
