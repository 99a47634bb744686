"""What was worked out before, beside what it is of: safe to delete, and believed only if it fits.

A file begins with the hash of what follows; that begins with the hash of the code it is of.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from corebound.records import atomic_write, codec

T = TypeVar("T")
_DIGEST_BYTES = 16


def digest(*parts: bytes) -> str:
    """A hash of these bytes, in so many letters."""
    told = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        told.update(len(part).to_bytes(8, "little"))
        told.update(part)
    return told.hexdigest()


def file_digest(file: Path) -> str:
    """A hash of what a file holds, however large it is.

    Raises:
        OSError: it cannot be read.
    """
    with atomic_write.opened(file) as told:
        return hashlib.file_digest(
            told, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)
        ).hexdigest()


def code(*parts: str | Path) -> str:
    """A hash of these parts of corebound, or of folders elsewhere: what it made is theirs alone."""
    top = Path(__file__).resolve().parents[1]
    for part in parts:
        if not (top / part).exists():
            raise ValueError(f"corebound has no part {part}")
    files = [
        file
        for part in parts
        for file in ([top / part] if (top / part).is_file() else sorted((top / part).rglob("*")))
        if file.suffix in {".py", ".html", ".xml"}
    ]
    return digest(*(file.read_bytes() for file in files))


def load(kind: type[T], beside: Path, name: str, *, version: str) -> T | None:
    """What was kept under a name by this version; None where there is nothing to be believed."""
    try:
        data = atomic_write.read(beside / "cache" / name)
        head, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if bytes.fromhex(digest(body)) != head:
            return None
        kept_version, kept = msgspec.msgpack.decode(body, type=tuple[str, msgspec.Raw])
        if kept_version != version:
            return None
        return msgspec.msgpack.decode(kept, type=kind, dec_hook=codec.typed)
    except (OSError, msgspec.DecodeError):
        return None


def keep(value: Any, beside: Path, name: str, *, version: str) -> None:
    """Keep something under a name; where nothing can be written, it is worked out again."""
    file = beside / "cache" / name
    # MessagePack has no integer of more than 64 bits, and a scenario may.
    with contextlib.suppress(OSError, OverflowError):
        body = msgspec.msgpack.encode((version, value), enc_hook=codec.plain)
        atomic_write.put(file, bytes.fromhex(digest(body)) + body)
