"""`corebound import pytest-benchmark` and other tools' result files."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, get_args

from rich.progress import MofNCompleteColumn

from corebound.cli.commands.import_history import NamedCount, print_import
from corebound.cli.options import Output
from corebound.cli.output.console import Console
from corebound.cli.output.reading_progress import ReadingProgress
from corebound.exchange.importers import IMPORTERS, Stated, Tool
from corebound.exchange.result_files import Columns
from corebound.records.jsonl import RECORDS
from corebound.scenario.metrics import Better
from corebound.workflow.import_results import import_results
from corebound.workflow.options import Argument, Option, ProjectName, Records

_Files = Annotated[
    tuple[Path, ...],
    Argument("Files with results, or folders; of Criterion, target/criterion.", metavar="FILE..."),
]
_Host = Annotated[str | None, Option("Name of the machine that measured.", metavar="NAME")]
_Commit = Annotated[
    str | None, Option("Commit that was measured, such as HEAD.", metavar="REVISION")
]
_Date = Annotated[
    str | None, Option("When it was measured, such as 2026-01-02T03:04.", metavar="TIME")
]


class ColumnOptions(Columns, frozen=True, kw_only=True):
    """What the columns of a table are."""

    value: Annotated[
        tuple[str, ...], Option("Column with values to compare; repeatable.", metavar="COLUMN")
    ] = ()
    time: Annotated[
        str | None, Option("Column with the time of measurement.", metavar="COLUMN")
    ] = None
    benchmark: Annotated[
        str | None, Option("Column with the benchmark's name.", metavar="COLUMN")
    ] = None
    parameter: Annotated[
        tuple[str, ...], Option("Column with a parameter; repeatable.", metavar="COLUMN")
    ] = ()
    revision: Annotated[str | None, Option("Column with the commit's hash.", metavar="COLUMN")] = (
        None
    )
    unit: Annotated[str, Option("Unit of the values, such as ms or ops/s.")] = ""
    better: Annotated[
        Better | None, Option("Which values are better; by default, as the unit says.")
    ] = None
    rows: Annotated[
        str | None,
        Option("Where in JSON the list of rows is, such as results[0].runs.", metavar="PATH"),
    ] = None


_NO_COLUMNS = ColumnOptions()


def command_of(tool: Tool) -> Callable[..., Output]:
    """The command that imports the results of a tool, with the options that its files need."""

    def command(
        files: _Files,
        *,
        project: ProjectName = None,
        host: _Host = None,
        commit: _Commit = None,
        date: _Date = None,
        columns: ColumnOptions = _NO_COLUMNS,
        records: Records = RECORDS,
        console: Console,
    ) -> Output:
        with ReadingProgress(console, MofNCompleteColumn()) as bar:
            imported = import_results(
                tool,
                *files,
                project=project,
                host=host,
                commit=commit,
                date=date,
                columns=columns,
                records=records,
                progress=partial(bar.show, "reading results"),
            )
        counts = (NamedCount(imported.source.files, "files", "file"),)
        read = imported.project, counts, imported.history, imported.faults
        return Output(imported, partial(print_import, *read))

    signature = inspect.signature(command)
    left_out = {*get_args(Stated)} - {*IMPORTERS[tool].states}
    parameters = [
        parameter for name, parameter in signature.parameters.items() if name not in left_out
    ]
    command.__dict__["__signature__"] = signature.replace(parameters=parameters)
    command.__doc__ = IMPORTERS[tool].help
    return command
