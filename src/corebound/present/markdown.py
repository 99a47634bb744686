"""Sections as Markdown, for pull requests and issues."""

import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote

from corebound.present.sections import (
    Facts,
    Log,
    Named,
    Section,
    Sentence,
    Table,
    Value,
    text_of,
)
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
            columns, rows = section.without_page
            if rows:
                sides = ("--:" if column.kind == "number" else "---" for column in columns)
                heads = (escaped(column.heading) for column in columns)
                written = (heads, sides, *(map(_cell, row) for row in rows))
                yield "\n".join(f"| {' | '.join(cells)} |" for cells in written)
            yield from map(escaped, section.notes)


# Else an address could end its link, or a column.
_SAFE_IN_LINKS = "/:#?&=%~+@,;"


def _cell(value: Value) -> str:
    if not (isinstance(value, Named) and value.link and value.name):
        return escaped(text_of(value))
    link = f"[{escaped(value.name)}]({quote(value.link, safe=_SAFE_IN_LINKS)})"
    return f"{link} {escaped(value.in_brackets)}".rstrip()
