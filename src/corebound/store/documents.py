"""Folders of documents beside the runs, a file each: written whole, and the damaged ones named."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from corebound.errors import Fault, refusals_told
from corebound.store import codec, whole

T = TypeVar("T")


def file_in(folder: Path, content: bytes) -> Path:
    """The file of what is told apart by these bytes, whatever characters they are."""
    return folder / f"{hashlib.sha256(content).hexdigest()[:16]}.json"


def keep(lines: Iterable[bytes], file: Path, *, what: str) -> Path:
    """Keep a document in place of what its file held.

    Args:
        lines: The document, which may be one line.
        file: Where it goes; the folder is made if need be.
        what: What it is, for people: `the calibration`.

    Returns:
        The file, which appears whole or not at all.

    Raises:
        InputError: it cannot be written.
    """
    with (
        refusals_told(
            f"{what} cannot be kept",
            where=file,
            mend="Choose another folder with --records, or make this one writable.",
        ),
        whole.begun(file) as fresh,
        fresh.open("wb") as out,
    ):
        out.writelines(lines)
    return file


def read_all(
    folder: Path, decode: Callable[[Iterable[bytes]], T], *, what: str, mend: str
) -> tuple[list[T], tuple[Fault, ...]]:
    """Every document in a folder, by file, and those that cannot be read.

    Args:
        folder: Where they are; there may be none.
        decode: Told its lines, reads one, or raises `codec.UnreadableError`.
        what: What one is, for people: `this calibration`.
        mend: What to do about one that cannot be read.
    """
    found: list[T] = []
    faults: list[Fault] = []
    for file in sorted(folder.glob("*.json")):
        try:
            with whole.opened(file) as lines:
                found.append(decode(lines))
        except (OSError, codec.UnreadableError) as error:
            what_of_it = f"{what} cannot be read and was passed over: {error}."
            faults.append(Fault(file=str(file), line=None, what=what_of_it, mend=mend))
    return found, tuple(faults)
