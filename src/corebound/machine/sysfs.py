"""Read files of /proc and /sys, live or saved, and parse them into values."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from corebound.machine.topology import MOST_CPUS, CpuId, parse_cpu_list


class Tree(Protocol):
    """Files below one root, by paths such as `sys/devices/system/cpu/online`."""

    def read(self, path: str) -> str | None:
        """The text of a file, or None if it is absent or cannot be read."""
        ...

    def names(self, path: str) -> tuple[str, ...]:
        """The names in a directory, in any order; empty if there is no such directory."""
        ...


_NUMBER = re.compile(r"-?[0-9]{1,18}")
_SIZE = re.compile(r"([0-9]{1,15})([KMG]?)")
_SIZE_SHIFT = {"": 0, "K": 10, "M": 20, "G": 30}
_HEX_GROUP = re.compile(r"[0-9a-fA-F]{1,8}")


def parse_cpu_mask(text: str) -> tuple[CpuId, ...]:
    """Read the kernel's hexadecimal mask: groups of 32 bits, the highest first.

    Raises:
        ValueError: `text` is not a mask.

    >>> parse_cpu_mask("3,80000001")
    (0, 31, 32, 33)
    """
    groups = text.strip().split(",")
    if len(groups) > MOST_CPUS // 32 or not all(map(_HEX_GROUP.fullmatch, groups)):
        raise ValueError(f"`{text[:80]}` is not a mask of CPUs")
    # Only the leading group may omit its leading zeros.
    bits = int("".join(group.zfill(8) for group in groups), 16)
    return tuple(CpuId(cpu) for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def content(tree: Tree, path: str) -> str | None:
    """A file's text, trimmed, without the NUL that some kernels append."""
    text = tree.read(path)
    return None if text is None else text.partition("\0")[0].strip()


def number(tree: Tree, path: str) -> int | None:
    """The integer in a file; None if there is none, or if it is -1, the kernel's "unknown"."""
    text = content(tree, path) or ""
    if not _NUMBER.fullmatch(text):
        return None
    value = int(text)
    return value if value >= 0 else None


def size_bytes(tree: Tree, path: str) -> int | None:
    """The size in a file, such as `32K`, in bytes."""
    match = _SIZE.fullmatch(content(tree, path) or "")
    return int(match[1]) << _SIZE_SHIFT[match[2]] if match else None


def listed(tree: Tree, path: str) -> frozenset[CpuId] | None:
    """The CPUs (or nodes) that a file lists; None if it is absent or malformed."""
    text = content(tree, path)
    if text is None:
        return None
    try:
        return frozenset(parse_cpu_list(text))
    except ValueError:
        return None


def masked(tree: Tree, path: str) -> frozenset[CpuId] | None:
    """The CPUs in a mask file; None if it is absent or malformed."""
    text = content(tree, path)
    if text is None:
        return None
    try:
        return frozenset(parse_cpu_mask(text))
    except ValueError:
        return None


def numbered(tree: Tree, path: str, prefix: str) -> frozenset[int]:
    """The numbers in a directory's entries `cpu0`, `cpu1`, … or `node0`, …"""
    tails = (name.removeprefix(prefix) for name in tree.names(path) if name.startswith(prefix))
    return frozenset(
        int(tail)
        for tail in tails
        if re.fullmatch(r"0|[1-9][0-9]{0,5}", tail) and int(tail) < MOST_CPUS
    )


_INTEGER = re.compile(r"-?[0-9]{1,18}")
_BRACKETED = re.compile(r"\[([^\]\s]+)\]")
_LONGEST = 60


def text_of(tree: Tree, path: str) -> str | None:
    """A file's text, trimmed; None if it is absent or empty."""
    return (tree.read(path) or "").partition("\0")[0].strip() or None


def integer(text: str | None) -> int | None:
    """Parse an integer; None if the text is anything else.

    >>> integer("60"), integer("-1"), integer("6 0"), integer(None)
    (60, -1, None, None)
    """
    return int(text) if text is not None and _INTEGER.fullmatch(text) else None


def integer_of(tree: Tree, path: str) -> int | None:
    """The integer in a file, as `integer` parses it."""
    return integer(text_of(tree, path))


def chosen(text: str) -> str:
    r"""The value of a setting as one would write it: the value in brackets, if there is one.

    >>> chosen("always [madvise] never"), chosen("60\n")
    ('madvise', '60')
    """
    found = _BRACKETED.findall(text)
    return found[0] if len(found) == 1 else text.strip()


def cpus(tree: Tree, path: str) -> frozenset[int] | None:
    """The CPUs that a file lists; an empty file lists none."""
    text = tree.read(path)
    if text is None:
        return None
    try:
        return frozenset(parse_cpu_list(text.partition("\0")[0]))
    except ValueError:
        return None


def numbers_in_order(tree: Tree, folder: str, prefix: str) -> tuple[int, ...]:
    """The numbers in a directory's entries `cpu0`, `cpu1`, …, in order."""
    tails = (name.removeprefix(prefix) for name in tree.names(folder) if name.startswith(prefix))
    return tuple(sorted(int(tail) for tail in tails if re.fullmatch(r"0|[1-9][0-9]{0,9}", tail)))


def shown(text: str) -> str:
    r"""External text made safe for a terminal: printable, one line, limited length.

    >>> shown("a\x1b[2J b\n")
    'a?[2J b?'
    """
    printable = "".join(each if each.isprintable() else "?" for each in text[: _LONGEST + 1])
    return printable if len(printable) <= _LONGEST else printable[: _LONGEST - 1] + "…"


def alternatives(values: Iterable[str]) -> str:
    """The distinct values, in order, made safe for a terminal."""
    return ", ".join(shown(value) for value in sorted(set(values)))
