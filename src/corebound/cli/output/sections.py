"""Print the sections of a result in a terminal."""

from collections.abc import Iterable, Sequence

import rich.table
import typer
from rich.text import Text

from corebound.cli.output.console import Console, fits, print_table
from corebound.present.markdown import markdown
from corebound.present.sections import (
    Column,
    Facts,
    Log,
    Section,
    Sentence,
    Table,
    lines_of,
    text_of,
)
from corebound.text import one_line

_STYLES = {"lead": "bold", "plain": "", "note": "dim"}


def print_text_or_markdown(sections: Iterable[Section], *, is_markdown: bool) -> None:
    """Print the sections of a result as the user has chosen."""
    if is_markdown:
        typer.echo(markdown(sections))
    else:
        print_sections(sections, Console())


def print_sections(sections: Iterable[Section], console: Console) -> None:
    """Print the sections of a result; facts are not wrapped, so that paths can be copied."""
    for section in sections:
        match section:
            case Sentence():
                console.print(_line(section.text), style=_STYLES[section.kind])
            case Facts():
                title = f"{section.title}: " if section.title else ""
                for fact in section.rows:
                    console.print(_line(f"{title}{fact.term}: {fact.value}"), soft_wrap=True)
            case Log():
                console.print()
                for line in section.text.splitlines():
                    console.print(_line(line))
                console.print()
            case Table():
                _print_table(section, console)


def _print_table(section: Table, console: Console) -> None:
    console.print()
    if section.title:
        console.print(_line(section.title), style="table.title")
    columns, rows = section.without_page
    table = _table(columns, [[_line(text_of(value)) for value in row] for row in rows])
    if not fits(table, console):
        stacked = _table(columns, [[_lines(lines_of(value)) for value in row] for row in rows])
        table = stacked if fits(stacked, console) else table
    if rows:
        print_table(table, console)
    for note in section.notes:
        # Not wrapped, so that a command can be copied.
        console.print(_line(note), soft_wrap=True)


def _table(columns: Sequence[Column], rows: Iterable[Sequence[Text]]) -> rich.table.Table:
    table = rich.table.Table(box=None, padding=(0, 1), pad_edge=False)
    for column in columns:
        table.add_column(
            column.heading,
            overflow="fold",
            justify="right" if column.kind == "number" else "left",
        )
    for row in rows:
        table.add_row(*row)
    return table


def _lines(parts: Iterable[str]) -> Text:
    return Text("\n").join(map(_line, parts))


def _line(text: str) -> Text:
    return Text(one_line(text))
