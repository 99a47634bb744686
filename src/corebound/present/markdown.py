"""Sections as Markdown, for pull requests and issues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from corebound.present.sections import Facts, Section, Sentence, Table
from corebound.text import markdown as escaped


def markdown(sections: Iterable[Section]) -> str:
    """The sections as Markdown; all text is literal."""
    return "\n".join(line for section in sections for line in _lines(section))


def _lines(section: Section) -> Iterator[str]:
    match section:
        case Sentence():
            yield escaped(section.text)
        case Facts():
            title = f"{section.title}: " if section.title else ""
            yield from (escaped(f"{title}{row.term}: {row.value}") for row in section.rows)
        case Table():
            yield from ("", f"### {escaped(section.title)}", "")
            columns, rows = section.in_words
            if rows:
                yield f"| {' | '.join(column.heading for column in columns)} |"
                yield f"|{'---|' * len(columns)}"
                yield from (f"| {' | '.join(map(escaped, row))} |" for row in rows)
                yield ""
            yield from map(escaped, section.notes)
