"""Detect a profile's format from its content, because file names are unreliable."""

import codecs
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from corebound.exchange.profiles import chrome, mindspore, msprof, pytorch, tensorflow, xplane
from corebound.exchange.profiles.chrome import Event, trace_events
from corebound.exchange.profiles.csv_table import open_table
from corebound.exchange.profiles.parts import Part
from corebound.exchange.reading import Unknown, Unreadable

_FORMATS = (
    "Name a Chrome trace of PyTorch or TensorFlow, an xplane.pb, a MindSpore profile,"
    " or op_summary, op_statistic, step_trace or aicpu of msprof."
)
_READERS: tuple[tuple[Callable[[Event], bool], Callable[[Iterable[Event]], Part]], ...] = (
    (msprof.matches, msprof.read),
    (pytorch.matches, pytorch.read),
    (tensorflow.matches, tensorflow.read),
    (mindspore.matches, mindspore.read),
    (chrome.matches, chrome.read),
)
# Profilers identify themselves within their first events.
_EVENTS_LOOKED_AT = 200_000


def read(pieces: Iterable[bytes]) -> tuple[Part, ...]:
    """Read everything in a file; several parts if it covers several devices.

    Args:
        pieces: Its decompressed content, in pieces of any size.

    Raises:
        Unknown: The format is not known.
        Unreadable: The file is empty, truncated, or does not match its beginning.
    """
    rest = iter(pieces)
    head = b""
    while len(head) < 4096 and (piece := next(rest, None)) is not None:
        head += piece
    if not head.strip():
        raise Unreadable("the file is empty.", "Export the profile again, or omit it.")
    content = chain((head,), rest)
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
    if start in {b"{", b"["}:
        return (_trace(trace_events(content)),)
    if xplane.matches(head):
        return (xplane.read(content),)
    first_line = head.split(b"\n", 1)[0]
    if b"," not in first_line or b"\0" in first_line:
        raise Unknown("unknown profile format.", _FORMATS)
    return _table(content)


def _trace(events: Iterator[Event]) -> Part:
    first_events = []
    for event in events:
        first_events.append(event)
        all_events = chain(first_events, events)
        for reader_matches, read_trace in _READERS:
            if reader_matches(event):
                return read_trace(all_events)
        if len(first_events) >= _EVENTS_LOOKED_AT:
            break
    raise Unknown("a Chrome trace, but of an unknown profiler.", _FORMATS)


def _table(pieces: Iterable[bytes]) -> tuple[Part, ...]:
    table = open_table(pieces)
    if mindspore.matches_table(table):
        return (mindspore.read_types(table),)
    parts = msprof.read_table(table)
    if parts is None:
        raise Unknown("a table, but of an unknown profiler.", _FORMATS)
    return parts
