"""Events of a Chrome trace, one at a time, so that a large one needs little memory.

Source: Google, "Trace Event Format": an object with `traceEvents`, or that list alone.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from corebound.exchange.reading import Unknown, Unreadable

Event = dict[str, Any]

# A single event, or value beside the events, is never so long.
_LONGEST_VALUE = 64 << 20
# What was read is let go of in pieces, not at each event.
_LET_GO = 1 << 20
_SPACE = " \t\r\n"
_TORN = "Fetch or export it again: it was cut short or damaged."


def trace_events(pieces: Iterable[bytes]) -> Iterator[Event]:
    """The events of a trace, in the order of the file; times with a point stay texts.

    A float does not hold a time of day to the nanosecond.

    Raises:
        Unknown: it is JSON, but no Chrome trace.
        Unreadable: it is torn or no JSON.
    """
    text = _Text(pieces)
    opening = text.next()
    if opening == "[":
        yield from _events(text)
    elif opening == "{":
        yield from _document(text)
    else:
        text.fail("it is no JSON")
    if text.next():
        text.fail("something follows the end of its JSON")


def _document(text: _Text) -> Iterator[Event]:
    found = False
    text.take("{")
    while text.next() != "}":
        key = text.value()
        text.take(":")
        if key == "traceEvents" and text.next() == "[":
            found = True
            yield from _events(text)
        else:
            text.value()
        if text.next() != "}":
            text.take(",")
    text.take("}")
    if not found:
        raise Unknown(
            "it is JSON, but no Chrome trace: it has no `traceEvents`.",
            "Name a trace that a profiler exported.",
        )


def _events(text: _Text) -> Iterator[Event]:
    text.take("[")
    while text.next() != "]":
        value = text.value()
        if isinstance(value, dict) and value.get("ph") is not None:
            yield value
        if text.next() != "]":
            text.take(",")
    text.take("]")


class _Text:
    """A window on the text that moves along as values are taken from it."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")()
        self._json = json.JSONDecoder(parse_float=str, parse_constant=_no_number)
        self._window = ""
        self._at = 0
        self._ended = False

    def next(self) -> str:
        """The next character that is no white space, not taken; empty at the end."""
        while True:
            while self._at < len(self._window):
                if self._window[self._at] not in _SPACE:
                    return self._window[self._at]
                self._at += 1
            if not self._more():
                return ""

    def take(self, wanted: str) -> None:
        """Take one character, which has to be this one."""
        found = self.next()
        if found != wanted:
            self.fail(f"`{wanted}` is missing where `{found}` stands" if found else "it ends early")
        self._at += 1

    def value(self) -> Any:
        """Take one JSON value."""
        self.next()
        while True:
            try:
                value, end = self._json.raw_decode(self._window, self._at)
            except (ValueError, RecursionError) as error:
                if isinstance(error, RecursionError):
                    self.fail("it is nested too deeply")
                if len(self._window) - self._at > _LONGEST_VALUE or not self._more():
                    self.fail("it ends early" if self._ended else "it is no JSON")
                continue
            # A number at the very end may go on in the next piece.
            if end == len(self._window) and self._more():
                continue
            self._at = end
            return value

    def fail(self, what: str) -> NoReturn:
        """Refuse what was read."""
        raise Unreadable(f"it is no whole trace: {what}.", _TORN) from None

    def _more(self) -> bool:
        """Read on, at least as much again as waits to be taken; False at the end."""
        if self._at >= _LET_GO:
            self._window, self._at = self._window[self._at :], 0
        wanted = max(1, len(self._window) - self._at)
        fresh = []
        try:
            while wanted > 0 and not self._ended:
                piece = next(self._pieces, None)
                self._ended = piece is None
                fresh.append(self._utf8.decode(piece or b"", final=piece is None))
                wanted -= len(fresh[-1])
        except UnicodeDecodeError:
            self.fail("it is not text in UTF-8")
        text = "".join(fresh)
        self._window += text
        return bool(text)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
