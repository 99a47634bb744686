"""The environments of the project under test that scenarios ask for, by asv's own means."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from corebound.asv_bridge.project import open_project
from corebound.errors import BuildError
from corebound.launch import environments
from corebound.launch.environments import Environment
from corebound.planning.slots import CannotRun
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import is_project
from corebound.text import one_line

Committed = Annotated[
    bool,
    typer.Option("--committed", help="Measure HEAD, without changes that are not committed."),
]
CONFIG = Path("asv.conf.json")
# What corebound writes where no option names another place: records, sites, journals.
OUTPUTS = (Path("reports"),)

Say = Callable[[str], None]


class Built(Struct, frozen=True, kw_only=True):
    """Environments of the project under test, by the name that cells know them by.

    Attributes:
        made: Each; None where it has not been made.
        unmade: Why not, where that is known.
    """

    made: dict[str, Environment | None]
    unmade: dict[str, CannotRun]


def found(cells: Iterable[Cell], config: Path) -> Built:
    """What has been built before; builds and keeps nothing.

    Raises:
        InputError: a revision or the project cannot be told.
    """
    wanted = _wanted(cells)
    if not wanted:
        return Built(made={}, unmade={})
    project = open_project(config, _silent)
    with tempfile.TemporaryDirectory(prefix="corebound-plan-") as folder:
        made = {
            name: project.find(
                project.commit(revision)
                if revision
                else project.working_tree(_silent, outputs=OUTPUTS, store=Path(folder)),
                name,
            )
            for name, revision in wanted.items()
        }
    return Built(made=made, unmade={})


def built(
    cells: Iterable[Cell],
    config: Path,
    say: Say,
    *,
    outputs: Sequence[Path] = (),
    committed: bool = False,
) -> Built:
    """Build what cells ask for; what cannot be built is told, not raised.

    Args:
        cells: Those that name no commit ask for the working tree.
        config: The asv.conf.json of the project.
        say: Told what takes time.
        outputs: Folders that measuring writes to, beside `OUTPUTS`.
        committed: Whether to build the commit that is checked out instead of the working tree.

    Raises:
        InputError: a revision, the project or asv's environment cannot be told.
    """
    wanted = _wanted(cells)
    made: dict[str, Environment | None] = {}
    unmade: dict[str, CannotRun] = {}
    if not wanted:
        return Built(made=made, unmade=unmade)
    project = open_project(config, say)
    for name, revision in wanted.items():
        if revision is None and not committed:
            commit = project.working_tree(say, outputs=(*OUTPUTS, *outputs))
        else:
            commit = project.commit(revision or project.checked_out)
        try:
            made[name] = project.find(commit, name)
            if made[name] is None:
                say(f"Building {project.name} {commit.name}: {one_line(commit.subject)}")
                made[name] = project.build(commit, name)
        except BuildError as error:
            say(f"{error.where}: {error.what.splitlines()[0]} …")
            made[name] = None
            unmade[name] = CannotRun(what=error.what, mend=error.mend, cause="build")
    return Built(made=made, unmade=unmade)


def given(cells: Iterable[Cell], python: Path) -> Built:
    """An environment that holds the project already, as asv makes one for its benchmarks."""
    made: dict[str, Environment | None] = {
        name: environments.existing(python, name) for name in _wanted(cells)
    }
    return Built(made=made, unmade={})


def _wanted(cells: Iterable[Cell]) -> dict[str, str | None]:
    """For the name of each environment of the project, the revision it stands for.

    None: it names none.
    """
    return {cell.environment: cell.commit for cell in cells if is_project(cell.environment)}


def _silent(_what: str) -> None:
    pass
