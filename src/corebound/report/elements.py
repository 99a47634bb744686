"""Elements that several pages share: page head, verdict, action, notices."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace

from msgspec import Struct

from corebound.analysis.advice import Advice
from corebound.analysis.suggested_commands import CommandLine
from corebound.analysis.wording import Flag, Text, TextSpan, count, plain, strong
from corebound.errors import Fault


class Head(Struct, frozen=True, kw_only=True):
    """The head of a page.

    Attributes:
        made: What the page was made from; empty: it says when the site was made.
    """

    title: str
    description: str
    made: str = ""


class Hero(Struct, frozen=True, kw_only=True):
    """The top of a page: the question, the verdict, its basis, and notices.

    `subject` is what the verdict is about, where the title does not say it.
    """

    title: str
    subject: str = ""
    question: str = ""
    context: str = ""
    verdict: Text
    support: Text = ()
    flags: tuple[Flag, ...] = ()

    @property
    def says(self) -> str:
        """The verdict, with its subject, for where the page is not seen."""
        return ": ".join(filter(None, (self.subject, plain(self.verdict))))


class Content(SimpleNamespace):
    """What a part of a page shows, by the names that its template uses."""


class Page(Content):
    """What a page shows: domain objects, and what is drawn."""

    head: Head
    hero: Hero


class Action(Struct, frozen=True, kw_only=True):
    """What to do, below the headline.

    Attributes:
        prompt: In words: `Set`, `Run`, `Keep unbound.`
        line: One line to paste; a command if it reads records.
        where: Where the line belongs; may be empty.
    """

    prompt: str
    line: CommandLine
    where: str = ""


def action_of(advice: Advice, *, prompt: str) -> Action | None:
    """What to set in a scenario, or what to run to get more data; None if no line says it."""
    if advice.set is None:
        return Action(prompt=prompt, line=advice.command) if advice.command else None
    line = CommandLine(advice.set.line, reads_records=False)
    return Action(prompt=prompt, line=line, where=advice.set.where)


def linked_count(
    number: int, text: str, link: str, *, noun: tuple[str, str] = ("series", "series")
) -> list[str | TextSpan]:
    """A sentence with the number of something, which links to it; empty if there is none.

    >>> linked_count(2, "{have} no result", "#failing")
    [TextSpan(text='2 series have no result', kind='strong', link='#failing'), '. ']
    """
    if not number:
        return []
    verbs = {"have": "has", "are": "is"} if number == 1 else {"have": "have", "are": "are"}
    return [strong(f"{count(number, *noun)} {text.format(**verbs)}", link), ". "]


def damaged_records(faults: Sequence[Fault]) -> Flag | None:
    """A notice with the number of skipped records, and where the first of them is.

    >>> damaged_records([Fault(file="records/host/r1.jsonl", line=20, what="…", fix="…")])
    ... # doctest: +ELLIPSIS
    Flag(..., title='1 record damaged', detail='skipped: r1.jsonl, line 20', link='')
    """
    if not faults:
        return None
    first = faults[0]
    line = "" if first.line is None else f", line {first.line}"
    # Otherwise the file is intact, but this version cannot read its scenario.
    is_damage = all(fault.file.endswith(".jsonl") for fault in faults)
    more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
    return Flag(
        tone="bad",
        sign="!",
        title=f"{count(len(faults), 'record')} {'damaged' if is_damage else 'could not be read'}",
        detail=f"skipped: {Path(first.file).name}{line}{more}",
    )


def occurrence_numbers(kinds: Iterable[Hashable]) -> list[int]:
    """For each item its number among the items of its kind.

    Sorting by it makes the kinds alternate.

    >>> occurrence_numbers("aab")
    [1, 2, 1]
    """
    seen: Counter[Hashable] = Counter()
    values = []
    for kind in kinds:
        seen[kind] += 1
        values.append(seen[kind])
    return values
