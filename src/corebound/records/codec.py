"""Encode and decode records as typed JSON, one record per line; invalid lines are rejected."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeVar

import msgspec

from corebound.errors import encodable
from corebound.records import validate
from corebound.records.history import HistoryPoint, HistoryPoints
from corebound.records.launch_record import Launch
from corebound.records.run_record import SCHEMA, Run


def encode_points(value: Any) -> list[HistoryPoint]:
    """Convert points to a list that msgspec can write.

    Raises:
        TypeError: The value is not points; msgspec expects this error.
    """
    if isinstance(value, HistoryPoints):
        return [*value]
    raise TypeError(f"a {type(value).__name__} cannot be stored in a file")


def decode_points(kind: type, value: Any) -> HistoryPoints:
    """Convert decoded values back to points.

    Raises:
        TypeError: Another type is requested; msgspec expects this error.
        msgspec.ValidationError: The values are not valid points.
    """
    if kind is HistoryPoints:
        return HistoryPoints.of(msgspec.convert(value, list[HistoryPoint]))
    raise TypeError(f"a {kind.__name__} cannot be stored in a file")


T = TypeVar("T")


class UnreadableError(ValueError):
    """A line that is not a valid record, or was written by a newer corebound."""


class _Line(msgspec.Struct, frozen=True):
    kind: Literal["run", "launch"]
    record: msgspec.Raw


class _Version(msgspec.Struct, frozen=True):
    schema: int


# The exceptions of a decoder; the last is for values nested some thousand levels deep.
_DECODE_ERRORS = (msgspec.DecodeError, ValueError, IndexError, RecursionError)
# The former word for `inconclusive`. Quotes inside of a text are escaped, so this is never one.
_RENAMED = re.compile(rb'("(?:verdict|answer)":")undecided(?=")')
_encoder = msgspec.json.Encoder()
_line = msgspec.json.Decoder(_Line)
_version = msgspec.json.Decoder(_Version)
_run = msgspec.json.Decoder(Run)
_launch = msgspec.json.Decoder(Launch)


def encode(record: Run | Launch) -> bytes:
    """Encode a record as one line, including its newline."""
    kind = "run" if isinstance(record, Run) else "launch"
    line = {"kind": kind, "record": record}
    try:
        return _encoder.encode(line) + b"\n"
    except UnicodeEncodeError:
        # A path from the user may contain bytes that are not valid UTF-8.
        return _encoder.encode(_encodable(msgspec.to_builtins(line))) + b"\n"


def decode_run(line: bytes) -> Run:
    """Decode the first line of a file.

    Raises:
        UnreadableError: It is not a run, damaged, inconsistent, or from a newer corebound.
    """
    record = _record_of(line, "run")
    return check_schema(record, SCHEMA, lambda _: _checked(_run.decode(record), validate.run))


def decode_launch(line: bytes) -> Launch:
    """Decode any other line.

    Raises:
        UnreadableError: It is not a launch, damaged, or inconsistent.
    """
    try:
        return _checked(_launch.decode(_record_of(line, "launch")), validate.launch)
    except _DECODE_ERRORS as error:
        raise UnreadableError(str(error)) from None


def encode_document(document: Any) -> bytes:
    """Encode a document as the whole content of its file."""
    return _encoder.encode(document) + b"\n"


def decoder(
    kind: type[T], newest: int, check: Callable[[T], None]
) -> Callable[[Iterable[bytes]], T]:
    """Create a decoder for documents with a `schema`.

    Args:
        newest: The newest schema that this version supports.
        check: Raises ValueError if a document is inconsistent.

    Returns:
        A function of a document's lines. It raises `UnreadableError` if they are not such a
        document, damaged, or from a newer corebound.
    """
    document = msgspec.json.Decoder(kind)

    def read(lines: Iterable[bytes]) -> T:
        data = _RENAMED.sub(rb"\1inconclusive", b"".join(lines))
        return check_schema(data, newest, lambda _: _checked(document.decode(data), check))

    return read


def check_schema(head: bytes | msgspec.Raw, newest: int, read: Callable[[int], T]) -> T:
    """Check the schema of a document, then decode it.

    Args:
        head: The part that has the `schema`.
        newest: The newest schema that this version supports.
        read: Decodes a document of the schema given.

    Raises:
        UnreadableError: It is from a newer corebound, or not what `read` expects.
    """
    try:
        schema = _version.decode(head).schema
        if schema <= newest:
            return read(schema)
    except _DECODE_ERRORS as error:
        raise UnreadableError(str(error)) from None
    raise UnreadableError(
        f"it was written by a newer corebound (schema {schema}, this one knows {newest})"
    )


def _encodable(value: Any) -> Any:
    if isinstance(value, dict):
        return {_encodable(key): _encodable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_encodable, value)]
    return encodable(value) if isinstance(value, str) else value


def _checked(record: T, check: Callable[[T], None]) -> T:
    check(record)
    return record


def _record_of(line: bytes, kind: str) -> msgspec.Raw:
    try:
        decoded = _line.decode(line)
    except _DECODE_ERRORS as error:
        raise UnreadableError(str(error)) from None
    if decoded.kind != kind:
        raise UnreadableError(f"a {kind} was expected, this is a {decoded.kind}")
    return decoded.record


def canonical(document: Any) -> bytes:
    """Canonical JSON, sorted and compact: the input of hashes."""
    return msgspec.json.Encoder(order="sorted").encode(document)
