"""Prepare a run for measurement: a new run, an interrupted run, or a run from its record."""

from __future__ import annotations

import io
import secrets
import stat
import sys
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound import __version__, git
from corebound.asv_bridge.snapshot import objects_of
from corebound.errors import CoreboundError, HostError, InputError
from corebound.launch import scratch
from corebound.launch.environments import Environment
from corebound.machine import discovery, identity
from corebound.machine.identity import Host
from corebound.planning.models import CannotRun
from corebound.planning.plan import HostCapabilities
from corebound.records import commits, jsonl
from corebound.records.jsonl import RECORDS
from corebound.records.launch_record import Launch
from corebound.records.run_record import SCHEMA, Commit, Run
from corebound.runner import Task, is_complete
from corebound.scenario.cell import Cell, is_project
from corebound.scenario.models import CommandWorkload, ProfileName, Scenario
from corebound.text import one_line
from corebound.workflow import projects, scenarios
from corebound.workflow.projects import Say
from corebound.workflow.scenarios import Loaded

# Looking through each takes some 20 ms. A user with so many completed runs since then has
# abandoned any run that was interrupted before them.
_MOST_COMPLETE = 20


class RunRequest(Struct, frozen=True, kw_only=True):
    """The user's request for a run.

    `config` is the asv.conf.json of the project under test. `python` is an interpreter in
    which the project is already installed, so that nothing is built. `committed` selects the
    checked-out commit of the project instead of the working tree. `records` is the folder for
    the records, which is not part of that tree.
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
    """A run, its tasks, and the launches already done.

    `note` says which run is continued, or why a new one begins instead.
    """

    run: Run
    file: Path
    tasks: tuple[Task, ...]
    done: tuple[Launch, ...]
    note: str | None

    @property
    def unfit(self) -> tuple[CannotRun, ...]:
        """The reasons why cells of the run cannot be launched."""
        return tuple(
            planned.unfit
            for task in self.tasks
            for planned in task.planned
            if planned.unfit is not None
        )


def begin(wanted: RunRequest, records: Path, say: Say) -> PreparedRun:
    """Prepare a new run; `say` is called with progress messages.

    Raises:
        CoreboundError: The scenarios, environments or host do not allow the run.
    """
    run, tasks = planned(_loaded(wanted), wanted, say)
    return PreparedRun(run=run, file=jsonl.file_of(run, records), tasks=tasks, done=(), note=None)


def resume(wanted: RunRequest, records: Path, say: Say, *, operators: bool) -> PreparedRun:
    """Prepare to continue this host's most recently interrupted run.

    If the user named files and no run has the same work, a new run begins.

    Args:
        wanted: The user's request; without files, the run's own files are used.
        records: The folder of records.
        say: Called with progress messages.
        operators: Whether to profile operators; a run may lack only that.

    Raises:
        InputError: The user named no files, and no run can be continued.
        CoreboundError: As `begin`.
    """
    known = written(records / _host().id, say)
    if not known:
        if wanted.files:
            return begin(wanted, records, say)
        raise InputError(
            what="there is no run of this host to go on with.",
            where=str(records),
            fix="Start one: `corebound run scenarios/`.",
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
            fix="Start a new run by naming the scenario files.",
        )
    # Do not fall back to older runs while the latest one can still be continued.
    if refusal is None or _is_complete(latest, file, operators=operators):
        found = interrupted(known, plans.like, operators=operators)
        if found is not None:
            return found
    if refusal is not None:
        raise refusal
    return replace(begin(wanted, records, say), note=f"A new run begins, for {differs}.")


def written(folder: Path, say: Say) -> Sequence[tuple[Path, Run]]:
    """List the files of a host's runs, last written first; report those that cannot be read.

    File names contain start times, but the clock may have been set back since.
    """
    found = []
    for file in folder.glob("*.jsonl"):
        try:
            state = file.stat()
            if stat.S_ISREG(state.st_mode):
                found.append((state.st_mtime_ns, file, jsonl.read_run(file)))
        except FileNotFoundError:
            continue  # a broken link, or removed since the folder was listed
        except InputError as error:
            say(one_line(f"Skipped {error.where}: {error.what}"))
    return [(file, run) for _, file, run in sorted(found, key=lambda one: one[:2], reverse=True)]


def interrupted(
    known: Iterable[tuple[Path, Run]],
    like: Callable[[Run], tuple[Run, tuple[Task, ...]]],
    *,
    operators: bool,
) -> PreparedRun | None:
    """Find the first continuable run with work left; without one, the first continuable run.

    Args:
        known: Runs and their files, last written first.
        like: Plans a run anew under the current conditions.
        operators: Whether to profile operators.

    Returns:
        The prepared run, or None if no run can be continued.
    """
    complete: list[PreparedRun] = []
    for file, run in known:
        try:
            now, tasks = like(run)
        except CoreboundError:
            continue  # such as a scenario file that no longer exists
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
    """Whether a run has everything that the scenarios in its record require."""
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
    """Plans runs anew; runs that differ only in their seed share the work."""

    def __init__(self, wanted: RunRequest, say: Say) -> None:
        self._wanted = wanted
        self._say = say
        self._known: dict[object, _Plan] = {}

    def like(self, before: Run) -> tuple[Run, tuple[Task, ...]]:
        """Plan a new run of the user's files, or of an earlier run's if the user named none.

        Raises:
            CoreboundError: The scenarios, environments or host do not allow the run.
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
    """What a run measures on this host, independent of the seed."""

    run: Run
    loaded: tuple[Loaded, ...]
    means: HostCapabilities

    def seeded(self, seed: int) -> tuple[Run, tuple[Task, ...]]:
        """The run and its tasks for a seed."""
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
    """Plan a new run of scenarios on this host; build the project under test if required.

    Args:
        loaded: The scenarios.
        wanted: The user's request; its files are already loaded.
        say: Called with progress messages.
        seed: The run's seed if `wanted` has none; None picks a random one.
        unmade: Why environments are missing, where that is already known.

    Raises:
        CoreboundError: The environments or the host do not allow the run.
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
    """The commit of the current folder, with the uncommitted changes that were measured.

    Uncommitted changes do not count if every environment was built from a commit.
    """
    here = commits.checked_out(Path.cwd())
    held = [one.lock.commit for one in made if one is not None]
    same = [one for one in held if one is not None and here is not None and one.sha == here.sha]
    changed = next((one for one in same if one.tree is not None), None)
    return changed or (same[0] if same and None not in held else here)


def difference(before: Run, now: Run) -> str | None:
    """Why launches of `now` are not comparable with those of `before`, or None if they are."""
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
    """The host properties that must not change; a hypervisor may add and remove memory."""
    allowed = tuple(cpu.id for cpu in run.host.topology.allowed)
    return run.host.id, run.host.kernel, allowed


def _commit(run: Run) -> tuple[str, bool, str | None] | None:
    commit = run.commit
    return None if commit is None else (commit.sha, commit.dirty, commit.tree)


def host_differs(before: Run) -> tuple[str, ...]:
    """The properties in which this host differs from the recorded one."""
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
    """The properties in which the cell's environment differs from the recorded one."""
    here, then = (run.lock_of(cell.environment) for run in (now, before))
    if then is None:
        return ()
    if here is None:
        fix = f"`corebound environment make {cell.environment}` makes it"
        if is_project(cell.environment):
            fix = "what was said above tells why"
        return (f"the environment {cell.environment} is not there: {fix}",)
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
    """Check out the scenario's file and the modules beside it, as of the run's commit.

    Args:
        before: The run.
        path: The recorded path of the file.
        scenario: Its content.
        stack: Removes the checkout on exit.
        snapshots: The snapshot store, if the run measured a working tree with changes.

    Raises:
        HostError: The commit is not available here, or git is not installed.
    """
    is_own = isinstance(scenario.workload, CommandWorkload) or ":" in scenario.workload
    now = commits.checked_out(Path.cwd())
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
            fix="It can be measured again only where its snapshot was taken.",
        )
    if archive is None:
        raise HostError(
            what=f"the commit it was measured at, {before.commit.sha[:10]}, is not here.",
            where=path,
            fix="Fetch it: `git fetch --all`.",
        )
    folder = stack.enter_context(scratch.made())
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder / path


def _git(*arguments: str, objects: str = "") -> bytes | None:
    """Return git's output, with `objects` as additional object folders; None if git fails."""
    environment = {"GIT_ALTERNATE_OBJECT_DIRECTORIES": objects}
    result = git.run(Path(), *arguments, environment=environment)
    return result.stdout if result.succeeded else None
