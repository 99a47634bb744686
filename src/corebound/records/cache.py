"""Cache computed results beside their inputs; safe to delete, and used only if the hashes match.

A cache file starts with the hash of its contents. The contents start with the hash of the code
that made them.
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
    """A hash of these bytes, as text."""
    hasher = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        hasher.update(len(part).to_bytes(8, "little"))
        hasher.update(part)
    return hasher.hexdigest()


def file_digest(file: Path) -> str:
    """A hash of a file's contents, for files of any size.

    Raises:
        OSError: The file cannot be read.
    """
    with atomic_write.opened(file) as stream:
        return hashlib.file_digest(
            stream, lambda: hashlib.blake2b(digest_size=_DIGEST_BYTES)
        ).hexdigest()


def code(*parts: str | Path) -> str:
    """A hash of these parts of corebound, or of other folders: a cache is valid for one code."""
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


def load(kind: type[T], folder: Path, name: str, *, version: str) -> T | None:
    """The cached value of this name and version; None if there is no valid one."""
    try:
        data = atomic_write.read(folder / "cache" / name)
        head, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
        if bytes.fromhex(digest(body)) != head:
            return None
        stored_version, stored = msgspec.msgpack.decode(body, type=tuple[str, msgspec.Raw])
        if stored_version != version:
            return None
        return msgspec.msgpack.decode(stored, type=kind, dec_hook=codec.decode_points)
    except (OSError, msgspec.DecodeError):
        return None


def keep(value: Any, folder: Path, name: str, *, version: str) -> None:
    """Cache a value under a name; if it cannot be written, it is computed again."""
    file = folder / "cache" / name
    # MessagePack has no integers of more than 64 bits, but a scenario may.
    with contextlib.suppress(OSError, OverflowError):
        body = msgspec.msgpack.encode((version, value), enc_hook=codec.encode_points)
        atomic_write.put(file, bytes.fromhex(digest(body)) + body)
