"""Where a process's memory is: pages by node, as numa_maps tells."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def has_nodes() -> bool:
    """Whether this host has nodes to tell apart."""
    try:
        text = Path("/sys/devices/system/node/online").read_text(encoding="ascii")
    except OSError:
        return False
    return text.strip() not in {"", "0"}


def node_bytes(processes: Iterable[int]) -> dict[int, int]:
    """Memory of processes by node; empty where the kernel does not say.

    Reading it walks every page table, which takes milliseconds and holds the process
    up: it is for moments that are not measured.
    """
    found: dict[int, int] = {}
    for pid in processes:
        try:
            text = Path(f"/proc/{pid}/numa_maps").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue  # it has ended, or the kernel was built without nodes
        for node, size in parse(text).items():
            found[node] = found.get(node, 0) + size
    return found


def parse(text: str) -> dict[int, int]:
    r"""Bytes by node of what is a process's own.

    Mapped files are left out: their pages stay where whoever read them first was.

    >>> parse("7f00 default anon=3 N0=2 N1=1 kernelpagesize_kB=4\n7f01 default file=/x N1=9\n")
    {0: 8192, 1: 4096}
    """
    found: dict[int, int] = {}
    for line in text.splitlines():
        words = line.split()
        if any(word.startswith("file=") for word in words):
            continue
        pairs = dict(word.split("=", 1) for word in words[2:] if "=" in word)
        page_kb = pairs.get("kernelpagesize_kB", "4")
        for name, count in pairs.items():
            if name[:1] == "N" and name[1:].isdecimal() and count.isdecimal():
                size = int(count) * int(page_kb) * 1024 if page_kb.isdecimal() else 0
                found[int(name[1:])] = found.get(int(name[1:]), 0) + size
    return found
