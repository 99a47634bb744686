"""JSON that another tool wrote, read whole: what it holds, or what is wrong with it."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from corebound.exchange.reading import Unreadable

# How to mend a file that was whole once.
DAMAGED = "Fetch it again from where it was copied, or delete it."
# What version control leaves in a file's place, and how to get the file.
_PLACEHOLDERS = (
    (b"version https://git-lfs", "a pointer of Git LFS", "Fetch the files: `git lfs pull`."),
    (b"/annex/objects/", "a pointer of git-annex", "Fetch the files: `git annex get`."),
    (b"<<<<<<< ", "half of a merge", "Finish the merge, or check one side out."),
)

# Half of a character, which no text can hold: as JSON escapes it, where its other half may be
# there too, and as bytes that Python's reader takes.
_HALF = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]")

_decoder = msgspec.json.Decoder()


def document(data: bytes) -> Any:
    """JSON as Python writes it, which has NaN and Infinity where a figure is none.

    Raises:
        Unreadable: it is no JSON.
    """
    try:
        return _decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    for start, what, mend in _PLACEHOLDERS:
        if data.startswith(start):
            raise Unreadable(f"it is {what}.", mend)
    try:
        told = json.loads(data)
        return _whole(told) if _HALF.search(data) else told
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is no whole JSON: {error}.", DAMAGED) from None


def _whole(value: Any) -> Any:
    """The same without halves of characters, which Python reads and nothing can write."""
    if isinstance(value, dict):
        return {_whole(key): _whole(each) for key, each in value.items()}
    if isinstance(value, list):
        return [*map(_whole, value)]
    return value.encode(errors="replace").decode() if isinstance(value, str) else value
