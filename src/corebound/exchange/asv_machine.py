"""What asv says of a machine."""

from __future__ import annotations

import math
import re

# Least size of memory in bytes; smaller ones are in KiB, as older asv told it on Linux, where
# they are not what somebody typed.
_LEAST_BYTES = 1 << 31
_LEAST_KIB = 1 << 16
_GIB = 1 << 30
# Such as 16GB, which `asv machine` asks for; nobody sells a power of ten.
_WRITTEN = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?([MGT])i?B?", re.IGNORECASE)
# Memory comes in eighths of a power of two, and the kernel leaves 19 parts of 20 at least.
_OF_AN_OCTAVE = 4
_LEFT = 0.95


def facet(name: str, text: str) -> str:
    """What a machine has, as asv tells it; its memory in one unit, for asv has changed its own.

    >>> facet("ram", "16428936"), facet("ram", "16GB"), facet("os", "Linux")
    ('16 GiB', '16 GiB', 'Linux')
    """
    size_gib = _memory_gib(text) if name == "ram" else None
    if size_gib is None:
        return text
    # As it was sold: the kernel leaves a little less, and not always as much.
    step_gib = 2.0 ** (math.frexp(size_gib)[1] - _OF_AN_OCTAVE)
    sold_gib = math.ceil(size_gib / step_gib) * step_gib
    size_gib = sold_gib if size_gib >= _LEFT * sold_gib else size_gib
    return f"{size_gib:.1f} GiB".replace(".0 ", " ")


def _memory_gib(text: str) -> float | None:
    """Memory as asv tells it, in KiB of old and in bytes since, or as its user wrote it."""
    if written := _WRITTEN.fullmatch(text):
        return float(written[1]) * 1024.0 ** ("MGT".index(written[2].upper()) - 1) or None
    try:
        told = float(text)
    except ValueError:
        return None
    if not _LEAST_KIB <= told < math.inf:
        return None
    return told / _GIB if told >= _LEAST_BYTES else told / (_GIB >> 10)
