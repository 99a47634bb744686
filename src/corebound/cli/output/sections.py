"""Print the sections of a result in a terminal."""

from __future__ import annotations

from collections.abc import Iterable

import rich.table
from rich.text import Text

from corebound.cli.output.console import Console, print_table
from corebound.present.sections import Facts, Section, Sentence, Table
from corebound.text import one_line

_STYLES = {"lead": "bold", "plain": "", "note": "dim"}


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
            case Table():
                _print_table(section, console)


def _print_table(section: Table, console: Console) -> None:
    console.print()
    console.print(_line(section.title), style="table.title")
    columns, rows = section.in_words
    table = rich.table.Table(box=None, padding=(0, 1))
    for column in columns:
        table.add_column(
            column.heading,
            overflow="fold",
            justify="right" if column.kind == "number" else "left",
        )
    for row in rows:
        table.add_row(*map(_line, row))
    if rows:
        print_table(table, console)
    for note in section.notes:
        console.print(_line(note))


def _line(text: str) -> Text:
    return Text(one_line(text))
