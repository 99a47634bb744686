"""Records as lines: typed JSON, one record a line, read back whole or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import msgspec

from corebound.errors import encodable
from corebound.records import validate
from corebound.records.history import HistoryPoint, HistoryPoints
from corebound.records.launch_record import Launch
from corebound.records.run_record import SCHEMA, Run


def plain(value: Any) -> list[HistoryPoint]:
    """What points are written as.

    Raises:
        TypeError: it is something else, as msgspec has it of what it cannot write.
    """
    if isinstance(value, HistoryPoints):
        return [*value]
    raise TypeError(f"a {type(value).__name__} is nothing that a file has")


def typed(kind: type, value: Any) -> HistoryPoints:
    """Points again of what was read.

    Raises:
        TypeError: something else is wanted, as msgspec has it of what it cannot read.
        msgspec.ValidationError: it is no points.
    """
    if kind is HistoryPoints:
        return HistoryPoints.of(msgspec.convert(value, list[HistoryPoint]))
    raise TypeError(f"a {kind.__name__} is nothing that a file has")


T = TypeVar("T")


class UnreadableError(ValueError):
    """A line that is no record, or one of a newer corebound."""


class _Line(msgspec.Struct, frozen=True):
    kind: Literal["run", "launch"]
    record: msgspec.Raw


class _Version(msgspec.Struct, frozen=True):
    schema: int


# How a decoder refuses a line: values nested some thousand deep are the last.
_DAMAGES = (msgspec.DecodeError, ValueError, IndexError, RecursionError)
_encoder = msgspec.json.Encoder()
_line = msgspec.json.Decoder(_Line)
_version = msgspec.json.Decoder(_Version)
_run = msgspec.json.Decoder(Run)
_launch = msgspec.json.Decoder(Launch)


def encode(record: Run | Launch) -> bytes:
    """Write a record as one line, its newline included."""
    kind = "run" if isinstance(record, Run) else "launch"
    line = {"kind": kind, "record": record}
    try:
        return _encoder.encode(line) + b"\n"
    except UnicodeEncodeError:
        # A path of the user's has bytes that are no UTF-8.
        return _encoder.encode(_encodable(msgspec.to_builtins(line))) + b"\n"


def decode_run(line: bytes) -> Run:
    """Read the first line of a file back.

    Raises:
        UnreadableError: it is no run, damaged, contradicts itself, or is of a newer corebound.
    """
    record = _record_of(line, "run")
    return of_schema(record, SCHEMA, lambda _: _sound(_run.decode(record), validate.run))


def decode_launch(line: bytes) -> Launch:
    """Read any other line back.

    Raises:
        UnreadableError: it is no launch, damaged, or contradicts itself.
    """
    try:
        return _sound(_launch.decode(_record_of(line, "launch")), validate.launch)
    except _DAMAGES as error:
        raise UnreadableError(str(error)) from None


def encode_document(document: Any) -> bytes:
    """Write something as the whole of its file."""
    return _encoder.encode(document) + b"\n"


def decoder(
    kind: type[T], newest: int, check: Callable[[T], None]
) -> Callable[[Iterable[bytes]], T]:
    """What reads a document with a `schema` back.

    Args:
        kind: What it is.
        newest: The newest schema of it that this version knows.
        check: Raises ValueError where one contradicts itself.

    Returns:
        A function of its lines, which raises `UnreadableError` if they are no such thing,
        damaged, or of a newer corebound.
    """
    typed = msgspec.json.Decoder(kind)

    def read(lines: Iterable[bytes]) -> T:
        data = b"".join(lines)
        return of_schema(data, newest, lambda _: _sound(typed.decode(data), check))

    return read


def of_schema(head: bytes | msgspec.Raw, newest: int, read: Callable[[int], T]) -> T:
    """What is read, if this version knows how it was written.

    Args:
        head: What has the `schema`.
        newest: The newest that this version knows.
        read: Told the schema, reads what was written so.

    Raises:
        UnreadableError: it is of a newer corebound, or no such thing as `read` expects.
    """
    try:
        schema = _version.decode(head).schema
        if schema <= newest:
            return read(schema)
    except _DAMAGES as error:
        raise UnreadableError(str(error)) from None
    raise UnreadableError(
        f"it was written by a newer corebound (schema {schema}, this one knows {newest})"
    )


def _encodable(value: Any) -> Any:
    if isinstance(value, dict):
        return {_encodable(key): _encodable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_encodable, value)]
    return encodable(value) if isinstance(value, str) else value


def _sound(record: T, check: Callable[[T], None]) -> T:
    check(record)
    return record


def _record_of(line: bytes, kind: str) -> msgspec.Raw:
    try:
        found = _line.decode(line)
    except _DAMAGES as error:
        raise UnreadableError(str(error)) from None
    if found.kind != kind:
        raise UnreadableError(f"a {kind} was expected, this is a {found.kind}")
    return found.record


def canonical(document: Any) -> bytes:
    """JSON in one spelling only, sorted and compact: what hashes are taken of."""
    return msgspec.json.Encoder(order="sorted").encode(document)
