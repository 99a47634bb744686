"""`corebound environment`: create, list and remove the environments that scenarios run in."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from corebound import units
from corebound.analysis.wording import count
from corebound.cli.options import Json, Output
from corebound.cli.output.console import Console, print_table
from corebound.launch.environments import EnvironmentStatus
from corebound.workflow.environments import (
    MadeEnvironment,
    environments,
    make_environments,
    remove_environments,
)
from corebound.workflow.options import Argument, Option


def make(
    names: Annotated[tuple[str, ...], Argument("Names of environments/NAME.txt.")] = (),
    *,
    files: Annotated[
        tuple[Path, ...],
        Option("Scenario files, or folders of them: make what they need.", name="--for"),
    ] = (),
    wheelhouse: Annotated[
        Path | None, Option("Folder of wheels to install from, without an index.")
    ] = None,
    console: Console,
    as_json: Json = False,
) -> Output:
    """Create environments from their requirements files.

    An environment that exists already, from a file with the same content, is reused.

    Examples:
        corebound environment make pytorch
        corebound environment make --for scenarios/
    """
    with console.status("Creating environments") as status:

        def notify(line: str) -> None:
            status.update(Text(line))
            if not console.is_terminal:
                console.print(line)

        def ready(environment: MadeEnvironment) -> None:
            # A line on stdout must not meet the one that is drawn.
            status.stop()
            packages = count(len(environment.packages), "package")
            typer.echo(f"{environment.name}: ready, {packages}, {environment.python}")
            status.start()

        made = make_environments(
            *names,
            files=files,
            wheelhouse=wheelhouse,
            ready=None if as_json else ready,
            notify=notify,
        )
    # Each was printed as soon as it was ready.
    return Output(made, lambda: None)


def list_() -> Output:
    """List environments with their state, size, Python and folder.

    States: ready; changed, if the requirements file or Python has changed since; not made; old,
    if a newer one is ready; no file, if this suite has no requirements file of that name.

    Examples:
        corebound environment list
        corebound environment list --json
    """
    rows = environments()
    return Output(rows, partial(_show, rows))


def _show(rows: Sequence[EnvironmentStatus]) -> None:
    table = Table(box=None, padding=(0, 1))
    for heading in ("environment", "state", "size", "Python", "folder"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "size" else "left")
    for row in rows:
        size = "–" if row.size_bytes is None else units.size(row.size_bytes)
        table.add_row(*map(Text, (row.name, row.state, size, row.python or "–", row.path or "–")))
    print_table(table, Console())


def remove(
    names: Annotated[tuple[str, ...], Argument("Names that `environment list` shows.")],
) -> Output:
    """Delete environments, including older ones of the same names.

    An environment that a run is using is kept; the command then exits with 3.

    Examples:
        corebound environment remove pytorch
    """
    removed = remove_environments(*names)

    def show() -> None:
        for each in removed:
            folders = count(each.folders, "folder")
            typer.echo(f"{each.name}: removed {folders}, {units.size(each.size_bytes)}")

    return Output(removed, show)
