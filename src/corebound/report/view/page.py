"""What sections of several pages are made of; each section's own model is beside what makes it.

Templates only arrange page models; they compute nothing and choose no words.
"""

from __future__ import annotations

from typing import Literal, Self

from msgspec import Struct

Tone = Literal["good", "bad", "warn", "plain"]


class Piece(Struct, frozen=True):
    """A stretch of text with one accent; what is strong may lead to an address."""

    text: str
    kind: Literal["plain", "strong", "good", "bad", "code"]
    link: str = ""


Text = tuple[Piece, ...]


class Head(Struct, frozen=True, kw_only=True):
    """What every page has about it.

    Attributes:
        title, description: Of the document.
        root: Relative path to the site's top, empty or ending in a slash.
        here: What the way from the top to this page calls it.
        made: When and by what the page was made.
        above: (text, path from the site's top) of what that way leads through.
    """

    title: str
    description: str
    root: str
    here: str
    made: str
    above: tuple[tuple[str, str], ...] = (("Scenarios", "index.html"),)

    @property
    def crumbs(self) -> tuple[tuple[str, str], ...]:
        """(text, address) from the top; the last is this page, address empty."""
        return (*((text, f"{self.root}{path}") for text, path in self.above), (self.here, ""))


class Label(Struct, frozen=True, kw_only=True):
    """A cell's name: coloured by binding mode, with the rest of its axes."""

    mode: str
    name: str
    more: str

    @property
    def whole(self) -> str:
        """The same in running text: `physical cores, 2 threads`."""
        return f"{self.name}, {self.more}" if self.more else self.name


class VerdictWord(Struct, frozen=True, kw_only=True):
    """A verdict as tone, sign and word together."""

    tone: Tone
    sign: str
    word: str


class Flag(Struct, frozen=True, kw_only=True):
    """One thing to know before the figures are believed; `link` is an address or empty."""

    tone: Tone
    sign: str
    title: str
    detail: str
    link: str = ""

    @classmethod
    def warning(cls, title: str, detail: str, link: str = "") -> Self:
        """What casts doubt on figures, or leaves some out."""
        return cls(tone="warn", sign="!", title=title, detail=detail, link=link)


class Tick(Struct, frozen=True, kw_only=True):
    """A label at a place in per cent; `minor` ones go where there is no room."""

    at: float
    text: str
    minor: bool = False


class Bounded(Struct, frozen=True, kw_only=True):
    """A figure with its unit, and beneath it where it lies; `ends` is empty where nobody knows."""

    value: str
    ends: str = ""


class Figure(Struct, frozen=True, kw_only=True):
    """A number and what it counts; one that is not known says so in a word."""

    value: str
    says: str
    known: bool = True


class Hero(Struct, frozen=True, kw_only=True):
    """The top of a page: what was asked, the verdict, what it rests on, what to mind."""

    title: str
    question: str
    context: str
    verdict: Text
    support: Text
    flags: tuple[Flag, ...]
