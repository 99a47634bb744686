"""`corebound import asv` and `import pyperf`: import histories measured by other tools."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from corebound.analysis.wording import count
from corebound.cli.options import Json, ProjectName, Records
from corebound.cli.output.json import indented
from corebound.cli.output.terminal import Console
from corebound.errors import Fault
from corebound.exchange import history_import
from corebound.exchange import pyperf as exchange_pyperf
from corebound.exchange.asv import project as asv_project
from corebound.exchange.asv.environments import Across, under_first_names
from corebound.exchange.asv.project import Read
from corebound.exchange.history_import import ImportSummary
from corebound.exchange.reading import clean
from corebound.records.jsonl import RECORDS

# How many reasons for missing results to print; a history has a handful.
_MOST_REASONS = 4
# How many warnings of one kind to print; a folder of other tools' files has thousands.
_MOST_ALIKE = 3
_SERIES = "series have", "series has"
# Projects have a few machines; a larger number suggests hosted runners.
_MANY_MACHINES = 5


class Count(NamedTuple):
    """A number with its plural and singular words."""

    number: int
    many: str
    one: str

    def __str__(self) -> str:
        return count(self.number, self.one, self.many)


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
    machine: Annotated[
        str | None,
        typer.Option(
            "--machine",
            metavar="NAME",
            help="Count all machines as one: hosted runners have another name each time.",
        ),
    ] = None,
    under_test: Annotated[
        list[str] | None,
        typer.Option(
            "--under-test",
            metavar="REQUIREMENT",
            help="What is measured, where asv installs it as a requirement: go on across its"
            " versions. Several times for several.",
        ),
    ] = None,
    records: Records = RECORDS,
    as_json: Json = False,
) -> None:
    """Import the history of a project that asv measured."""
    with Bar(Console(stderr=True)) as bar:
        found = asv_project.read(
            folder,
            name=project,
            repo=repo,
            progress=bar.show,
            known=partial(asv_project.cached_sources, records),
            across=Across(machine=machine and clean(machine), under_test=tuple(under_test or ())),
        )
    as_named = partial(under_first_names, names=found.names)
    history = history_import.keep(
        found.project, found.series, records, as_named=as_named, gone=found.gone
    )
    asv_project.keep_sources(records, found)
    faults = [*found.faults]
    if machine is None:
        faults += _many_machines(folder, found, history)
    if not under_test:
        faults += _a_version_a_commit(folder, found, history)
    tell(found.project, _counts(found), history, faults, as_json=as_json)
    if found.is_guessed and not as_json:
        typer.echo(f"named {found.project} after its folder; --project NAME gives it another name")


def _counts(found: Read) -> list[Count]:
    """What was read, without counts of 0 that do not matter."""
    counts = [Count(found.files, "result files", "result file")]
    if found.unknown is not None:
        lacked = "the repository does not have"
        counts.append(Count(found.unknown, f"commits {lacked}", f"commit {lacked}"))
    if found.gone:
        words = "benchmarks that exist no longer", "benchmark that exists no longer"
        counts.append(Count(len(found.gone), *words))
    if found.twice:
        other = "of a commit that another has too"
        counts.append(Count(found.twice, f"files {other}", f"file {other}"))
    return counts


def _are_single(history: ImportSummary) -> bool:
    """Whether most series have a single result."""
    return history.single * 2 > history.series


def _a_version_a_commit(folder: Path, found: Read, history: ImportSummary) -> Iterator[Fault]:
    """Warn if most series belong to a requirement's version that occurs at one commit only."""
    if found.one_a_commit and _are_single(history):
        name = found.one_a_commit[0]
        yield Fault(
            file=str(folder),
            line=None,
            what=f"each commit was measured with another {name}, so most was measured once.",
            fix=f"If {name} is what is measured, delete {history.file} and import again"
            f" with --under-test {shlex.quote(name)}, which goes on across its versions.",
        )


def _many_machines(folder: Path, found: Read, history: ImportSummary) -> Iterator[Fault]:
    """Warn if most series belong to a machine that measured only once."""
    machines = len({one.host for one in found.series})
    if machines >= _MANY_MACHINES and _are_single(history):
        yield Fault(
            file=str(folder),
            line=None,
            what=f"it is of {machines:,} machines, on which most was measured once.",
            fix=f"If they are hosted runners of one kind, delete {history.file} and import again"
            " with --machine NAME, which counts them as one.",
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
        **{one.many.replace(" ", "_"): one.number for one in counts},
        "series": history.series,
        "points": history.points,
        "figures": history.figures,
        "added": history.added,
        "missing": dict(history.reasons),
        "empty": history.empty,
        "single": history.single,
        "faults": faults,
    }
    if as_json:
        typer.echo(indented(document))
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
            f"{history.figures:,} of them with a figure; {Count(history.added, 'are', 'is')} new"
        )
    )
    for line in _left_out(history):
        console.print(Text(line))
    console.print(Text(f"kept in {history.file}"))


def _left_out(history: ImportSummary) -> Iterator[str]:
    """What a history will not show, and why."""
    if history.reasons:
        why = ", ".join(
            f"{reason} ({number:,})" for reason, number in history.reasons[:_MOST_REASONS]
        )
        rest = sum(number for _, number in history.reasons[_MOST_REASONS:])
        others = f", other reasons ({rest:,})" if rest else ""
        lost = Count(history.points - history.figures, "points have", "point has")
        yield f"{lost} no figure: {why}{others}"
    if history.empty:
        yield f"{Count(history.empty, *_SERIES)} no figure at all"
    if history.single:
        yield f"{Count(history.single, *_SERIES)} one figure, and a history begins with two"


def _warnings(faults: Sequence[Fault]) -> Iterator[str]:
    """Each fault; of many faults of one kind, the first few and the number of the others."""
    kinds: dict[str, list[Fault]] = {}
    for fault in faults:
        # The text after the colon differs from file to file.
        kinds.setdefault(f"{fault.what.partition(':')[0]} {fault.fix}", []).append(fault)
    for alike in kinds.values():
        yield from map(str, alike[:_MOST_ALIKE])
        if len(alike) > _MOST_ALIKE:
            more = Count(len(alike) - _MOST_ALIKE, "more files", "more file")
            yield f"{more} like the last; --json names them all"


class Bar:
    """A progress bar on the terminal for the number of files read."""

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
        """Update the bar, if it is visible."""
        if not self._bar.disable:
            self._bar.update(self._task, completed=done, total=total)


def pyperf(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Files that pyperf wrote.")
    ],
    *,
    project: ProjectName = None,
    records: Records = RECORDS,
    as_json: Json = False,
) -> None:
    """Import what pyperf measured: a point of each benchmark's history a file."""
    name = project or "pyperf"
    with Bar(Console(stderr=True)) as bar:
        found = exchange_pyperf.read_all(files, project=name, progress=bar.show)
    tell(
        name,
        (Count(found.files, "files", "file"),),
        history_import.keep(name, found.series, records),
        found.faults,
        as_json=as_json,
    )
