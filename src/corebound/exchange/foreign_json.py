"""JSON that another tool wrote, read whole: what it holds, or what is wrong with it."""

from __future__ import annotations

import json
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
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"it is no whole JSON: {error}.", DAMAGED) from None
