"""The parts that profile readers return: timelines, sums and iterations of one file."""

import codecs
from collections.abc import Iterable, Iterator
from decimal import Decimal

from msgspec import Struct

from corebound.exchange.reading import Unreadable
from corebound.worker.operator_table import Span

# Some ninety years: a longer time, or a later moment, means that the file is damaged.
_LONGEST_NS = 1 << 62
# A span takes some 200 bytes, so this many fit in 2 GB of memory.
MOST_SPANS = 10_000_000


class Timeline(Struct, frozen=True, kw_only=True):
    """When each operator ran.

    Attributes:
        source: The profiler and the kind of file, in words.
        device: The file's name for the device, or None.
        marks: When each iteration began and ended; empty if the file lacks this.
        spans: In any order; their times are on the same clock as the marks.
        rank: The order of parts with the same content: the lowest is the most detailed.
    """

    source: str
    spans: tuple[Span, ...]
    marks: tuple[tuple[int, int], ...] = ()
    rank: int = 0
    device: str | None = None


class Sum(Struct, frozen=True, kw_only=True):
    """All calls of one operator type over everything profiled; `None` means unknown."""

    type: str
    calls: int
    total_ns: int
    min_ns: int | None
    max_ns: int | None


class Sums(Struct, frozen=True, kw_only=True):
    """A table of sums, one row for each type.

    Attributes:
        rank: As in `Timeline`.
        iterations: The number of iterations the sums cover, if the table has it.
    """

    source: str
    rows: tuple[Sum, ...]
    rank: int = 0
    iterations: int | None = None
    device: str | None = None


class Iterations(Struct, frozen=True, kw_only=True):
    """When iterations began and ended, without any operators.

    Attributes:
        marks: As in `Timeline`.
        computing: When each forward and backward pass began and ended, if known.
        rank: As in `Timeline`.
    """

    source: str
    marks: tuple[tuple[int, int], ...]
    computing: tuple[tuple[int, int], ...]
    rank: int = 0
    device: str | None = None


Part = Timeline | Sums | Iterations


def nanoseconds(value: object, unit_ns: int) -> int:
    """Convert a number, or its text, to nanoseconds; `unit_ns` is the length of its unit.

    Texts may have more digits than a float, and surrounding white space.

    Raises:
        Unreadable: The value is not a number, or is longer than any possible time.
    """
    try:
        number = Decimal(value.strip() if isinstance(value, str) else str(value)) * unit_ns
        # Check the magnitude first, because an integer of 1e999999 would not fit in memory.
        if number.is_finite() and number.adjusted() < 20 and abs(number) < _LONGEST_NS:
            return round(number)
    except ArithmeticError:
        pass
    raise Unreadable(
        f"{str(value)[:40]!r} is not a time.",
        "Export the profile again: the file is damaged.",
    )


def text_lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """Lines of UTF-8 with their line ends; a byte order mark is skipped.

    Raises:
        Unreadable: The text is not UTF-8.
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
            "not UTF-8 text.", "Export the profile again, or save it as UTF-8."
        ) from None
    if rest:
        yield rest


def collect_spans(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Collect all spans, unless they might not fit in memory.

    Raises:
        Unreadable: There are too many spans, or none.
    """
    collected: list[Span] = []
    for span in spans:
        collected.append(span)
        if len(collected) > MOST_SPANS:
            raise Unreadable(
                f"the file contains more than {MOST_SPANS:,} operators.",
                "Profile fewer iterations, or shorter ones.",
            )
    if not any(span.type is not None for span in collected):
        raise Unreadable(
            "the file contains no executed operator.",
            "Profile CPU activity, and run a step while the profiler is active.",
        )
    return tuple(collected)
