"""`corebound import pytest-benchmark` and other tools' result files."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, get_args

import typer
from rich.progress import MofNCompleteColumn

from corebound.cli.commands.import_history import NamedCount, print_import
from corebound.cli.options import Json, ProjectName, Quiet, Records
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json
from corebound.cli.output.reading_progress import ReadingProgress
from corebound.exchange.importers import IMPORTERS, Stated, Tool
from corebound.records.jsonl import RECORDS
from corebound.workflow.import_results import import_results

_Files = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE...", help="Files with results, or folders; of Criterion, target/criterion."
    ),
]
_Host = Annotated[
    str | None, typer.Option("--host", metavar="NAME", help="Name of the machine that measured.")
]
_Commit = Annotated[
    str | None,
    typer.Option("--commit", metavar="REVISION", help="Commit that was measured, such as HEAD."),
]
_Date = Annotated[
    str | None,
    typer.Option("--date", metavar="TIME", help="When it was measured, such as 2026-01-02T03:04."),
]


def command_of(tool: Tool) -> Callable[..., None]:
    """The command that imports the results of a tool, with the options that its files need."""

    def command(
        files: _Files,
        *,
        project: ProjectName = None,
        host: _Host = None,
        commit: _Commit = None,
        date: _Date = None,
        records: Records = RECORDS,
        quiet: Quiet = False,
        as_json: Json = False,
    ) -> None:
        with ReadingProgress(Console(stderr=True, quiet=quiet), MofNCompleteColumn()) as bar:
            imported = import_results(
                tool,
                *files,
                project=project,
                host=host,
                commit=commit,
                date=date,
                records=records,
                progress=partial(bar.show, "reading results"),
            )
        if as_json:
            print_json(imported.document)
            return
        counts = (NamedCount(imported.source.files, "files", "file"),)
        print_import(imported.project, counts, imported.history, imported.faults)

    signature = inspect.signature(command, eval_str=True)
    left_out = {*get_args(Stated)} - {*IMPORTERS[tool].states}
    parameters = [one for name, one in signature.parameters.items() if name not in left_out]
    command.__dict__["__signature__"] = signature.replace(parameters=parameters)
    command.__doc__ = IMPORTERS[tool].help
    return command
