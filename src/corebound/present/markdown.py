"""Sections as Markdown, for pull requests and issues."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from corebound.present.sections import Facts, Log, Section, Sentence, Table
from corebound.text import lines
from corebound.text import markdown as escaped


def markdown(sections: Iterable[Section]) -> str:
    """The sections as Markdown; all text is literal."""
    return "\n\n".join(block for section in sections for block in _blocks(section))


def _blocks(section: Section) -> Iterator[str]:
    match section:
        case Sentence():
            text = escaped(section.text)
            yield f"**{text}**" if section.kind == "lead" else text
        case Facts():
            title = f"{section.title}: " if section.title else ""
            facts = [escaped(f"{title}{fact.term}: {fact.value}") for fact in section.rows]
            if facts:
                yield "  \n".join(facts)
        case Log():
            longest = max(map(len, re.findall("`+", section.text)), default=0)
            fence = "`" * max(3, longest + 1)
            yield "\n".join((fence, lines(section.text), fence))
        case Table():
            if section.title:
                yield f"### {escaped(section.title)}"
            columns, rows = section.in_words
            if rows:
                sides = ("--:" if column.kind == "number" else "---" for column in columns)
                heads = (escaped(column.heading) for column in columns)
                written = (heads, sides, *(map(escaped, row) for row in rows))
                yield "\n".join(f"| {' | '.join(cells)} |" for cells in written)
            yield from map(escaped, section.notes)
