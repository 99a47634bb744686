"""`corebound import pytest-benchmark` and other tools' result files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import MofNCompleteColumn

from corebound.cli.commands.import_history import NamedCount, print_import
from corebound.cli.options import Json, ProjectName, Quiet, Records
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json
from corebound.cli.output.reading_progress import ReadingProgress
from corebound.records.jsonl import RECORDS
from corebound.workflow.import_results import Tool, import_results

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


def _imports(tool: Tool) -> Callable[[Callable[[], None]], Callable[..., None]]:
    """Make a command of a docstring, for a tool whose files may lack host, commit and time."""

    def decorate(documented: Callable[[], None]) -> Callable[..., None]:
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
            _import(
                tool,
                files,
                records,
                project,
                host=host,
                commit=commit,
                date=date,
                quiet=quiet,
                as_json=as_json,
            )

        command.__doc__ = documented.__doc__
        return command

    return decorate


@_imports("pytest-benchmark")
def pytest_benchmark() -> None:
    """Import results of pytest-benchmark.

    All rounds of a benchmark are of one process, so each file is one launch. Files of one commit
    and day that are imported together are launches of one point.

    Examples:
        corebound import pytest-benchmark .benchmarks --project parser
    """


@_imports("hyperfine")
def hyperfine() -> None:
    """Import results of hyperfine.

    Each run of a command is a launch. The files name neither host nor commit.

    Examples:
        corebound import hyperfine times.json --project tool --commit HEAD --host ci
    """


@_imports("google-benchmark")
def google_benchmark() -> None:
    """Import JSON results of Google Benchmark.

    All repetitions are of one process, so each file is one launch. Real time is imported.

    Examples:
        corebound import google-benchmark out.json --project codec --commit HEAD
    """


@_imports("criterion")
def criterion() -> None:
    """Import the latest results of Criterion.

    All samples of a benchmark are of one process, so each folder is one launch. The results name
    neither host nor commit.

    Examples:
        corebound import criterion target/criterion --project codec --commit HEAD
    """


@_imports("bencher")
def bencher() -> None:
    """Import Bencher Metric Format.

    Each value is one launch. The files name neither host nor commit.

    Examples:
        corebound import bencher results.json --project codec --commit HEAD
    """


def github_action_benchmark(
    files: _Files,
    *,
    project: ProjectName = None,
    host: _Host = None,
    records: Records = RECORDS,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Import the history that github-action-benchmark keeps.

    Each value is one launch.

    Examples:
        corebound import github-action-benchmark dev/bench/data.js --project codec
    """
    _import(
        "github-action-benchmark", files, records, project, host=host, quiet=quiet, as_json=as_json
    )


@_imports("pyperf")
def pyperf() -> None:
    """Import results of pyperf.

    Each file becomes a point in the history of its benchmarks.

    Examples:
        corebound import pyperf results/*.json
        corebound import pyperf bench.json --project json
    """


def _import(
    tool: Tool,
    files: list[Path],
    records: Path,
    project: str | None,
    *,
    host: str | None = None,
    commit: str | None = None,
    date: str | None = None,
    quiet: bool,
    as_json: bool,
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
