"""Stream the events of a Chrome trace, so that a large trace needs little memory.

Source: Google, "Trace Event Format": an object with `traceEvents`, or that list alone.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple, NoReturn

from corebound.exchange.profiles.parts import Timeline, collect_spans, nanoseconds
from corebound.exchange.reading import InvalidJson, Unknown, Unreadable, decode_json, label
from corebound.worker.operator_table import Span

Event = dict[str, Any]

# No single event, or value beside the events, is this long.
_LONGEST_VALUE = 64 << 20
# Text that was read is released in pieces, not after each event.
_RELEASED_CHARACTERS = 1 << 20
# With the byte order mark.
_SPACE = " \t\r\n\ufeff"
_DAMAGED = "Export or copy the file again."
_OWN_FAULT = "The profiler wrote this. Export again with another version, or correct this place."
# An error so close to the end of what was read may only be a word that was cut.
_LONGEST_WORD = 64


def trace_events(pieces: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events of a trace in file order; times with a decimal point stay text.

    A float cannot hold a time of day to the nanosecond.

    Raises:
        Unknown: The data is JSON, but not a Chrome trace.
        Unreadable: The data is truncated or not JSON; says in which event, and at which byte.
    """
    text = _Text(pieces)
    opening = text.next()
    if opening == "[":
        yield from _events(text, may_be_open=True)
    elif opening == "{":
        yield from _document(text)
    else:
        text.fail("not JSON")
    if text.next():
        text.fail("data after the end of the JSON", fix=_OWN_FAULT)


def _document(text: _Text) -> Iterator[Event]:
    has_events = False
    text.expect("{")
    while text.next() != "}":
        key = text.value()
        text.expect(":")
        if key == "traceEvents" and text.next() == "[":
            has_events = True
            yield from _events(text)
        else:
            text.value()
        if text.next() != "}":
            text.expect(",")
    text.expect("}")
    if not has_events:
        raise Unknown(
            "JSON, but not a Chrome trace: there is no `traceEvents`.",
            "Name a trace exported by a profiler.",
        )


def _events(text: _Text, *, may_be_open: bool = False) -> Iterator[Event]:
    """Yield the events of a list; a list without an object around it may lack its end."""
    text.expect("[")
    text.is_in_events = True
    while text.next() != "]" and not (may_be_open and not text.next()):
        value = text.value()
        text.events += 1
        if isinstance(value, dict) and value.get("ph") is not None:
            yield value
        if text.next() and text.next() != "]":
            text.expect(",")
    text.is_in_events = False
    if text.next() or not may_be_open:
        text.expect("]")


class _Text:
    """A window on the text that advances as values are consumed.

    Attributes:
        events: How many events were read.
        is_in_events: Whether the next value is an event.
    """

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        # Bytes that are no UTF-8 become lone surrogates, so that positions stay right.
        self._utf8 = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._json = json.JSONDecoder(parse_float=str, strict=False)
        self._window = ""
        self._at = 0
        self._bytes_before = 0
        self._ended = False
        self.events = 0
        self.is_in_events = False

    def next(self) -> str:
        """Peek at the next character that is not white space; empty at the end."""
        while True:
            while self._at < len(self._window):
                if self._window[self._at] not in _SPACE:
                    return self._window[self._at]
                self._at += 1
            if not self._more():
                return ""

    def expect(self, expected: str) -> None:
        """Consume one character, which must be this one."""
        character = self.next()
        if not character:
            self.fail("it is truncated")
        if character != expected:
            self.fail(f"`{expected}` expected, found {character!r}", fix=_OWN_FAULT)
        self._at += 1

    def value(self) -> Any:
        """Consume one JSON value."""
        self.next()
        while True:
            try:
                value, end, self._window = decode_json(self._window, self._at, self._json)
            except InvalidJson as error:
                pending = len(self._window)
                may_go_on = error.is_truncated or pending - error.at < _LONGEST_WORD
                if may_go_on and pending - self._at <= _LONGEST_VALUE and self._more():
                    continue
                self._at = error.at
                if error.is_truncated:
                    self.fail("it is truncated" if self._ended else "a value is too long")
                self.fail(f"invalid JSON near `{error.near}`: {error}", fix=_OWN_FAULT)
            # A number at the end of the window may continue in the next piece.
            if end == len(self._window) and self._more():
                continue
            self._at = end
            return value

    def fail(self, what: str, *, fix: str = _DAMAGED) -> NoReturn:
        """Raise an error for this place of the input."""
        byte = self._bytes_before + _size(self._window[: self._at])
        number = self.events + self.is_in_events
        event = f"{'in' if self.is_in_events else 'after'} event {number:,}, " if number else ""
        raise Unreadable(f"damaged trace, {event}byte {byte:,}: {what}.", fix) from None

    def _more(self) -> bool:
        """Read at least as much again as is pending; False at the end."""
        if self._at >= _RELEASED_CHARACTERS:
            self._bytes_before += _size(self._window[: self._at])
            self._window, self._at = self._window[self._at :], 0
        needed = max(1, len(self._window) - self._at)
        decoded = []
        while needed > 0 and not self._ended:
            piece = next(self._pieces, None)
            self._ended = piece is None
            decoded.append(self._utf8.decode(piece or b"", final=piece is None))
            needed -= len(decoded[-1])
        text = "".join(decoded)
        self._window += text
        return bool(text)


def _size(text: str) -> int:
    """How many bytes the text had in the file."""
    return len(text.encode("utf-8", "surrogateescape"))


SOURCE = "corebound, Chrome trace"
_STEP = ("step", 0)
_US = 1000


def times_ns(event: Event) -> tuple[int, int]:
    """When an event began and ended.

    Raises:
        Unreadable: A time is invalid.
    """
    begin_ns = nanoseconds(event.get("ts"), _US)
    return begin_ns, begin_ns + max(0, nanoseconds(event.get("dur", 0), _US))


def matches(event: Event) -> bool:
    """Whether an event is a step in corebound's own format."""
    return (event.get("name"), event.get("tid")) == _STEP and set(event) == {
        "ph", "name", "pid", "tid", "ts", "dur"
    }  # fmt: skip


class Described(NamedTuple):
    """What a profiler's event is.

    Attributes:
        type: The type of the operator; None for an event that only contains operators.
        phase: As in `Span`.
        is_span: Whether it is a span; False for an event that only marks an iteration.
        is_mark: Whether it marks an iteration.
    """

    type: str | None
    phase: str | None = None
    is_span: bool = True
    is_mark: bool = False


def timeline(
    source: str,
    events: Iterable[Event],
    describe: Callable[[Event], Described | None],
    *,
    rank: int = 0,
) -> Timeline:
    """The operators and iterations of a trace.

    Args:
        source: As in `Timeline`.
        describe: Says what an event is; None if it does not matter.
        rank: As in `Timeline`.

    Raises:
        Unreadable: A time is invalid, or no operator ran.
    """
    # Each name is stored once, however often it occurs.
    named = cache(label)
    threads: dict[tuple[str, str], int] = {}
    marks: list[tuple[int, int]] = []

    def spans() -> Iterator[Span]:
        for event in events:
            if (found := describe(event)) is None:
                continue
            begin_ns, end_ns = times_ns(event)
            if found.is_mark:
                marks.append((begin_ns, end_ns))
            if found.is_span:
                thread = (str(event.get("pid")), str(event.get("tid")))
                yield Span(
                    type=None if found.type is None else named(found.type),
                    thread=threads.setdefault(thread, len(threads)),
                    begin_ns=begin_ns,
                    end_ns=end_ns,
                    phase=found.phase,
                )

    collected = collect_spans(spans())
    return Timeline(source=source, spans=collected, marks=tuple(sorted(marks)), rank=rank)


def read(events: Iterable[Event]) -> Timeline:
    """Read the operators of each step; raises as `timeline` does."""

    def describe(event: Event) -> Described:
        if matches(event):
            return Described(None, is_span=False, is_mark=True)
        return Described(str(event.get("name", "")))

    return timeline(SOURCE, events, describe)
