"""Read text and JSON of other tools, and explain what is wrong with invalid ones."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

# How to repair a file that used to be complete.
DAMAGED = "Copy the file again, or delete it."
# Placeholders that version control leaves instead of a file, and how to get the file.
_PLACEHOLDERS = (
    (b"version https://git-lfs", "a pointer of Git LFS", "Fetch the files: `git lfs pull`."),
    (b"/annex/objects/", "a pointer of git-annex", "Fetch the files: `git annex get`."),
    (b"<<<<<<< ", "an unfinished merge", "Finish the merge, or check out one side."),
)

# Half of a surrogate pair, which no text can hold: as a JSON escape, where its other half may
# follow, and as bytes that Python's reader accepts.
_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")

# No name in a file is this long; a longer text would fill a page.
_LONGEST_NAME = 200

# Called with the number of files read and the total.
Progress = Callable[[int, int], None]

_decoder = msgspec.json.Decoder()


class Unreadable(ValueError):
    """Content that a reader cannot read: what is wrong with it, and how to fix it."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what} {fix}")
        self.what = what
        self.fix = fix


class Unknown(Unreadable):
    """Content in an unknown format; a folder may contain such files."""


def clean(name: str) -> str:
    """Make a name from an outside file safe to store, to display in a terminal, and to read."""
    cut = name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
    # Escape sequences would control a terminal, and lone surrogates have no UTF-8 encoding.
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in cut)


def parse_json(data: bytes) -> Any:
    """Parse JSON as Python writes it, with NaN and Infinity for missing numbers.

    Raises:
        Unreadable: The data is not JSON.
    """
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    for start, what, fix in _PLACEHOLDERS:
        if data.startswith(start):
            raise Unreadable(f"it is {what}.", fix)
    try:
        content = json.loads(data)
        return _without_surrogates(content) if _LONE_SURROGATE.search(data) else content
    except (ValueError, RecursionError) as error:
        if data.lstrip()[:1].isalpha():
            raise Unreadable("not JSON.", "Write JSON with the tool, and name that file.") from None
        raise Unreadable(f"invalid JSON: {error}.", DAMAGED) from None


@contextmanager
def reporting_damage() -> Iterator[None]:
    """Report errors of reading a document that has another shape than expected.

    Raises:
        Unreadable: The block raised an error of a missing or invalid value.
    """
    try:
        yield
    except Unreadable:
        raise
    except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        raise Unreadable(f"damaged: {clean(repr(error))}.", DAMAGED) from None


def _without_surrogates(value: Any) -> Any:
    """Remove lone surrogates, which Python reads but cannot encode."""
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(each) for key, each in value.items()}
    if isinstance(value, list):
        return [*map(_without_surrogates, value)]
    return value.encode(errors="replace").decode() if isinstance(value, str) else value
