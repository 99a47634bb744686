"""Describes what differs between two points besides the commit."""

from __future__ import annotations

import re

from corebound.records.history import Circumstances

_DIGEST = re.compile(r"[0-9a-f]{12}")


def is_digest(value: str) -> bool:
    """Whether an environment value is a hash, which has no meaning for people."""
    return _DIGEST.fullmatch(value) is not None


def differing(one: Circumstances, other: Circumstances) -> str:
    """The differences from one environment to the other; empty if they are the same.

    >>> differing((("kernel", "6.1"), ("os", "a")), (("kernel", "7.0"), ("os", "a")))
    'kernel 6.1 to 7.0'
    """
    mine, theirs = dict(one), dict(other)
    said = []
    for name in dict.fromkeys((*mine, *theirs)):
        before, after = mine.get(name, ""), theirs.get(name, "")
        if before == after:
            continue
        hashed = is_digest(before) or is_digest(after)
        said.append(
            f"another {name}" if hashed else f"{name} {before or 'none'} to {after or 'none'}"
        )
    return ", ".join(said)
