"""`corebound compare`: two runs, or two commits' records, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console
from rich.text import Text

from corebound.cli.compare_words import as_json, as_markdown, show
from corebound.cli.options import Records
from corebound.errors import InputError
from corebound.model.run import Run
from corebound.report.view.comparing import compare_runs
from corebound.report.view.noise import floors
from corebound.report.view.records import Record
from corebound.store import calibrations, jsonl
from corebound.store.jsonl import Stored

Format = Literal["text", "md"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A run and its file, whose launches are unread: two of all runs are compared."""

    file: Path
    run: Run


def compare(
    before: Annotated[
        str, typer.Argument(metavar="A", help="A run (id, its beginning, file) or a commit.")
    ],
    after: Annotated[str, typer.Argument(metavar="B", help="The same, to hold against the first.")],
    *,
    records: Records = Path("reports/records"),
    json: Annotated[bool, typer.Option("--json", help="Everything, for scripts.")] = False,
    format_: Annotated[Format, typer.Option("--format", help="text or md.")] = "text",
    all_: Annotated[bool, typer.Option("--all", help="Also what does not clearly differ.")] = False,
) -> None:
    """Compare two runs, or the latest runs of two commits."""
    console = Console(highlight=False, soft_wrap=True)
    kept = [Kept(file=file, run=jsonl.read_run(file)) for file in jsonl.files(records)]
    one, two = (jsonl.read(meant.file) for meant in _pair(before, after, kept, records))
    for fault in (*one.faults, *two.faults):
        Console(stderr=True, highlight=False, soft_wrap=True).print(Text(f"warning: {fault}"))
    found = compare_runs(_record(one), _record(two))
    noise = floors(calibrations.read_all(records)[0], found.after, launches=found.launches)
    if json:
        typer.echo(as_json(found, noise=noise))
    elif format_ == "md":
        typer.echo(as_markdown(found, all_=all_, noise=noise))
    else:
        show(found, console, all_=all_, noise=noise)


def _record(stored: Stored) -> Record:
    return stored.run, stored.launches


def _pair(before: str, after: str, kept: Sequence[Kept], records: Path) -> tuple[Kept, Kept]:
    """The runs that are meant: of two commits, the latest of each on one host where there is."""
    ones, twos = _meant(before, kept, records), _meant(after, kept, records)
    pairs = [
        (one, two)
        for one in ones
        for two in twos
        if one.run.host.id == two.run.host.id and one.run.id != two.run.id
    ]
    if not pairs:
        return ones[-1], twos[-1]
    return max(pairs, key=lambda pair: (pair[1].run.started_at, pair[0].run.started_at))


def _meant(name: str, kept: Sequence[Kept], records: Path) -> list[Kept]:
    """Every run that a name may mean, oldest first.

    Raises:
        InputError: none is meant, or one of several runs by the beginning of their ids.
    """
    if Path(name).is_file():
        return [Kept(file=Path(name), run=jsonl.read_run(Path(name)))]
    exact = [one for one in kept if one.run.id == name]
    begun = [one for one in kept if name and one.run.id.startswith(name)]
    of_commit = [
        one
        for one in kept
        if len(name) >= 4 and one.run.commit and one.run.commit.sha.startswith(name.lower())
    ]
    if not exact and len({one.run.id for one in begun}) > 1:
        raise InputError(
            what=f"several runs begin so: {', '.join(one.run.id for one in begun[:5])}.",
            where=name,
            mend="Give more of the id.",
        )
    shas = {one.run.commit.sha for one in of_commit if one.run.commit}
    if not exact and not begun and len(shas) > 1:
        raise InputError(
            what=f"several commits begin so: {', '.join(sorted(shas)[:5])}.",
            where=name,
            mend="Give more of it.",
        )
    found = exact or begun or of_commit
    if not found:
        raise InputError(
            what="no run and no commit of the records begins so, and no file is called so.",
            where=f"{name}, in {records}",
            mend="Name a run by its id or its file, or a commit that was measured; "
            "--records names another folder.",
        )
    return sorted(found, key=lambda one: (one.run.started_at, one.run.id))
