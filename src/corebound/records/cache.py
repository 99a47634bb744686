"""Cache computed values beside the records; safe to delete, and used only if the hashes match.

A cache file starts with the hash of its contents. The contents start with the version: a hash of
the code that made them, and of those inputs that the value does not name itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from corebound.records import atomic_write, codec

T = TypeVar("T")
_DIGEST_BYTES = 16
_hasher = partial(hashlib.blake2b, digest_size=_DIGEST_BYTES)


def digest(*parts: bytes | memoryview) -> str:
    """A hash of these bytes, as text."""
    hasher = _hasher()
    for part in parts:
        hasher.update(len(part).to_bytes(8, "little"))
        hasher.update(part)
    return hasher.hexdigest()


def file_digest(file: Path) -> str:
    """A hash of a file's contents, for files of any size.

    Raises:
        OSError: The file cannot be read.
    """
    status = file.stat()
    return _file_digest(file, (status.st_ino, status.st_size, status.st_mtime_ns))


# An import asks three times for that of the history, which it replaces at most once.
@lru_cache(1)
def _file_digest(file: Path, _version: tuple[int, int, int]) -> str:
    with atomic_write.opened(file) as stream:
        return hashlib.file_digest(stream, _hasher).hexdigest()


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


class CacheFile(Generic[T]):
    """A value that a command computed from records, for the next command.

    It is a file in the folder `cache` of the records. A file that is damaged or of another version
    is ignored, and one that cannot be written is computed again. Processes replace it as a whole.
    """

    def __init__(self, kind: type[T], records: Path, name: str, *, version: str) -> None:
        """Name the file; `version` is a hash of everything else that determines the value."""
        self._kind = kind
        self._file = records / "cache" / name
        self._version = version

    def load(self) -> T | None:
        """The value; None if there is no valid one."""
        try:
            stored = _stored(memoryview(atomic_write.read(self._file)), self._version)
            return None if stored is None else _decode(stored, self._kind)
        except (OSError, msgspec.DecodeError):
            return None

    def keep(self, value: T) -> None:
        """Replace the value."""
        # MessagePack has no integers of more than 64 bits, but a scenario may.
        with contextlib.suppress(OSError, OverflowError):
            atomic_write.put(self._file, _encode(value, self._version))

    def pin(self) -> Pinned[T] | None:
        """The value as it is now, which is read on use; None if there is no valid one."""
        try:
            with atomic_write.opened(self._file) as stream:
                data = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
            is_valid = _stored(memoryview(data), self._version) is not None
        except (OSError, ValueError, msgspec.DecodeError):  # an empty file has no map
            return None
        return Pinned(self._kind, data) if is_valid else None

    def keep_pinned(self, value: T) -> Pinned[T]:
        """Replace the value and pin it; what cannot be written stays in memory, encoded."""
        kept = _encode(value, self._version)
        with contextlib.suppress(OSError):
            atomic_write.put(self._file, kept)
        pinned = self.pin()
        # Another process may have replaced the file already.
        if pinned is not None and pinned.digest == kept[:_DIGEST_BYTES]:
            return pinned
        return Pinned(self._kind, kept)


class Pinned(Generic[T]):
    """A cached value that is decoded on each use, and stays as it is now.

    Another process may replace the file meanwhile: what is read is the mapped old one.
    """

    def __init__(self, kind: type[T], data: mmap.mmap | bytes) -> None:
        """Take the whole content of a valid cache file."""
        self._kind = kind
        self._data = data

    @property
    def digest(self) -> bytes:
        """The hash of the content."""
        return self._data[:_DIGEST_BYTES]

    def value(self) -> T:
        """Decode the value."""
        _, stored = msgspec.msgpack.decode(
            memoryview(self._data)[_DIGEST_BYTES:], type=tuple[str, msgspec.Raw]
        )
        value = _decode(stored, self._kind)
        # The pages of a thousand mapped files would count as memory of this process.
        if isinstance(self._data, mmap.mmap):
            self._data.madvise(mmap.MADV_DONTNEED)
        return value


def _encode(value: Any, version: str) -> bytes:
    body = msgspec.msgpack.encode((version, value), enc_hook=codec.encode_points)
    return bytes.fromhex(digest(body)) + body


def _decode(stored: msgspec.Raw, kind: type[T]) -> T:
    return msgspec.msgpack.decode(stored, type=kind, dec_hook=codec.decode_points)


def _stored(data: memoryview, version: str) -> msgspec.Raw | None:
    """The encoded value; None if it is damaged or of another version."""
    head, body = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    if bytes.fromhex(digest(body)) != bytes(head):
        return None
    stored_version, stored = msgspec.msgpack.decode(body, type=tuple[str, msgspec.Raw])
    return stored if stored_version == version else None
