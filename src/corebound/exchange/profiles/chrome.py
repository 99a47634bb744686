"""Stream the events of a Chrome trace, so that a large trace needs little memory.

Source: Google, "Trace Event Format": an object with `traceEvents`, or that list alone.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from corebound.exchange.profiles.parts import Names, Timeline, collect_spans, nanoseconds
from corebound.exchange.reading import Unknown, Unreadable
from corebound.worker.operator_table import Span

Event = dict[str, Any]

# No single event, or value beside the events, is this long.
_LONGEST_VALUE = 64 << 20
# Text that was read is released in pieces, not after each event.
_RELEASED_CHARACTERS = 1 << 20
_SPACE = " \t\r\n"
_DAMAGED = "Export or copy the file again."


def trace_events(pieces: Iterable[bytes]) -> Iterator[Event]:
    """Yield the events of a trace in file order; times with a decimal point stay text.

    A float cannot hold a time of day to the nanosecond.

    Raises:
        Unknown: The data is JSON, but not a Chrome trace.
        Unreadable: The data is truncated or not JSON.
    """
    text = _Text(pieces)
    opening = text.next()
    if opening == "[":
        yield from _events(text)
    elif opening == "{":
        yield from _document(text)
    else:
        text.fail("not JSON")
    if text.next():
        text.fail("data after the end of the JSON")


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


def _events(text: _Text) -> Iterator[Event]:
    text.expect("[")
    while text.next() != "]":
        value = text.value()
        if isinstance(value, dict) and value.get("ph") is not None:
            yield value
        if text.next() != "]":
            text.expect(",")
    text.expect("]")


class _Text:
    """A window on the text that advances as values are consumed."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder(parse_float=str, parse_constant=_reject_constant)
        self._window = ""
        self._at = 0
        self._ended = False

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
        if character != expected:
            self.fail(
                f"`{expected}` expected, found `{character}`" if character else "it is truncated"
            )
        self._at += 1

    def value(self) -> Any:
        """Consume one JSON value."""
        self.next()
        while True:
            try:
                value, end = self._json.raw_decode(self._window, self._at)
            except (ValueError, RecursionError) as error:
                if isinstance(error, RecursionError):
                    self.fail("nested too deeply")
                if len(self._window) - self._at > _LONGEST_VALUE or not self._more():
                    self.fail("it is truncated" if self._ended else "not JSON")
                continue
            # A number at the end of the window may continue in the next piece.
            if end == len(self._window) and self._more():
                continue
            self._at = end
            return value

    def fail(self, what: str) -> NoReturn:
        """Raise an error for this input."""
        raise Unreadable(f"incomplete or damaged trace: {what}.", _DAMAGED) from None

    def _more(self) -> bool:
        """Read at least as much again as is pending; False at the end."""
        if self._at >= _RELEASED_CHARACTERS:
            self._window, self._at = self._window[self._at :], 0
        needed = max(1, len(self._window) - self._at)
        decoded = []
        try:
            while needed > 0 and not self._ended:
                piece = next(self._pieces, None)
                self._ended = piece is None
                decoded.append(self._utf8.decode(piece or b"", final=piece is None))
                needed -= len(decoded[-1])
        except UnicodeDecodeError:
            self.fail("not UTF-8 text")
        text = "".join(decoded)
        self._window += text
        return bool(text)


def _reject_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


SOURCE = "corebound, Chrome trace"
_STEP = ("step", 0)
_US = 1000


def matches(event: Event) -> bool:
    """Whether an event is a step in corebound's own format."""
    return (event.get("name"), event.get("tid")) == _STEP and set(event) == {
        "ph", "name", "pid", "tid", "ts", "dur"
    }  # fmt: skip


def read(events: Iterable[Event]) -> Timeline:
    """Read the operators of each step.

    Raises:
        Unreadable: A time is invalid, or no operator ran.
    """
    names = Names()
    marks: list[tuple[int, int]] = []

    def spans() -> Iterable[Span]:
        for event in events:
            begin_ns = nanoseconds(event.get("ts"), _US)
            end_ns = begin_ns + max(0, nanoseconds(event.get("dur", 0), _US))
            if matches(event):
                marks.append((begin_ns, end_ns))
                continue
            thread = event.get("tid")
            yield Span(
                type=names.of(str(event.get("name", ""))),
                thread=thread if isinstance(thread, int) else 0,
                begin_ns=begin_ns,
                end_ns=end_ns,
            )

    collected = collect_spans(spans())
    return Timeline(source=SOURCE, spans=collected, marks=tuple(sorted(marks)))
