"""Read TensorFlow's `*.xplane.pb`, the profiler's raw format from which traces are made.

Source: tsl/profiler/protobuf/xplane.proto. The numbers are field numbers.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from corebound.exchange.profiles.parts import Timeline, collect_spans
from corebound.exchange.reading import Unreadable, label
from corebound.worker.operator_table import Span, type_in_tensorflow

SOURCE = "TensorFlow profiler, XPlane"
_HOST = "/host:CPU"
_LENGTH_DELIMITED = 2
_FIXED = {1: 8, 5: 4}
# Some ninety years, as in other readers.
_LONGEST_NS = 1 << 62

Value = int | memoryview
Fields = Iterator[tuple[int, Value]]


def matches(head: bytes) -> bool:
    """Whether a file begins like an XSpace, with its first plane."""
    return head[:1] == b"\x0a" and any(
        plane in head for plane in (b"/host:", b"/device:", b"Task Environment")
    )


def read(pieces: Iterable[bytes]) -> Timeline:
    """Read the operators on the host, and the iterations if they are marked.

    Raises:
        Unreadable: The data is truncated, or no operator ran.
    """
    space = memoryview(b"".join(pieces))
    marks: list[tuple[int, int]] = []
    try:
        collected = collect_spans(
            span
            for number, plane in _fields(space)
            if number == 1
            for span in _plane(_bytes(plane), marks)
        )
    except IndexError:
        raise Unreadable(
            "incomplete or damaged XSpace data.", "Copy the file or profile again."
        ) from None
    return Timeline(source=SOURCE, spans=collected, marks=tuple(sorted(marks)))


@dataclass(slots=True)
class _Plane:
    """The names that a plane's events refer to by number."""

    name: str
    lines: list[memoryview]
    types: dict[int, str | None]
    stats: dict[int, str]


def _plane(data: memoryview, marks: list[tuple[int, int]]) -> Iterator[Span]:
    plane = _read_plane(data)
    if plane.name != _HOST:
        return
    steps = {number for number, name in plane.stats.items() if name == "step_num"}
    for thread, line in enumerate(plane.lines):
        start_ns = 0
        events = []
        for number, value in _fields(line):
            if number == 3:
                start_ns = _int(value)
            elif number == 4:
                events.append(_bytes(value))
        for event in events:
            type_, begin_ns, end_ns, is_mark = _event(event, start_ns, plane, steps)
            if type_ is not None:
                yield Span(type=type_, thread=thread, begin_ns=begin_ns, end_ns=end_ns)
            elif is_mark:
                marks.append((begin_ns, end_ns))


def _read_plane(data: memoryview) -> _Plane:
    plane = _Plane(name="", lines=[], types={}, stats={})
    for number, value in _fields(data):
        if number == 2:
            plane.name = _text(value)
        elif number == 3:
            plane.lines.append(_bytes(value))
        elif number == 4:
            key, meta = _entry(value)
            fields = {field: content for field, content in _fields(meta) if field in {2, 4}}
            full, displayed = _text(fields.get(2, b"")), _text(fields.get(4, b""))
            type_ = type_in_tensorflow(displayed, full)
            plane.types[key] = None if type_ is None else label(type_)
        elif number == 5:
            key, meta = _entry(value)
            plane.stats[key] = next(
                (_text(content) for field, content in _fields(meta) if field == 2), ""
            )
    return plane


def _event(
    data: memoryview, start_ns: int, plane: _Plane, steps: set[int]
) -> tuple[str | None, int, int, bool]:
    """The type, start, end, and whether the event marks an iteration."""
    kind = offset_ps = duration_ps = 0
    is_mark = False
    for number, value in _fields(data):
        if number == 1:
            kind = _int(value)
        elif number == 2:
            offset_ps = _int(value)
        elif number == 3:
            duration_ps = _int(value)
        elif number == 4 and steps:
            is_mark |= any(
                field == 1 and _int(content) in steps for field, content in _fields(_bytes(value))
            )
    begin_ns = start_ns + offset_ps // 1000
    end_ns = begin_ns + duration_ps // 1000
    if end_ns >= _LONGEST_NS:
        raise IndexError
    return plane.types.get(kind), begin_ns, end_ns, is_mark


def _entry(value: Value) -> tuple[int, memoryview]:
    """An entry of a map whose values are messages."""
    pair = dict(_fields(_bytes(value)))
    return _int(pair.get(1, 0)), _bytes(pair.get(2, memoryview(b"")))


def _fields(data: memoryview) -> Fields:
    """Yield the number and value of each field.

    Raises:
        IndexError: The data is not a message, or is truncated.
    """
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
            continue
        if wire == _LENGTH_DELIMITED:
            length, at = _varint(data, at)
        elif wire in _FIXED:
            length = _FIXED[wire]
        else:
            raise IndexError
        if at + length > len(data):
            raise IndexError
        yield tag >> 3, data[at : at + length]
        at += length


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise IndexError


def _int(value: Value) -> int:
    if isinstance(value, int):
        return value
    raise IndexError


def _bytes(value: Value) -> memoryview:
    if isinstance(value, memoryview):
        return value
    raise IndexError


def _text(value: Value | bytes) -> str:
    if isinstance(value, int):
        raise IndexError
    return bytes(value).decode(errors="surrogateescape")
