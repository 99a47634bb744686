"""Records as lines: typed JSON, one record a line, read back whole or refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from corebound.model.record import PROFILE_SCHEMA, SCHEMA, ImportedProfile, Launch, Run
from corebound.model.series import SERIES_SCHEMA, Series
from corebound.store.columns import Columns, packed, unpacked


class UnreadableError(ValueError):
    """A line that is no record, or one of a newer corebound."""


class _Line(msgspec.Struct, frozen=True):
    kind: Literal["run", "launch"]
    record: msgspec.Raw


class _Kept1(msgspec.Struct, frozen=True):
    """Series as they were kept first: every point by itself."""

    series: tuple[Series, ...]


class _Version(msgspec.Struct, frozen=True):
    schema: int


_encoder = msgspec.json.Encoder()
_line = msgspec.json.Decoder(_Line)
_version = msgspec.json.Decoder(_Version)
_run = msgspec.json.Decoder(Run)
_launch = msgspec.json.Decoder(Launch)
_profile = msgspec.json.Decoder(ImportedProfile)
_series_1 = msgspec.json.Decoder(_Kept1)
_series = msgspec.json.Decoder(Columns)


def encode(record: Run | Launch) -> bytes:
    """Write a record as one line, its newline included."""
    kind = "run" if isinstance(record, Run) else "launch"
    return _encoder.encode({"kind": kind, "record": record}) + b"\n"


def decode_run(line: bytes) -> Run:
    """Read the first line of a file back.

    Raises:
        UnreadableError: it is no run, damaged, or of a newer corebound.
    """
    try:
        raw = _record_of(line, "run")
        schema = _version.decode(raw).schema
        if schema <= SCHEMA:
            return _run.decode(raw)
    except (msgspec.DecodeError, ValueError) as error:
        raise UnreadableError(str(error)) from None
    raise UnreadableError(
        f"it was written by a newer corebound (schema {schema}, this one knows {SCHEMA})"
    )


def decode_launch(line: bytes) -> Launch:
    """Read any other line back.

    Raises:
        UnreadableError: it is no launch, or damaged.
    """
    try:
        return _launch.decode(_record_of(line, "launch"))
    except (msgspec.DecodeError, ValueError) as error:
        raise UnreadableError(str(error)) from None


def encode_profile(profile: ImportedProfile) -> bytes:
    """Write an imported profile as the whole of its file."""
    return _encoder.encode(profile) + b"\n"


def decode_profile(data: bytes) -> ImportedProfile:
    """Read an imported profile back.

    Raises:
        UnreadableError: it is none, damaged, or of a newer corebound.
    """
    try:
        schema = _version.decode(data).schema
        if schema <= PROFILE_SCHEMA:
            return _profile.decode(data)
    except (msgspec.DecodeError, ValueError) as error:
        raise UnreadableError(str(error)) from None
    raise UnreadableError(
        f"it was written by a newer corebound (schema {schema}, this one knows {PROFILE_SCHEMA})"
    )


def encode_series(series: Sequence[Series]) -> bytes:
    """Write series as the whole of their file."""
    return _encoder.encode(packed(series)) + b"\n"


def decode_series(data: bytes) -> tuple[Series, ...]:
    """Read series back.

    Raises:
        UnreadableError: they are none, damaged, or of a newer corebound.
    """
    try:
        schema = _version.decode(data).schema
        if schema == 1:
            return _series_1.decode(data).series
        if schema <= SERIES_SCHEMA:
            return unpacked(_series.decode(data))
    except (msgspec.DecodeError, ValueError) as error:
        raise UnreadableError(str(error)) from None
    raise UnreadableError(
        f"it was written by a newer corebound (schema {schema}, this one knows {SERIES_SCHEMA})"
    )


def _record_of(line: bytes, kind: str) -> msgspec.Raw:
    found = _line.decode(line)
    if found.kind != kind:
        raise UnreadableError(f"a {kind} was expected, this is a {found.kind}")
    return found.record


def canonical(document: Any) -> bytes:
    """JSON in one spelling only, sorted and compact: what hashes are taken of."""
    return msgspec.json.Encoder(order="sorted").encode(document)
