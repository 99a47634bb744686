"""Texts of `/proc` and `/sys` as values; whatever is absent or malformed is None."""

from __future__ import annotations

import re
from collections.abc import Iterable

from corebound.model.files import Tree
from corebound.model.topology import parse_cpu_list

_NUMBER = re.compile(r"-?[0-9]{1,18}")
_BRACKETED = re.compile(r"\[([^\]\s]+)\]")
_LONGEST = 60


def content(tree: Tree, path: str) -> str | None:
    """What a file says, trimmed; None where it is absent or empty."""
    return (tree.read(path) or "").partition("\0")[0].strip() or None


def integer(text: str | None) -> int | None:
    """The integer a text is.

    >>> integer("60"), integer("-1"), integer("6 0"), integer(None)
    (60, -1, None, None)
    """
    return int(text) if text is not None and _NUMBER.fullmatch(text) else None


def number(tree: Tree, path: str) -> int | None:
    """The integer a file holds."""
    return integer(content(tree, path))


def chosen(text: str) -> str:
    r"""The value of a setting as it would be written: the one in brackets where there are some.

    >>> chosen("always [madvise] never"), chosen("60\n")
    ('madvise', '60')
    """
    found = _BRACKETED.findall(text)
    return found[0] if len(found) == 1 else text.strip()


def cpus(tree: Tree, path: str) -> frozenset[int] | None:
    """The CPUs a file lists; an empty file lists none."""
    text = tree.read(path)
    if text is None:
        return None
    try:
        return frozenset(parse_cpu_list(text.partition("\0")[0]))
    except ValueError:
        return None


def numbered(tree: Tree, folder: str, prefix: str) -> tuple[int, ...]:
    """The numbers of a directory's `cpu0`, `cpu1`, …, in order."""
    tails = (name.removeprefix(prefix) for name in tree.names(folder) if name.startswith(prefix))
    return tuple(sorted(int(tail) for tail in tails if re.fullmatch(r"0|[1-9][0-9]{0,9}", tail)))


def shown(text: str) -> str:
    r"""A text from outside as a terminal may show it: printable, one line, not long.

    >>> shown("a\x1b[2J b\n")
    'a?[2J b?'
    """
    printable = "".join(each if each.isprintable() else "?" for each in text[: _LONGEST + 1])
    return printable if len(printable) <= _LONGEST else printable[: _LONGEST - 1] + "…"


def alternatives(values: Iterable[str]) -> str:
    """Different values, each once, as a terminal may show them."""
    return ", ".join(shown(value) for value in sorted(set(values)))
