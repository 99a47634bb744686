"""What readers give and raise: timelines, sums and iterations of one file."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from decimal import Decimal

from msgspec import Struct

from corebound.worker.operator_table import Span

# Some ninety years: a longer time, or a later moment, is damage.
_LONGEST_NS = 1 << 62
# No operator's name is so long; what is, would fill a page.
_LONGEST_NAME = 200
# A span is some 200 bytes, so this is what 2 GB of memory hold.
MOST_SPANS = 10_000_000


class Unreadable(ValueError):
    """Content that a reader cannot read: what is wrong with it, and how to mend that."""

    def __init__(self, what: str, mend: str) -> None:
        super().__init__(f"{what} {mend}")
        self.what = what
        self.mend = mend


class Unknown(Unreadable):
    """Content that is of no format that is known; a folder may hold such files."""


class Timeline(Struct, frozen=True, kw_only=True):
    """When each operator ran.

    Attributes:
        source: The profiler and the kind of file, in words.
        device: What it ran on, as the file calls it, or None.
        marks: When each iteration began and ended; empty where the file does not tell.
        spans: In any order; their times are on the clock of the marks.
        rank: Of several that tell the same, the one with the lowest tells most.
    """

    source: str
    spans: tuple[Span, ...]
    marks: tuple[tuple[int, int], ...] = ()
    rank: int = 0
    device: str | None = None


class Sum(Struct, frozen=True, kw_only=True):
    """All calls of one type over all that was profiled; `None` is not told."""

    type: str
    calls: int
    total_ns: int
    min_ns: int | None
    max_ns: int | None


class Sums(Struct, frozen=True, kw_only=True):
    """A table that was summed up already, a row a type.

    Attributes:
        rank: As that of a timeline.
        iterations: Over how many iterations, where the table tells.
    """

    source: str
    rows: tuple[Sum, ...]
    rank: int = 0
    iterations: int | None = None
    device: str | None = None


class Iterations(Struct, frozen=True, kw_only=True):
    """When iterations began and ended, without any operator.

    Attributes:
        marks: As those of a timeline.
        computing: When each one's forward and backward pass began and ended, where told.
        rank: As that of a timeline.
    """

    source: str
    marks: tuple[tuple[int, int], ...]
    computing: tuple[tuple[int, int], ...]
    rank: int = 0
    device: str | None = None


Part = Timeline | Sums | Iterations


def clean(name: str) -> str:
    """A name that can be stored, written to a terminal and read: others' files hold anything."""
    cut = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    # Escapes would steer a terminal, and halves of characters have no UTF-8.
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in cut)


class Names:
    """Names of operators made clean, each kept once however often it is called."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        """The name as it is to be shown."""
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = clean(name)
        return known


def nanoseconds(value: object, unit_ns: int) -> int:
    """A number, or the text of one, in units of so many nanoseconds.

    Texts may have more digits than a float, and white space about them.

    Raises:
        Unreadable: it is no number, or longer than any time can be.
    """
    try:
        number = Decimal(value.strip() if isinstance(value, str) else str(value)) * unit_ns
        # First its magnitude, for an integer of 1e999999 would not fit any memory.
        if number.is_finite() and number.adjusted() < 20 and abs(number) < _LONGEST_NS:
            return round(number)
    except ArithmeticError:
        pass
    raise Unreadable(
        f"{str(value)[:40]!r} stands where a time should.",
        "Export the profile again: the file is damaged.",
    )


def text_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Lines of UTF-8, their ends kept; a byte order mark is passed over.

    Raises:
        Unreadable: it is no UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    rest = ""
    try:
        for piece in pieces:
            lines = (rest + decoder.decode(piece)).split("\n")
            rest = lines.pop()
            yield from (f"{line}\n" for line in lines)
        rest += decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        raise Unreadable(
            "it is not text in UTF-8.", "Export the profile again, or save it as UTF-8."
        ) from None
    if rest:
        yield rest


def capped(spans: Iterable[Span]) -> tuple[Span, ...]:
    """All spans, or a refusal where memory might not hold them.

    Raises:
        Unreadable: there are too many, or none at all.
    """
    kept: list[Span] = []
    for span in spans:
        kept.append(span)
        if len(kept) > MOST_SPANS:
            raise Unreadable(
                f"it holds more than {MOST_SPANS:,} operators.",
                "Profile fewer iterations, or shorter ones.",
            )
    if not any(span.type is not None for span in kept):
        raise Unreadable(
            "it holds no operator that ran.",
            "Profile with the activity of the CPU, and run a step while the profiler is on.",
        )
    return tuple(kept)
