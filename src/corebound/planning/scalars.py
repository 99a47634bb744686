"""YAML 1.2 scalars: plain words to values, and those that cannot be taken."""

from __future__ import annotations

import math
import re

from corebound.planning.tree import Scalar, printable

# What JSON readers and the records' integers hold.
INTEGERS = range(-(2**63), 2**63)


class FlawError(Exception):
    """A scalar cannot be taken."""

    def __init__(self, what: str, mend: str) -> None:
        super().__init__(what)
        self.what = what
        self.mend = mend


def check_characters(text: str) -> None:
    """Refuse what no terminal, file or environment variable should be given.

    Raises:
        FlawError: `text` holds a control character or half a surrogate pair.
    """
    for character in text:
        if (character < " " and character not in "\n\t") or "\x7f" <= character < "\xa0":
            raise FlawError(
                f"this text holds the control character U+{ord(character):04X}.", "Remove it."
            )
        if "\ud800" <= character <= "\udfff":
            raise FlawError(
                f"`\\u{ord(character):04X}` is half a character.", "Write the character itself."
            )


# Source: YAML 1.2.2, section 10.3.2, the core schema.
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_BASES = {"0o": 8, "0x": 16}


def resolve(text: str) -> Scalar:
    """A plain scalar's value by YAML 1.2's core schema.

    Raises:
        FlawError: it is a number that is not finite or too large to keep.
    """
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    too_large = FlawError(
        f"`{printable(text)}` is too large a number.", "Write a smaller one, or text in quotes."
    )
    if _INTEGER.fullmatch(text):
        if len(text) > 64:
            raise too_large
        integer = int(text[2:], _BASES[text[:2]]) if text[:2] in _BASES else int(text)
        if integer not in INTEGERS:
            raise too_large
        return integer
    if _NOT_FINITE.fullmatch(text):
        raise FlawError(f"`{text}` is not a finite number.", "Write a number.")
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not math.isfinite(number):
            raise too_large
        return number
    return text
