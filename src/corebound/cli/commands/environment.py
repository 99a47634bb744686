"""`corebound environment`: create, list and remove the environments that scenarios run in."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from corebound import units
from corebound.analysis.wording import count
from corebound.cli.options import Json, Quiet
from corebound.cli.output.console import Console, print_table
from corebound.cli.output.json import print_json
from corebound.errors import InputError
from corebound.launch import environments
from corebound.launch.existing_environments import is_existing
from corebound.scenario.cell import is_project
from corebound.workflow import scenarios


def make(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names of environments/NAME.txt.")
    ] = None,
    *,
    files: Annotated[
        list[Path] | None,
        typer.Option("--for", help="Scenario files, or folders of them: make what they need."),
    ] = None,
    wheelhouse: Annotated[
        Path | None,
        typer.Option("--wheelhouse", help="Folder of wheels to install from, without an index."),
    ] = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Create environments from their requirements files.

    An environment that exists already, from a file with the same content, is reused.

    Examples:
        corebound environment make pytorch
        corebound environment make --for scenarios/
    """
    console = Console(stderr=True, quiet=quiet)
    if not names and not files:
        raise InputError(
            what="no environment named.",
            where="corebound environment make",
            fix="Name some that `corebound environment list` shows, or pass --for scenarios/.",
        )
    folders = {name: Path.cwd() for name in names or ()} | _needed(files or ())
    made = {}
    for name, folder in folders.items():
        made[name] = environment = _make(name, folder, console, wheelhouse)
        packages = count(len(environment.lock.packages), "package")
        if not as_json:
            typer.echo(f"{name}: ready, {packages}, {environment.python}")
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "packages": environment.lock.packages,
                    "python": str(environment.python),
                }
                for name, environment in made.items()
            ]
        )


def _needed(files: Sequence[Path]) -> dict[str, Path]:
    """The environments of the scenarios that corebound makes, each with its scenario's folder."""
    if not files:
        return {}
    loaded = scenarios.load_scenarios(files, ())
    names = dict.fromkeys(cell.environment for cell in scenarios.all_cells(loaded))
    return {
        name: scenarios.folder_of(name, loaded)
        for name in names
        if name != environments.HOST and not is_project(name) and not is_existing(name)
    }


def _make(
    name: str, folder: Path, console: Console, wheelhouse: Path | None
) -> environments.Environment:
    with console.status(Text(f"{name}: …")) as status:

        def notify(message: str) -> None:
            status.update(Text(f"{name}: {message}"))
            if not console.is_terminal:
                console.print(f"{name}: {message}")

        return environments.make(name, folder, notify, wheelhouse=wheelhouse)


def list_(*, as_json: Json = False) -> None:
    """List environments with their state, size, Python and folder.

    States: ready; changed, if the requirements file or Python has changed since; not made; old,
    if a newer one is ready; no file, if this suite has no requirements file of that name.

    Examples:
        corebound environment list
        corebound environment list --json
    """
    environments.sweep()
    rows = environments.statuses(Path.cwd())
    if as_json:
        print_json(rows)
        return
    table = Table(box=None, padding=(0, 1))
    for heading in ("environment", "state", "size", "Python", "folder"):
        table.add_column(heading, overflow="fold", justify="right" if heading == "size" else "left")
    for row in rows:
        size = "–" if row.size_bytes is None else units.size(row.size_bytes)
        table.add_row(*map(Text, (row.name, row.state, size, row.python or "–", row.path or "–")))
    print_table(table, Console())


def remove(
    names: Annotated[list[str], typer.Argument(help="Names that `environment list` shows.")],
    *,
    as_json: Json = False,
) -> None:
    """Delete environments, including older ones of the same names.

    An environment that a run is using is kept; the command then exits with 3.

    Examples:
        corebound environment remove pytorch
    """
    removed = {name: environments.remove(name) for name in dict.fromkeys(names)}
    if as_json:
        print_json(
            [
                {"name": name, "folders": number, "size_bytes": size_bytes}
                for name, (number, size_bytes) in removed.items()
            ]
        )
        return
    for name, (number, size_bytes) in removed.items():
        typer.echo(f"{name}: removed {count(number, 'folder')}, {units.size(size_bytes)}")
