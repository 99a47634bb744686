"""Reads files of /proc and /sys, live or saved, and parses them into values."""

import os
import re
import stat
from functools import partial
from itertools import islice
from pathlib import Path
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


# The longest of these files is /proc/cpuinfo, with about 1.5 KiB for each CPU. A larger file in
# a saved tree is not one of them.
_MOST_BYTES = 1 << 24
# The kernel refuses to read /proc/sys with a buffer of more than 4 MiB (KMALLOC_MAX_SIZE).
_CHUNK_BYTES = 1 << 16


class Files:
    """A `Tree` of real files below a root that contains `sys/`, or is itself a `/sys`."""

    def __init__(self, root: Path) -> None:
        is_sys = not (root / "sys").is_dir() and (root / "devices/system/cpu").is_dir()
        self._root = root
        self._prefix = "sys/" if is_sys else ""

    def read(self, path: str) -> str | None:
        """The text of a file, or None if it is absent or cannot be read."""
        if not path.startswith(self._prefix):
            return None
        try:
            file_path = self._root / path.removeprefix(self._prefix)
            with open(file_path, "rb", opener=_at_once) as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                chunks = iter(partial(file.read, _CHUNK_BYTES), b"")
                data = b"".join(islice(chunks, _MOST_BYTES // _CHUNK_BYTES))
                return data.decode("utf-8", errors="replace")
        except (OSError, ValueError):  # a CPU may go offline; a name may contain a NUL
            return None

    def names(self, path: str) -> tuple[str, ...]:
        """The names in a directory, in any order; empty if there is no such directory."""
        if not path.startswith(self._prefix):
            return ()
        try:
            entries = (self._root / path.removeprefix(self._prefix)).iterdir()
            return tuple(entry.name for entry in entries)
        except (OSError, ValueError):
            return ()


def _at_once(path: str, flags: int) -> int:
    # Opening a pipe of a saved tree would wait for a writer.
    return os.open(path, flags | os.O_NONBLOCK)


LIVE = Files(Path("/"))

_INTEGER = re.compile(r"-?[0-9]{1,18}")
_SIZE = re.compile(r"([0-9]{1,15})([KMG]?)")
_SIZE_SHIFT = {"": 0, "K": 10, "M": 20, "G": 30}
_HEX_GROUP = re.compile(r"[0-9a-fA-F]{1,8}")
_BRACKETED = re.compile(r"\[([^\]\s]+)\]")


def parse_cpu_mask(text: str) -> tuple[CpuId, ...]:
    """Parse the kernel's hexadecimal mask: groups of 32 bits, the highest first.

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


def parse_integer(text: str | None) -> int | None:
    """Parse an integer; None if the text is anything else.

    >>> parse_integer("60"), parse_integer("-1"), parse_integer("6 0"), parse_integer(None)
    (60, -1, None, None)
    """
    return int(text) if text is not None and _INTEGER.fullmatch(text) else None


def selected(text: str) -> str:
    r"""The value of a setting as one would write it: the value in brackets, if there is one.

    >>> selected("always [madvise] never"), selected("60\n")
    ('madvise', '60')
    """
    bracketed = _BRACKETED.findall(text)
    return bracketed[0] if len(bracketed) == 1 else text.strip()


def read_text(tree: Tree, path: str) -> str | None:
    """A file's text, trimmed; None if it is absent or empty. Some kernels append a NUL."""
    return (tree.read(path) or "").partition("\0")[0].strip() or None


def read_integer(tree: Tree, path: str) -> int | None:
    """The integer in a file, as `parse_integer` parses it."""
    return parse_integer(read_text(tree, path))


def read_size_bytes(tree: Tree, path: str) -> int | None:
    """The size in a file, such as `32K`, in bytes."""
    match = _SIZE.fullmatch(read_text(tree, path) or "")
    return int(match[1]) << _SIZE_SHIFT[match[2]] if match else None


def read_cpu_list(tree: Tree, path: str) -> frozenset[CpuId] | None:
    """The CPUs (or nodes) that a file lists, possibly none; None if it is absent or malformed."""
    text = tree.read(path)
    if text is None:
        return None
    try:
        return frozenset(parse_cpu_list(text.partition("\0")[0]))
    except ValueError:
        return None


def read_cpu_mask(tree: Tree, path: str) -> frozenset[CpuId] | None:
    """The CPUs in a mask file; None if it is absent or malformed."""
    try:
        return frozenset(parse_cpu_mask(read_text(tree, path) or ""))
    except ValueError:
        return None


def numbered_entries(tree: Tree, folder: str, prefix: str) -> tuple[int, ...]:
    """The numbers in a directory's entries `cpu0`, `cpu1`, … or `node0`, …, in order."""
    tails = (name.removeprefix(prefix) for name in tree.names(folder) if name.startswith(prefix))
    return tuple(sorted(int(tail) for tail in tails if re.fullmatch(r"0|[1-9][0-9]{0,9}", tail)))
