"""`corebound compare`: two runs, or two commits, cell by cell; or all hosts of the records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from msgspec import Struct
from rich.table import Table
from rich.text import Text

from corebound import text as corebound_text
from corebound.analysis.commit_comparison import (
    COMMITS_CAVEAT,
    CommitComparison,
    ComparedSeries,
)
from corebound.analysis.compared import (
    ComparedRow,
    count_no_difference,
    count_not_compared,
)
from corebound.analysis.run_comparison import (
    RUNS_CAVEAT,
    ComparedCell,
    RunComparison,
    commit_title,
    run_variation_note,
)
from corebound.analysis.serialize import (
    commit_comparison_document,
    hosts_document,
    run_comparison_document,
)
from corebound.analysis.series_names import short_series_names
from corebound.analysis.wording import count, value_text
from corebound.cli.commands.compare_commits import formatted as formatted_commits
from corebound.cli.options import Json, Quiet, notifier
from corebound.cli.output.console import Console, print_table
from corebound.cli.output.json import print_json
from corebound.cli.output.sections import print_sections
from corebound.cli.output.verdicts import (
    SIGNS,
    VERDICT_WIDTH,
    duration_text,
    verdict_text,
)
from corebound.errors import InputError
from corebound.present.hosts import By, hosts_sections
from corebound.present.markdown import markdown as sections_markdown
from corebound.records.jsonl import RECORDS
from corebound.records.run_record import Commit, Run
from corebound.workflow.compare import compare_recorded
from corebound.workflow.compare_commits import CompareCommitsResult
from corebound.workflow.hosts import compare_recorded_hosts
from corebound.workflow.options import Argument, Option, ProjectName, Records

Format = Literal["text", "md"]

_CELLS, _SERIES = ("cell", "cells"), ("series", "series")
_HEADINGS = ("", "before", "after", "change", "95 % CI", "verdict")


def compare(
    names: Annotated[
        tuple[str, ...],
        Argument(
            "Two runs (id, start of it, file) or commits (hash, tag);"
            " with --by, scenario files to compare.",
            metavar="A B",
        ),
    ] = (),
    *,
    by: Annotated[By | None, Option("Compare all hosts of the records, or their classes.")] = None,
    project: ProjectName = None,
    records: Records = RECORDS,
    quiet: Quiet = False,
    as_json: Json = False,
    form: Annotated[Format, Option("Output format.", name="--format")] = "text",
    show_all: Annotated[
        bool, Option("Also list rows without a clear difference.", name="--all")
    ] = False,
) -> None:
    """Compare two runs, two commits or all hosts.

    Examples:
        corebound compare 1f0c 9be1
        corebound compare v1.2 v1.3 --format md
        corebound compare --by class scenarios/matmul.yaml
    """
    console = Console(stderr=True, quiet=quiet)
    if by is not None:
        files = [Path(name) for name in names]
        hosts = compare_recorded_hosts(records, files, notifier(console))
        if as_json:
            print_json(hosts_document(hosts))
            return
        sections = hosts_sections(hosts, by=by, show_all=show_all)
        if form == "md":
            typer.echo(sections_markdown(sections))
        else:
            print_sections(sections, Console())
        return
    if len(names) != 2:
        raise InputError(
            what="compare takes two runs or two commits.",
            where=" ".join(["corebound compare", *names]),
            fix="Name two, such as `corebound compare 1f0c 9be1`, or compare hosts with --by.",
        )
    before, after = names
    compared = compare_recorded(
        before, after, records, notifier(console), console.status, project=project
    )
    if isinstance(compared, CompareCommitsResult):
        typer.echo(formatted_commits(compared, "json" if as_json else form))
        return
    result = (
        text_of_commits(compared)
        if isinstance(compared, CommitComparison)
        else text_of_runs(compared)
    )
    if as_json:
        print_json(result.document)
    elif form == "md":
        typer.echo(markdown(result, show_all=show_all))
    else:
        print_comparison(result, Console(soft_wrap=True), show_all=show_all)


class Row(Struct, frozen=True, kw_only=True):
    """One row: its name (in a terminal `short`, below `group`), its values, and the verdict."""

    name: str
    before: str
    after: str
    verdict: str
    compared: ComparedRow
    short: str
    group: str = ""


class ComparisonText(Struct, frozen=True, kw_only=True):
    """A comparison in displayable form.

    Attributes:
        before, after: The descriptions of the two.
        noun: The word for a row, singular and plural.
        rows: All rows, those that differ first.
        closing: Notes outside the rows.
        document: The complete comparison, for scripts.
    """

    before: str
    after: str
    noun: tuple[str, str]
    rows: tuple[Row, ...]
    closing: tuple[str, ...]
    document: dict[str, Any]


def text_of_runs(result: RunComparison) -> ComparisonText:
    """Prepare the output for two runs."""
    return ComparisonText(
        before=_run_name(result.before),
        after=_run_name(result.after),
        noun=_CELLS,
        rows=tuple(_cell_row(cell, result) for cell in result.cells),
        closing=(
            *_closing(result, _CELLS, "runs"),
            f"{RUNS_CAVEAT} {run_variation_note(result)}".strip(),
            *result.noise,
        ),
        document=run_comparison_document(result),
    )


def _cell_row(cell: ComparedCell, result: RunComparison) -> Row:
    remarks = (
        _verdict(cell),
        result.code if cell.is_finding else None,
        cell.note,
    )
    return Row(
        name=cell.name,
        before=duration_text(cell.before),
        after=duration_text(cell.after),
        verdict=", ".join(filter(None, remarks)),
        compared=cell,
        short=f"  {cell.configuration.label}",
        group=cell.scenario,
    )


def text_of_commits(result: CommitComparison) -> ComparisonText:
    """Prepare the output for two commits of an imported project."""
    names = short_series_names([compared.series for compared in result.series])
    return ComparisonText(
        before=_commit_name(result.project, result.before),
        after=_commit_name(result.project, result.after),
        noun=_SERIES,
        rows=tuple(
            Row(
                name=name,
                before=_value(compared, compared.before),
                after=_value(compared, compared.after),
                verdict=_less_or_more(compared),
                compared=compared,
                short=name,
            )
            for compared, name in zip(result.series, names, strict=True)
        ),
        closing=(*_closing(result, _SERIES, "commits"), COMMITS_CAVEAT),
        document=commit_comparison_document(result),
    )


def print_comparison(result: ComparisonText, console: Console, *, show_all: bool) -> None:
    """Print the two, the differences, and a note about hidden rows."""
    for side, name in (("before", result.before), ("after", result.after)):
        console.print(_line(f"{side}: {name}"))
    rows = _shown_rows(result, show_all=show_all)
    if rows:
        print_table(_table(rows), console)
    for line in (*_hidden(result, show_all=show_all), *result.closing):
        console.print(_line(line))


def _table(rows: Sequence[Row]) -> Table:
    table = Table(box=None, padding=(0, 1))
    table.add_column(_HEADINGS[0], overflow="fold")
    # Units can be long.
    for heading in _HEADINGS[1:3]:
        table.add_column(heading, justify="right", overflow="fold")
    for heading in _HEADINGS[3:-1]:
        table.add_column(heading, justify="right", no_wrap=True)
    # A long verdict wraps, so that the other columns stay readable; a short one does not.
    table.add_column(_HEADINGS[-1], justify="right", min_width=VERDICT_WIDTH)
    group = ""
    for row in sorted(rows, key=lambda row: row.group):
        if row.group != group:
            group = row.group
            table.add_row(_line(group))
        table.add_row(*map(_line, (row.short, *_values(row)[1:])))
    return table


def _line(text: str) -> Text:
    return Text(corebound_text.one_line(text))


def markdown(result: ComparisonText, *, show_all: bool) -> str:
    """Render the comparison as Markdown, for a pull request."""
    before, after = map(corebound_text.markdown, (result.before, result.after))
    lines = [f"Before: {before}  ", f"After: {after}", ""]
    rows = _shown_rows(result, show_all=show_all)
    if rows:
        lines += [f"| {' | '.join(_HEADINGS)} |", "|---|--:|--:|--:|--:|---|"]
        lines += [f"| {' | '.join(map(corebound_text.markdown, _values(row)))} |" for row in rows]
        lines.append("")
    closing = (*_hidden(result, show_all=show_all), *result.closing)
    return "\n".join((*lines, *map(corebound_text.markdown, closing)))


def _shown_rows(result: ComparisonText, *, show_all: bool) -> list[Row]:
    # Where nothing could be decided, the differences are all that there is to see.
    show_all = show_all or not any(_has_interval(row.compared) for row in result.rows)
    return [row for row in result.rows if show_all or row.compared.is_finding]


def _has_interval(compared: ComparedRow) -> bool:
    return compared.comparison is not None and compared.comparison.interval is not None


def _hidden(result: ComparisonText, *, show_all: bool) -> list[str]:
    compared = [row.compared for row in result.rows]
    unclear, unknown = count_no_difference(compared), count_not_compared(compared)
    is_complete = len(_shown_rows(result, show_all=show_all)) == len(compared)
    if is_complete or not unclear + unknown:
        return []
    parts = []
    if unclear:
        known = len(compared) - unknown
        parts.append(f"{unclear:,} of {known:,} {result.noun[1]} do not clearly differ; ")
    if unknown:
        parts.append(f"{count(unknown, *result.noun)} without results; ")
    return [f"{''.join(parts)}--all lists them."]


def _closing(
    result: RunComparison | CommitComparison, noun: tuple[str, str], sides: str
) -> list[str]:
    lines = [f"not compared: {name}: {reason}" for name, reason in result.not_comparable]
    if result.only_in_one:
        verb = "is" if len(result.only_in_one) == 1 else "are"
        lines.append(f"{count(len(result.only_in_one), *noun)} {verb} in one of the {sides} only.")
    return lines


def _values(row: Row) -> tuple[str, ...]:
    return (
        row.name,
        row.before,
        row.after,
        row.compared.ratio_text or "–",
        row.compared.bounds or "–",
        row.verdict,
    )


def _verdict(compared: ComparedRow) -> str:
    """The verdict; inconclusive if it is not significant after correction for all comparisons."""
    if compared.comparison is None:
        return "not compared"
    return verdict_text(compared.comparison, compared.verdict)


def _less_or_more(compared: ComparedSeries) -> str:
    """The verdict; values other than times are less or more instead of faster or slower."""
    if compared.unit == "ns" or compared.verdict is None or not compared.is_finding:
        return _verdict(compared)
    return f"{SIGNS[compared.verdict]} {'less' if compared.is_less else 'more'}"


def _value(compared: ComparedSeries, value: float | None) -> str:
    return "–" if value is None else value_text(compared.series, value)


def _run_name(run: Run) -> str:
    commit = f", commit {commit_title(run.commit)}" if run.commit else ""
    return f"{run.id}, {run.started_at}, {run.host.name}{commit}"


def _commit_name(project: str, commit: Commit) -> str:
    return f"{project}, commit {commit.sha[:10]}, {commit.committed_at} {commit.subject}".strip()
