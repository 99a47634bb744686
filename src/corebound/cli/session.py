"""A run to be measured: a new one, or one that was cut short and goes on."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from corebound import __version__
from corebound.cli import projects, suite
from corebound.cli.projects import Say
from corebound.cli.suite import Loaded
from corebound.errors import InputError
from corebound.host import provenance
from corebound.model.measure import ProfileName
from corebound.model.plan import Unfit
from corebound.model.record import Launch
from corebound.model.run import SCHEMA, Host, Run
from corebound.runner import Task
from corebound.store import jsonl
from corebound.store.jsonl import Stored
from corebound.topology import probe


class Wanted(Struct, frozen=True, kw_only=True):
    """What the user asked to be measured, as it was asked.

    `config` is the asv.conf.json of the project under test; `python` an interpreter
    that has the project already, which is then not built.
    """

    files: tuple[Path, ...]
    profile: ProfileName | None
    only: tuple[str, ...]
    seed: int | None
    config: Path = projects.CONFIG
    python: Path | None = None


class Session(Struct, frozen=True, kw_only=True):
    """A run, what it is made of, and what of it has been done.

    `note` says why a new run begins although one was to be continued.
    """

    run: Run
    file: Path
    tasks: tuple[Task, ...]
    done: tuple[Launch, ...]
    note: str | None


def begin(wanted: Wanted, records: Path, say: Say) -> Session:
    """Prepare a new run; `say` is told what takes time.

    Raises:
        CoreboundError: scenarios, environments or the host do not allow it.
    """
    run, tasks = _fresh(wanted, say)
    return Session(run=run, file=jsonl.file_of(run, records), tasks=tasks, done=(), note=None)


def resume(wanted: Wanted, records: Path, say: Say) -> Session:
    """Prepare to go on with this host's latest run.

    Where files were named and the latest run is of other work, a new run begins.

    Raises:
        InputError: no files were named, and there is no run that can go on.
        CoreboundError: as `begin`.
    """
    latest = _latest(records / _host().id)
    if latest is None:
        if wanted.files:
            return begin(wanted, records, say)
        raise InputError(
            what="there is no run of this host to go on with.",
            where=str(records),
            mend="Start one: `corebound run scenarios/`.",
        )
    again = wanted if wanted.files else _as_before(latest.run, wanted)
    run, tasks = _fresh(again, say, seed=latest.run.seed)
    differs = difference(latest.run, run)
    if differs is None:
        return Session(
            run=latest.run, file=latest.file, tasks=tasks, done=latest.launches, note=None
        )
    if not wanted.files:
        raise InputError(
            what=f"the latest run cannot go on: {differs}.",
            where=str(latest.file),
            mend="Start a new run by naming the scenario files.",
        )
    run, tasks = _fresh(wanted, say)
    note = f"A new run begins, for {differs}."
    return Session(run=run, file=jsonl.file_of(run, records), tasks=tasks, done=(), note=note)


def _host() -> Host:
    return provenance.host(probe.live())


def _latest(folder: Path) -> Stored | None:
    files = sorted(folder.glob("*.jsonl"))
    return jsonl.read(files[-1]) if files else None


def _as_before(run: Run, wanted: Wanted) -> Wanted:
    return replace(
        wanted,
        files=tuple(Path(source.path) for source in run.scenarios),
        profile=run.profile,
        only=run.only,
    )


def _fresh(wanted: Wanted, say: Say, *, seed: int | None = None) -> tuple[Run, tuple[Task, ...]]:
    loaded = suite.load_all(wanted.files, wanted.only, wanted.profile)
    return planned(loaded, wanted, say, seed=seed)


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
    cells = suite.cells_of(loaded)
    if wanted.python is None:
        project = projects.built(cells, wanted.config, say)
    else:
        project = projects.given(cells, wanted.python)
    made = suite.environments_of(loaded, Path.cwd(), project)
    means = suite.live_means(made, {**project.unmade, **(unmade or {})})
    chosen = next((one for one in (wanted.seed, seed) if one is not None), None)
    run = Run(
        schema=SCHEMA,
        id=secrets.token_hex(4),
        started_at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        corebound=__version__,
        argv=("corebound", *sys.argv[1:]),
        seed=secrets.randbelow(2**31) if chosen is None else chosen,
        profile=wanted.profile,
        only=wanted.only,
        host=provenance.host(means.topology),
        commit=provenance.commit(Path.cwd()),
        scenarios=tuple(one.source for one in loaded),
        environments=tuple(one.lock for one in made.values() if one is not None),
    )
    tasks = tuple(
        suite.task_of(one, means, profile=wanted.profile, seed=run.seed) for one in loaded
    )
    return run, tasks


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


def _commit(run: Run) -> tuple[str, bool] | None:
    return None if run.commit is None else (run.commit.sha, run.commit.dirty)
