"""`corebound import asv`: import the history of a project; what imports print."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

import typer
from rich.progress import MofNCompleteColumn

from corebound.analysis.wording import count
from corebound.cli.options import Output
from corebound.cli.output.console import Console
from corebound.cli.output.reading_progress import ReadingProgress
from corebound.errors import Fault
from corebound.exchange.asv.project import AsvResults
from corebound.exchange.history_import import ImportSummary
from corebound.records.jsonl import RECORDS
from corebound.workflow.import_history import ImportedProject, import_asv
from corebound.workflow.options import Argument, Option, ProjectName, Records

# How many reasons for missing results to print; a history has a handful.
_MAX_REASONS = 4
# How many warnings of one kind to print; a folder of other tools' files has thousands.
_MAX_SIMILAR = 3
_SERIES = "series have", "series has"


class NamedCount(NamedTuple):
    """A number with its plural and singular words."""

    number: int
    many: str
    one: str

    def __str__(self) -> str:
        return count(self.number, self.one, self.many)


def asv(
    folder: Annotated[
        Path, Argument("Folder of asv.conf.json, that file, or a folder of results.", metavar="DIR")
    ],
    *,
    project: ProjectName = None,
    repo: Annotated[
        Path | None, Option("Clone of its repository, for the subjects of commits.")
    ] = None,
    machine: Annotated[
        str | None,
        Option(
            "Treat all machines as one of this name, such as hosted CI runners.", metavar="NAME"
        ),
    ] = None,
    under_test: Annotated[
        tuple[str, ...],
        Option(
            "Requirement that is measured: continue series across its versions; repeatable.",
            metavar="REQUIREMENT",
        ),
    ] = (),
    records: Records = RECORDS,
    console: Console,
) -> Output:
    """Import the history of a project that asv measured.

    Examples:
        corebound import asv ~/src/numpy/benchmarks
        corebound import asv results/ --project numpy --repo ~/src/numpy
    """
    with ReadingProgress(console, MofNCompleteColumn()) as bar:
        imported = import_asv(
            folder,
            project=project,
            repo=repo,
            machine=machine,
            under_test=under_test,
            records=records,
            progress=partial(bar.show, "reading results"),
        )
    return Output(imported, partial(_show, imported))


def _show(imported: ImportedProject) -> None:
    source = imported.source
    print_import(source.project, _counts(source), imported.history, imported.faults)
    if source.is_guessed:
        typer.echo(
            f"The project is named after its folder, {source.project}; use --project NAME for"
            " another name."
        )


def _counts(source: AsvResults) -> list[NamedCount]:
    """What was read, without counts of 0 that do not matter."""
    counts = [NamedCount(source.files, "result files", "result file")]
    if source.unknown is not None:
        suffix = "not in the repository"
        counts.append(NamedCount(source.unknown, f"commits {suffix}", f"commit {suffix}"))
    if source.removed:
        words = "benchmarks that no longer exist", "benchmark that no longer exists"
        counts.append(NamedCount(len(source.removed), *words))
    if source.duplicates:
        suffix = "for a commit that another file covers too"
        counts.append(NamedCount(source.duplicates, f"files {suffix}", f"file {suffix}"))
    return counts


def print_import(
    project: str,
    counts: Sequence[NamedCount],
    history: ImportSummary,
    faults: Sequence[Fault],
) -> None:
    """Print the state of a project's history and what was skipped.

    Args:
        faults: What could not be read; printed on stderr.
    """
    for warning in _warnings(faults):
        Console(stderr=True).print_line(f"warning: {warning}")
    console = Console()
    # Counts of 0 are only in JSON.
    summary = ", ".join(
        str(counted) for index, counted in enumerate(counts) if index == 0 or counted.number
    )
    console.print_line(f"{project}: {summary}")
    console.print_line(
        f"{history.series:,} series of {NamedCount(history.points, 'points', 'point')}, "
        f"{history.values:,} of them with a result; {history.added:,} new"
    )
    for line in (*_missing_lines(history), f"Stored in {history.file}"):
        console.print_line(line)


def _missing_lines(history: ImportSummary) -> Iterator[str]:
    """What a history will not show, and why."""
    if history.reasons:
        reasons = ", ".join(
            f"{reason} ({number:,})" for reason, number in history.reasons[:_MAX_REASONS]
        )
        other_count = sum(number for _, number in history.reasons[_MAX_REASONS:])
        others = f", other reasons ({other_count:,})" if other_count else ""
        missing = NamedCount(history.points - history.values, "points have", "point has")
        yield f"{missing} no result: {reasons}{others}"
    if history.empty:
        yield f"{NamedCount(history.empty, *_SERIES)} no results"
    if history.single:
        yield f"{NamedCount(history.single, *_SERIES)} one result, and a history needs two"


def _warnings(faults: Sequence[Fault]) -> Iterator[str]:
    """Each fault; of many faults of one kind, the first few and the number of the others."""
    kinds: dict[str, list[Fault]] = {}
    for fault in faults:
        # The text after the colon differs from file to file.
        kinds.setdefault(f"{fault.what.partition(':')[0]} {fault.fix}", []).append(fault)
    for similar in kinds.values():
        yield from map(str, similar[:_MAX_SIMILAR])
        if len(similar) > _MAX_SIMILAR:
            more = len(similar) - _MAX_SIMILAR
            yield f"{more:,} more like the last; --json lists them all"
