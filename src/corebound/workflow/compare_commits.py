"""Measuring several commits side by side: scenarios with a commit axis, and their runs."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from corebound.errors import InputError
from corebound.planning.models import CannotRun
from corebound.records import jsonl
from corebound.records.run_record import Commit
from corebound.runner import Task
from corebound.scenario.cell import Cell
from corebound.scenario.comparison import runs_in_project, with_compared_commits
from corebound.scenario.matrix import Key, expand
from corebound.scenario.models import ProfileName, Scenario
from corebound.workflow import prepare, scenarios
from corebound.workflow.prepare import PreparedRun, RunRequest
from corebound.workflow.projects import Say
from corebound.workflow.scenarios import Loaded

# The length of a hash abbreviated by git, with room for large repositories.
SHORT = 10


def short(commit: Commit) -> str:
    """The short name of a commit, or of the working tree, as cells show it."""
    return commit.sha[:SHORT] if commit.tree is None else commit.name


def plain_key(cell: Cell, axis: Key) -> str:
    """A cell's key without the axis on which the sides differ."""
    axes = tuple(pair for pair in cell.axes if pair[0] != axis[-1])
    return replace(cell, axes=axes).key


def comparable(wanted: RunRequest, say: Say) -> tuple[Loaded, ...]:
    """Load the scenarios that run in the project's environment; report and omit all others.

    Raises:
        InputError: No scenario runs in the project's environment.
        ScenarioFaults: The files have errors.
    """
    return of_project(
        scenarios.load_all(wanted.files, wanted.only, wanted.profile), wanted.files, say
    )


def of_project(loaded: Sequence[Loaded], files: Sequence[Path], say: Say) -> tuple[Loaded, ...]:
    """Select the scenarios that run in the project's environment; report all others.

    Raises:
        InputError: No scenario runs in the project's environment.
    """
    found = tuple(one for one in loaded if runs_in_project(one.scenario))
    if not found:
        raise InputError(
            what="no scenario runs in the environment of the project under test.",
            where=", ".join(map(str, files)),
            fix="Write `environment: project` in those that are to compare its commits.",
        )
    if left := len(loaded) - len(found):
        say(f"{left} of {len(loaded)} scenarios do not run in `environment: project`: left out.")
    return found


def over(
    loaded: Sequence[Loaded],
    commits: Sequence[Commit],
    wanted: RunRequest,
    *,
    launches: tuple[int, int] | None = None,
    margin: float | None = None,
) -> tuple[Loaded, ...]:
    """Repeat the scenarios and cells for each commit; the first commit is the baseline.

    Raises:
        ScenarioFaults: A scenario already has commits.
    """
    names = [short(commit) for commit in commits]
    made = partial(with_compared_commits, commits=names, launches=launches, margin=margin)
    return by_axis(loaded, ("commit",), wanted.profile, made)


def by_axis(
    loaded: Sequence[Loaded],
    axis: Key,
    profile: ProfileName | None,
    made: Callable[..., Scenario],
) -> tuple[Loaded, ...]:
    """Repeat the scenarios and cells for each side.

    Args:
        loaded: The scenarios with their selected cells.
        axis: The axis on which the sides differ.
        profile: As in `expand`.
        made: Adds the sides to a scenario; called with the scenario and `path`.
    """
    found = []
    for one in loaded:
        chosen = {plain_key(cell, axis) for cell in one.cells}
        path = scenarios.shown(one.path)
        scenario = made(one.scenario, path=path)
        cells = expand(scenario, path, profile)
        kept = tuple(cell for cell in cells if plain_key(cell, axis) in chosen)
        found.append(Loaded(path=one.path, scenario=scenario, cells=kept))
    return tuple(found)


def opened(
    loaded: tuple[Loaded, ...],
    wanted: RunRequest,
    records: Path,
    say: Say,
    *,
    go_on: bool,
    unmade: Mapping[str, CannotRun] | None = None,
) -> PreparedRun:
    """Prepare a run of scenarios that already have their sides.

    Args:
        loaded: The scenarios, with their sides.
        wanted: The user's request.
        records: The folder of records.
        say: Called with progress messages.
        go_on: Whether to continue an identical run, preferably one that was interrupted.
            Without a match, a new run begins.
        unmade: Why environments are missing, where that is already known.

    Raises:
        CoreboundError: The environments or the host do not allow the run.
    """
    run, tasks = prepare.planned(loaded, wanted, say, seed=_seed(loaded), unmade=unmade)
    if any(cell.commit for one in loaded for cell in one.cells):
        # Each commit is recorded in its own environment; none of them is the checked-out one.
        run = replace(run, commit=None)
    if go_on:
        known = prepare.written(records / run.host.id, say)
        found = prepare.interrupted(known, lambda _before: (run, tasks), operators=False)
        if found is not None:
            return found
    return PreparedRun(run=run, file=jsonl.file_of(run, records), tasks=tasks, done=(), note=None)


def _seed(loaded: Sequence[Loaded]) -> int:
    """Derive the seed from the scenarios, so that an interrupted run can be recognised."""
    what = "".join(one.source.sha256 for one in loaded)
    return int(hashlib.sha256(what.encode()).hexdigest()[:7], 16)


def with_launches(tasks: Sequence[Task], launches: int) -> tuple[Task, ...]:
    """Copy the tasks with exactly this number of launches for every cell."""
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
