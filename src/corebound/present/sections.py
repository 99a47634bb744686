"""The parts that a view of a result consists of, and that terminal, Markdown and pages render.

The cells of a table are values. The `text` of one is what a terminal and Markdown print; a page may
draw it, or show its interval too, by its `kind`.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct

from corebound.analysis.suggested_commands import CommandLine
from corebound.analysis.wording import (
    Label,
    ValueWithBounds,
    VerdictWord,
    and_more,
    change_text,
    count,
    time_text,
    value_bounds,
    value_text,
    within,
)
from corebound.scenario.cell import Cell
from corebound.stats.comparison import Comparison
from corebound.stats.intervals import Interval


class Sentence(Struct, frozen=True):
    """A sentence or two; `kind` is how much it matters."""

    text: str
    kind: Literal["lead", "plain", "note"] = "plain"


class Fact(Struct, frozen=True, kw_only=True):
    """A term and its value; `code` is for values to copy, and a page folds `more`."""

    term: str
    value: str
    code: bool = False
    more: tuple[str, ...] = ()


class Facts(Struct, frozen=True):
    """Terms with their values; a terminal puts `title` before each."""

    rows: tuple[Fact, ...]
    title: str = ""


class Named(Struct, frozen=True):
    """A name, with what a reader may want to know of it.

    Attributes:
        label: Its configuration, in the colour of its binding mode.
        note: What it is, below the name.
        link: The address of its page; empty without one.
        anchor: The id by which others on a page link its row.
    """

    kind: ClassVar = "named"
    breaks: ClassVar = " ("

    name: str
    tags: tuple[str, ...] = ()
    label: Label | None = None
    note: str = ""
    link: str = ""
    anchor: str = ""

    @property
    def text(self) -> str:
        """The name, with its roles, its configuration and its note in brackets."""
        return f"{self.name} {self.in_brackets}".strip() if self.name else self.more

    @property
    def more(self) -> str:
        """Its roles, its configuration and its note."""
        label = self.label.whole if self.label else ""
        return ", ".join(filter(None, (*self.tags, label, self.note)))

    @property
    def in_brackets(self) -> str:
        """The same in brackets; empty if there is nothing."""
        return f"({self.more})" if self.more else ""


class Item(Struct, frozen=True):
    """One of several values in a cell, with its name and what it differs from.

    `link` is the address of its page, `anchor` the id by which others link it.
    """

    name: str
    value: str = ""
    aside: str = ""
    link: str = ""
    anchor: str = ""

    @property
    def text(self) -> str:
        """In one line: `kernel Linux 6.1.0 (others Linux 6.8.0)`."""
        return " ".join(filter(None, (self.name, self.value, self.aside and f"({self.aside})")))


class Items(Struct, frozen=True):
    """Several values in a cell; more than `most` are counted."""

    kind: ClassVar = "items"

    items: tuple[Item, ...]
    most: int

    @property
    def text(self) -> str:
        """The first of them, and the number of the others."""
        shown = "; ".join(item.text for item in self.items[: self.most])
        return f"{shown} {and_more(len(self.items) - self.most)}".rstrip()


class Duration(Struct, frozen=True):
    """A duration, and its 95 % interval if there is one; of a cell, the value of its metric."""

    kind: ClassVar = "duration"

    value_ns: float | None
    interval: Interval | None = None
    cell: Cell | None = None

    @property
    def text(self) -> str:
        """The duration with its unit; a dash without one."""
        return value_text(self.value_ns, self.cell) if self.cell else time_text(self.value_ns)

    @property
    def bounds(self) -> str:
        """The interval with its unit, if that is another one; empty if there is none."""
        if self.cell is not None:
            return value_bounds(self.interval, self.cell, self.value_ns)
        if self.interval is None:
            return ""
        return within(*self.interval.ends, time_text, beside=self.value_ns)


class Pair(Struct, frozen=True):
    """A value on both sides of a comparison, and the interval of each if there is one."""

    kind: ClassVar = "pair"
    breaks: ClassVar = " → "

    before: ValueWithBounds
    after: ValueWithBounds

    @property
    def text(self) -> str:
        """Both: `1.20 ms → 1.40 ms`."""
        return f"{self.before.value} → {self.after.value}"


class Ratio(Struct, frozen=True):
    """How much faster or slower something is, and the 95 % interval of that."""

    kind: ClassVar = "ratio"
    breaks: ClassVar = " ("

    value: str
    interval: str

    @property
    def text(self) -> str:
        """Both: `1.30× faster (1.21–1.39)`."""
        return f"{self.value} ({self.interval})" if self.interval else self.value


class Marked(Struct, frozen=True, kw_only=True):
    """A verdict, a size or a status, in its colour.

    Attributes:
        bounds: The 95 % interval of a size.
        notes: What is said of it, below it.
        code: What commands take for it.
    """

    kind: ClassVar = "marked"
    breaks: ClassVar = " ("

    word: VerdictWord
    bounds: str = ""
    notes: tuple[str, ...] = ()
    code: str = ""

    @property
    def text(self) -> str:
        """With all else in brackets: `▼ 1.30× slower (95 % CI 1.21–1.39; 10 to 13 ms)`."""
        bounds = f"95 % CI {self.bounds}" if self.bounds else ""
        more = "; ".join(filter(None, (bounds, *self.notes, self.code)))
        return f"{self.word.text}{f' ({more})' if more else ''}"


class Commands(Struct, frozen=True, kw_only=True):
    """The commands for a row, which only a page folds; a terminal has facts for those to copy.

    Attributes:
        lines: The commands; empty if none is known.
        of: What they are for, in words.
    """

    kind: ClassVar = "commands"
    text: ClassVar = ""

    lines: tuple[CommandLine, ...]
    of: str
    members: Items | None = None


class Commits(Struct, frozen=True, kw_only=True):
    """A moment, and the commits that it may have come with.

    Attributes:
        when: The day, with what happened.
        name: The commits as a git range; empty if unknown.
        subject: Of the last of them.
        link: The address of all of them.
        after: What followed: the commits that took a change back, and what remained of it.
        command: What measures them again, for a page.
    """

    kind: ClassVar = "commits"

    when: str
    name: str = ""
    subject: str = ""
    link: str = ""
    after: tuple[Commits | str, ...] = ()
    command: Commands | None = None

    @property
    def text(self) -> str:
        """In one line: `4 March 2026, 9be1f0aa17..4f0c2a91d3 (read twice); fully recovered …`."""
        subject = f"({self.subject})" if self.subject else ""
        first = ", ".join(filter(None, (self.when, f"{self.name} {subject}".strip())))
        return "; ".join((first, *map(text_of, self.after)))


class Presence(Struct, frozen=True):
    """Which of the latest points have a value, the latest last."""

    kind: ClassVar = "presence"
    text: ClassVar = ""

    points: tuple[bool, ...]


class Change(Struct, frozen=True):
    """A comparison, what is said of a ratio above 1 and below 1, and what counts as equal.

    Attributes:
        verdict: Its verdict among several comparisons, by which it is drawn; None takes its own.
    """

    kind: ClassVar = "change"

    comparison: Comparison | None
    words: tuple[str, str]
    margin: float
    verdict: VerdictWord | None = None

    @property
    def text(self) -> str:
        """The ratio with its interval: `1.30× faster (95 % CI 1.21–1.39)`."""
        return change_text(self.comparison, self.words)


class Lane(Struct, frozen=True, kw_only=True):
    """A configuration's part of a race.

    Attributes:
        blocks: How many blocks of the race launched it.
        fresh: How many fresh launches it had after the race.
        dropped: Whether it left before the end.
        total: The blocks of the race and the fresh ones, over all lanes.
        race_blocks: The blocks of the race, over all lanes.
    """

    kind: ClassVar = "lane"

    blocks: int
    fresh: int
    dropped: bool
    total: int
    race_blocks: int

    @property
    def text(self) -> str:
        """The lane in words."""
        left = ", then dropped" if self.dropped else ""
        confirmed = f"; {count(self.fresh, 'fresh launch', 'fresh launches')}" if self.fresh else ""
        return f"{count(self.blocks, 'block')}{left}{confirmed}"


Value = (
    str
    | Named
    | Items
    | Duration
    | Pair
    | Ratio
    | Marked
    | Change
    | Lane
    | Commits
    | Commands
    | Presence
)


def text_of(value: Value) -> str:
    """What a terminal and Markdown print of a value."""
    return value if isinstance(value, str) else value.text


def lines_of(value: Value) -> tuple[str, ...]:
    """The same in two lines, if the value has two parts: it `breaks` between them."""
    text, at = text_of(value), getattr(value, "breaks", "")
    if not at or at not in text:
        return (text,)
    first, _, second = text.partition(at)
    return first, f"{at.lstrip(', ')}{second}"


class Column(Struct, frozen=True):
    """A column of a table.

    Attributes:
        heading: In lower case; a page capitalises it.
        kind: `long` text may wrap. A `drawing` needs a page, and `effects` are drawn on one axis.
            `commands` are folded.
        page_only: Whether a terminal has no room for it.
    """

    heading: str
    kind: Literal["text", "long", "number", "drawing", "effects", "commands"] = "text"
    page_only: bool = False

    @property
    def is_drawn(self) -> bool:
        """Whether a page draws it."""
        return self.kind in {"drawing", "effects"}

    @property
    def needs_page(self) -> bool:
        """Whether a terminal and Markdown leave it out."""
        return self.page_only or self.is_drawn or self.kind == "commands"


class Table(Struct, frozen=True, kw_only=True):
    """A table: the first cell of each row names it; `notes` are below."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Value, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def without_page(self) -> tuple[tuple[Column, ...], tuple[tuple[Value, ...], ...]]:
        """The columns, and the values of each row, without what only a page has."""
        shown = [at for at, column in enumerate(self.columns) if not column.needs_page]
        return (
            tuple(self.columns[at] for at in shown),
            tuple(tuple(row[at] for at in shown) for row in self.rows),
        )

    @property
    def in_words(self) -> tuple[tuple[Column, ...], tuple[tuple[str, ...], ...]]:
        """The same, with the texts of the values."""
        columns, rows = self.without_page
        return columns, tuple(tuple(map(text_of, row)) for row in rows)

    @property
    def effects(self) -> tuple[Change, ...]:
        """The comparisons that a page draws on one axis."""
        return tuple(
            cell
            for row in self.rows
            for cell, column in zip(row, self.columns, strict=True)
            if isinstance(cell, Change) and column.kind == "effects"
        )


class Log(Struct, frozen=True):
    """The output of a program, whose lines stay."""

    text: str


Section = Sentence | Facts | Table | Log
