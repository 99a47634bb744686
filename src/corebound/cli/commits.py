"""What is measured of several commits side by side: scenarios by commit, and runs of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from corebound.cli import session, suite
from corebound.cli.projects import Say
from corebound.cli.session import Session, Wanted
from corebound.cli.suite import Loaded
from corebound.errors import InputError
from corebound.model.plan import Cell, Unfit
from corebound.model.record import Commit
from corebound.planning.commits import by_commit, is_comparable
from corebound.planning.expand import expand
from corebound.runner import Task
from corebound.store import jsonl

# As git abbreviates, with room for large repositories.
SHORT = 10


def short(commit: Commit) -> str:
    """A commit as cells name it."""
    return commit.sha[:SHORT]


def plain_key(cell: Cell) -> str:
    """A cell's key without its commit."""
    axes = tuple(pair for pair in cell.axes if pair[0] != "commit")
    return replace(cell, axes=axes).key


def comparable(wanted: Wanted, say: Say) -> tuple[Loaded, ...]:
    """The scenarios that run in the project's environment; others are told of and left out.

    Raises:
        InputError: none does.
        ScenarioFaults: what is wrong with the files.
    """
    loaded = suite.load_all(wanted.files, wanted.only, wanted.profile)
    found = tuple(one for one in loaded if is_comparable(one.scenario))
    if not found:
        raise InputError(
            what="no scenario runs in the environment of the project under test.",
            where=", ".join(map(str, wanted.files)),
            mend="Write `environment: project` in those that are to compare its commits.",
        )
    if left := len(loaded) - len(found):
        say(f"{left} of {len(loaded)} scenarios do not run in `environment: project`: left out.")
    return found


def over(
    loaded: Sequence[Loaded],
    commits: Sequence[Commit],
    wanted: Wanted,
    *,
    launches: tuple[int, int] | None = None,
    margin: float | None = None,
) -> tuple[Loaded, ...]:
    """The same scenarios and cells, once for each commit; the first one is the baseline.

    Raises:
        ScenarioFaults: a scenario has commits of its own.
    """
    found = []
    for one in loaded:
        chosen = {cell.key for cell in one.cells}
        names = [short(commit) for commit in commits]
        path = suite.shown(one.path)
        scenario = by_commit(one.scenario, names, path, launches=launches, margin=margin)
        cells = expand(scenario, path, wanted.profile)
        kept = tuple(cell for cell in cells if plain_key(cell) in chosen)
        found.append(Loaded(path=one.path, scenario=scenario, cells=kept))
    return tuple(found)


def opened(
    loaded: tuple[Loaded, ...],
    wanted: Wanted,
    records: Path,
    say: Say,
    *,
    go_on: bool,
    unmade: Mapping[str, Unfit] | None = None,
) -> Session:
    """A run of scenarios by side: a new one, or where asked the latest of the very same.

    Raises:
        CoreboundError: environments or the host do not allow it.
    """
    run, tasks = session.planned(loaded, wanted, say, seed=_seed(loaded), unmade=unmade)
    if any(cell.commit for one in loaded for cell in one.cells):
        # The commits stand in its environments; none of them is the one that is checked out.
        run = replace(run, commit=None)
    for file in sorted((records / run.host.id).glob("*.jsonl"), reverse=True) if go_on else ():
        try:
            before = jsonl.read(file)
        except InputError:
            continue  # damaged, or of another corebound; `report` says so
        if session.difference(before.run, run) is None:
            return Session(run=before.run, file=file, tasks=tasks, done=before.launches, note=None)
    return Session(run=run, file=jsonl.file_of(run, records), tasks=tasks, done=(), note=None)


def _seed(loaded: Sequence[Loaded]) -> int:
    """The same whenever the same is asked, so that a run that was killed can be told."""
    what = "".join(one.source.sha256 for one in loaded)
    return int(hashlib.sha256(what.encode()).hexdigest()[:7], 16)


def with_launches(tasks: Sequence[Task], launches: int) -> tuple[Task, ...]:
    """The same tasks, with exactly so many launches of every cell."""
    return tuple(
        replace(
            task,
            planned=tuple(
                replace(
                    one,
                    measure=one.measure.model_copy(
                        update={
                            "launches": one.measure.launches.model_copy(
                                update={"min": launches, "max": launches}
                            )
                        }
                    ),
                )
                for one in task.planned
            ),
        )
        for task in tasks
    )
