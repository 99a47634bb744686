"""`corebound import asv`: a history that asv measured, and how any import is told."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from corebound.cli.documents import indented
from corebound.cli.options import Json, ProjectName, Records
from corebound.errors import Fault
from corebound.exchange import asv_project, imported, kept
from corebound.exchange.kept import Kept

# Of why series have no figure; a history has a handful of them.
_MOST_REASONS = 3


def asv(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="The folder of asv.conf.json, that file, or a folder of results."
        ),
    ],
    *,
    project: ProjectName = None,
    repo: Annotated[
        Path | None,
        typer.Option("--repo", help="A clone of its repository, for the subjects of commits."),
    ] = None,
    records: Records = Path("reports/records"),
    as_json: Json = False,
) -> None:
    """Import the history of a project that asv measured."""
    # Points come by the million and go round in no circle: to look for one takes half the time.
    gc.disable()
    with Bar(Console(stderr=True, highlight=False)) as bar:
        found = asv_project.read(
            folder,
            name=project,
            repo=repo,
            progress=bar.show,
            known=partial(imported.known, records),
        )
    known = (
        () if found.unknown is None else (("commits the repository does not have", found.unknown),)
    )
    history = kept.keep(found.project, found.series, records)
    imported.remember(records, found)
    tell(
        found.project,
        (("result files", found.files), *known),
        history,
        found.faults,
        as_json=as_json,
    )


def tell(
    project: str,
    counts: Sequence[tuple[str, int]],
    history: Kept,
    faults: Sequence[Fault],
    *,
    as_json: bool,
) -> None:
    """Say what a project's history holds now, and what was passed over.

    Args:
        project: Its name.
        counts: What was read, in words, and how many.
        history: As it was kept.
        faults: What could not be read; for people, on stderr.
        as_json: For a script.
    """
    document: dict[str, Any] = {
        "project": project,
        "file": str(history.file),
        **{name.replace(" ", "_"): number for name, number in counts},
        "series": history.series,
        "points": history.points,
        "figures": history.figures,
        "added": history.added,
        "faults": faults,
    }
    if as_json:
        typer.echo(indented(document))
        return
    warnings = Console(stderr=True, highlight=False, soft_wrap=True)
    for fault in faults:
        warnings.print(Text(f"warning: {fault}"))
    console = Console(highlight=False, soft_wrap=True)
    said = ", ".join(f"{number:,} {name}" for name, number in counts)
    console.print(Text(f"{project}: {said}"))
    console.print(
        Text(
            f"{history.series:,} series of {history.points:,} points, "
            f"{history.figures:,} of them with a figure; {history.added:,} are new"
        )
    )
    if history.empty:
        why = "; ".join(history.reasons[:_MOST_REASONS])
        console.print(Text(f"{history.empty:,} series have no figure ({why})"))
    console.print(Text(f"kept in {history.file}"))


class Bar:
    """Shows how many files were read, on a terminal."""

    def __init__(self, console: Console) -> None:
        self._bar = Progress(
            TextColumn("reading results"),
            BarColumn(),
            MofNCompleteColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._bar.stop()

    def show(self, done: int, total: int) -> None:
        """Move the bar, where one can be seen."""
        if not self._bar.disable:
            self._bar.update(self._task, completed=done, total=total)
