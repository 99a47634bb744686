"""`corebound import asv` and `import pyperf`: import histories measured by other tools."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.progress import MofNCompleteColumn
from rich.text import Text

from corebound.analysis.wording import count
from corebound.cli.options import Json, ProjectName, Records
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json
from corebound.cli.output.progress import ReadingProgress
from corebound.errors import Fault
from corebound.exchange import history_import
from corebound.exchange import pyperf as exchange_pyperf
from corebound.exchange.asv import project as asv_project
from corebound.exchange.asv.environments import MergeOptions, rename_environments
from corebound.exchange.asv.project import Read
from corebound.exchange.history_import import ImportSummary
from corebound.exchange.reading import clean
from corebound.records.jsonl import RECORDS

# How many reasons for missing results to print; a history has a handful.
_MAX_REASONS = 4
# How many warnings of one kind to print; a folder of other tools' files has thousands.
_MAX_SIMILAR = 3
_SERIES = "series have", "series has"
# Projects have a few machines; a larger number suggests hosted runners.
_MANY_MACHINES = 5


class Count(NamedTuple):
    """A number with its plural and singular words, and its key in JSON."""

    number: int
    many: str
    one: str
    key: str = ""

    def __str__(self) -> str:
        return count(self.number, self.one, self.many)


def asv(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", help="Folder of asv.conf.json, that file, or a folder of results."
        ),
    ],
    *,
    project: ProjectName = None,
    repo: Annotated[
        Path | None,
        typer.Option("--repo", help="Clone of its repository, for the subjects of commits."),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            metavar="NAME",
            help="Treat all machines as one of this name, such as hosted CI runners.",
        ),
    ] = None,
    under_test: Annotated[
        list[str] | None,
        typer.Option(
            "--under-test",
            metavar="REQUIREMENT",
            help="Requirement that is measured: continue series across its versions; repeatable.",
        ),
    ] = None,
    records: Records = RECORDS,
    as_json: Json = False,
) -> None:
    """Import the history of a project that asv measured.

    Examples:
        corebound import asv ~/src/numpy/benchmarks
        corebound import asv results/ --project numpy --repo ~/src/numpy
    """
    with ReadingProgress(Console(stderr=True), MofNCompleteColumn()) as bar:
        found = asv_project.read(
            folder,
            name=project,
            repo=repo,
            progress=partial(bar.show, "reading results"),
            cached=partial(asv_project.cached_sources, records),
            merge_options=MergeOptions(
                machine=machine and clean(machine), under_test=tuple(under_test or ())
            ),
        )
    as_named = partial(rename_environments, names=found.names)
    history = history_import.keep(
        found.project, found.series, records, rename=as_named, removed=found.removed
    )
    asv_project.keep_sources(records, found)
    faults = [*found.faults]
    if machine is None:
        faults += _many_machines(folder, found, history)
    if not under_test:
        faults += _a_version_a_commit(folder, found, history)
    tell(found.project, _counts(found), history, faults, as_json=as_json)
    if found.is_guessed and not as_json:
        typer.echo(
            f"The project is named after its folder, {found.project}; use --project NAME for"
            " another name."
        )


def _counts(found: Read) -> list[Count]:
    """What was read, without counts of 0 that do not matter."""
    counts = [Count(found.files, "result files", "result file", "result_files")]
    if found.unknown is not None:
        lacked = "not in the repository"
        counts.append(
            Count(
                found.unknown,
                f"commits {lacked}",
                f"commit {lacked}",
                "commits_the_repository_does_not_have",
            )
        )
    if found.removed:
        words = "benchmarks that no longer exist", "benchmark that no longer exists"
        counts.append(Count(len(found.removed), *words, "benchmarks_that_exist_no_longer"))
    if found.duplicates:
        other = "for a commit that another file covers too"
        counts.append(
            Count(
                found.duplicates,
                f"files {other}",
                f"file {other}",
                "files_of_a_commit_that_another_has_too",
            )
        )
    return counts


def _are_single(history: ImportSummary) -> bool:
    """Whether most series have a single result."""
    return history.single * 2 > history.series


def _a_version_a_commit(folder: Path, found: Read, history: ImportSummary) -> Iterator[Fault]:
    """Warn if most series belong to a requirement's version that occurs at one commit only."""
    if found.commit_specific and _are_single(history):
        name = found.commit_specific[0]
        yield Fault(
            file=str(folder),
            line=None,
            what=f"each commit was measured with another {name}, so most series have one result.",
            fix=f"If {name} is what is measured, delete {history.file} and import again"
            f" with --under-test {shlex.quote(name)}, which continues series across versions.",
        )


def _many_machines(folder: Path, found: Read, history: ImportSummary) -> Iterator[Fault]:
    """Warn if most series belong to a machine that measured only once."""
    machines = len({one.host for one in found.series})
    if machines >= _MANY_MACHINES and _are_single(history):
        yield Fault(
            file=str(folder),
            line=None,
            what=f"the results are from {machines:,} machines, so most series have one result.",
            fix=f"If they are hosted runners of one kind, delete {history.file} and import again"
            " with --machine NAME, which treats them as one.",
        )


def tell(
    project: str,
    counts: Sequence[Count],
    history: ImportSummary,
    faults: Sequence[Fault],
    *,
    as_json: bool,
) -> None:
    """Print the state of a project's history and what was skipped.

    Args:
        project: The project's name.
        counts: What was read.
        history: The stored history.
        faults: What could not be read; the text output prints it on stderr.
        as_json: Whether to print JSON for scripts.
    """
    document: dict[str, Any] = {
        "project": project,
        "file": str(history.file),
        **{one.key: one.number for one in counts},
        "series": history.series,
        "points": history.points,
        "figures": history.values,
        "added": history.added,
        "missing": dict(history.reasons),
        "empty": history.empty,
        "single": history.single,
        "faults": faults,
    }
    if as_json:
        print_json(document)
        return
    warnings = Console(stderr=True, soft_wrap=True)
    for warning in _warnings(faults):
        warnings.print(Text(f"warning: {warning}"))
    console = Console(soft_wrap=True)
    # JSON includes every count, but the text omits counts of 0.
    first, *others = counts
    said = ", ".join(str(one) for one in (first, *others) if one is first or one.number)
    console.print(Text(f"{project}: {said}"))
    console.print(
        Text(
            f"{history.series:,} series of {Count(history.points, 'points', 'point')}, "
            f"{history.values:,} of them with a result; {history.added:,} new"
        )
    )
    for line in _left_out(history):
        console.print(Text(line))
    console.print(Text(f"Stored in {history.file}"))


def _left_out(history: ImportSummary) -> Iterator[str]:
    """What a history will not show, and why."""
    if history.reasons:
        why = ", ".join(
            f"{reason} ({number:,})" for reason, number in history.reasons[:_MAX_REASONS]
        )
        rest = sum(number for _, number in history.reasons[_MAX_REASONS:])
        others = f", other reasons ({rest:,})" if rest else ""
        lost = Count(history.points - history.values, "points have", "point has")
        yield f"{lost} no result: {why}{others}"
    if history.empty:
        yield f"{Count(history.empty, *_SERIES)} no results"
    if history.single:
        yield f"{Count(history.single, *_SERIES)} one result, and a history needs two"


def _warnings(faults: Sequence[Fault]) -> Iterator[str]:
    """Each fault; of many faults of one kind, the first few and the number of the others."""
    kinds: dict[str, list[Fault]] = {}
    for fault in faults:
        # The text after the colon differs from file to file.
        kinds.setdefault(f"{fault.what.partition(':')[0]} {fault.fix}", []).append(fault)
    for alike in kinds.values():
        yield from map(str, alike[:_MAX_SIMILAR])
        if len(alike) > _MAX_SIMILAR:
            more = Count(len(alike) - _MAX_SIMILAR, "more files", "more file")
            yield f"{more} like the last; --json lists them all"


def pyperf(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files written by pyperf.")
    ],
    *,
    project: ProjectName = None,
    records: Records = RECORDS,
    as_json: Json = False,
) -> None:
    """Import results of pyperf.

    Each file becomes a point in the history of its benchmarks.

    Examples:
        corebound import pyperf results/*.json
        corebound import pyperf bench.json --project json
    """
    name = project or "pyperf"
    with ReadingProgress(Console(stderr=True), MofNCompleteColumn()) as bar:
        found = exchange_pyperf.read_all(
            files, project=name, progress=partial(bar.show, "reading results")
        )
    tell(
        name,
        (Count(found.files, "files", "file", "files"),),
        history_import.keep(name, found.series, records),
        found.faults,
        as_json=as_json,
    )
