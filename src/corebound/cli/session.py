"""A run to be measured: a new one, or one that was cut short and goes on."""

from __future__ import annotations

import secrets
import stat
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound import __version__
from corebound.cli import projects, suite
from corebound.cli.options import RECORDS
from corebound.cli.projects import Say
from corebound.cli.suite import Loaded
from corebound.errors import CoreboundError, InputError
from corebound.foreign import one_line
from corebound.host import provenance
from corebound.launch.environment import Environment
from corebound.model.measure import ProfileName
from corebound.model.plan import Unfit
from corebound.model.record import Launch
from corebound.model.run import SCHEMA, Commit, Host, Run
from corebound.planning.assemble import Means
from corebound.runner import Task, is_complete
from corebound.store import jsonl
from corebound.topology import probe

# Each takes some 20 ms to look through. Whoever has completed so many since has given up what
# was interrupted before them.
_MOST_COMPLETE = 20


class Wanted(Struct, frozen=True, kw_only=True):
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


class Session(Struct, frozen=True, kw_only=True):
    """A run, what it is made of, and what of it has been done.

    `note` says which run is continued, or why a new one begins although one was to be.
    """

    run: Run
    file: Path
    tasks: tuple[Task, ...]
    done: tuple[Launch, ...]
    note: str | None

    @property
    def unfit(self) -> tuple[Unfit, ...]:
        """Why cells of it cannot be launched."""
        return tuple(
            planned.unfit
            for task in self.tasks
            for planned in task.planned
            if planned.unfit is not None
        )


def begin(wanted: Wanted, records: Path, say: Say) -> Session:
    """Prepare a new run; `say` is told what takes time.

    Raises:
        CoreboundError: scenarios, environments or the host do not allow it.
    """
    run, tasks = planned(_loaded(wanted), wanted, say)
    return Session(run=run, file=jsonl.file_of(run, records), tasks=tasks, done=(), note=None)


def resume(wanted: Wanted, records: Path, say: Say, *, operators: bool) -> Session:
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
) -> Session | None:
    """The first of runs that can go on and has something left to do, else the first that can.

    Args:
        known: Runs and their files, the last written first.
        like: Plans a run anew, as things are now.
        operators: Whether operators are to be profiled.

    Returns:
        None where no run can go on.
    """
    complete: list[Session] = []
    for file, run in known:
        try:
            now, tasks = like(run)
        except CoreboundError:
            continue  # such as a scenario's file that is gone
        if difference(run, now) is not None:
            continue
        done = jsonl.read(file).launches
        found = Session(run=run, file=file, tasks=tasks, done=done, note=None)
        if not is_complete(run, tasks, done, operators=operators):
            note = f"Continuing the run of {run.started_at}: {file} holds {len(done)} launches."
            return replace(found, note=note)
        complete.append(found)
        if len(complete) == _MOST_COMPLETE:
            break
    return complete[0] if complete else None


def _host() -> Host:
    return provenance.host(probe.live())


def _is_complete(run: Run, file: Path, *, operators: bool) -> bool:
    """Whether a run has all that its scenarios asked for, as its record holds them."""
    try:
        loaded = suite.recorded(run)
        means = suite.live_means(suite.environments_of(loaded, Path.cwd()))
    except CoreboundError:
        return False
    tasks = tuple(suite.task_of(one, means, profile=run.profile, seed=run.seed) for one in loaded)
    return is_complete(run, tasks, jsonl.read(file).launches, operators=operators)


class _Plans:
    """Plans runs anew; those that differ in their seed alone share the work."""

    def __init__(self, wanted: Wanted, say: Say) -> None:
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


def _as_before(run: Run, wanted: Wanted) -> Wanted:
    return replace(
        wanted,
        files=tuple(Path(source.path) for source in run.scenarios),
        profile=run.profile,
        only=run.only,
    )


def _loaded(wanted: Wanted) -> tuple[Loaded, ...]:
    return suite.load_all(wanted.files, wanted.only, wanted.profile)


class _Plan(Struct, frozen=True, kw_only=True):
    """What a run measures on this host, whatever its seed."""

    run: Run
    loaded: tuple[Loaded, ...]
    means: Means

    def seeded(self, seed: int) -> tuple[Run, tuple[Task, ...]]:
        """The run with a seed."""
        run = replace(self.run, seed=seed)
        return run, tuple(
            suite.task_of(one, self.means, profile=run.profile, seed=seed) for one in self.loaded
        )


def planned(
    loaded: tuple[Loaded, ...],
    wanted: Wanted,
    say: Say,
    *,
    seed: int | None = None,
    unmade: Mapping[str, Unfit] | None = None,
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
    wanted: Wanted,
    say: Say,
    *,
    unmade: Mapping[str, Unfit] | None = None,
) -> _Plan:
    cells = suite.cells_of(loaded)
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
    made = suite.environments_of(loaded, Path.cwd(), project)
    means = suite.live_means(made, {**project.unmade, **(unmade or {})})
    run = Run(
        schema=SCHEMA,
        id=secrets.token_hex(4),
        started_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        corebound=__version__,
        argv=("corebound", *sys.argv[1:]),
        seed=0,
        profile=wanted.profile,
        only=wanted.only,
        host=provenance.host(means.topology),
        commit=_commit_of(made.values()),
        scenarios=tuple(one.source for one in loaded),
        environments=tuple(one.lock for one in made.values() if one is not None),
    )
    return _Plan(run=run, loaded=loaded, means=means)


def _commit_of(made: Iterable[Environment | None]) -> Commit | None:
    """The commit of the folder we are in, with the changes that were measured.

    Changes there are of no account where all that ran was built of commits.
    """
    here = provenance.commit(Path.cwd())
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
