"""A machine as nested boxes: sockets, nodes, caches, cores, CPUs.

The drawing consists of nested lists that the style sheet formats. Numbers therefore keep their size
on a phone, and a machine of 512 CPUs wraps. A screen reader would read each CPU as a list of one
within four others. It therefore gets a single image with a name, which lists how many parts of each
kind there are, which are used, and which are unavailable.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from html import escape
from typing import Literal

from msgspec import Struct

from corebound.machine.topology import cpu_list
from corebound.report.charts.alt_text import img_attributes

# The name of each kind, singular and plural; a group has none.
_KINDS = (
    ("package", "socket", "sockets"),
    ("node", "node", "nodes"),
    ("cache", "last-level cache", "last-level caches"),
    ("core", "core", "cores"),
    ("cpu", "CPU", "CPUs"),
)


class Box(Struct, frozen=True, kw_only=True):
    """A part of a machine.

    Attributes:
        kind: Its kind; the parts of a core are its CPUs.
        name: Its label.
        off: Why it cannot be used, such as `not allowed`; empty if it can.
        parts: The boxes in it.
        taken: Whether a configuration's threads may run there.
    """

    kind: Literal["package", "node", "cache", "core", "cpu", "group"]
    name: str
    off: str
    parts: tuple[Box, ...]
    taken: bool = False


def topology_html(boxes: tuple[Box, ...]) -> str:
    """Draw the outermost boxes and their contents."""
    drawn = "".join(_box(box) for box in boxes)
    return (
        f"<div{img_attributes(describe_topology(boxes))}>"
        f'<ul class="machine" aria-hidden="true">{drawn}</ul></div>'
    )


def describe_topology(boxes: tuple[Box, ...]) -> str:
    """A machine and the used part of it: `1 socket, 2 cores, 2 CPUs; used: CPUs 0-1`."""
    parts = [part for box in boxes for part in _nested(box)]
    kinds: Counter[str] = Counter(part.kind for part in parts)
    held = ", ".join(
        f"{kinds[kind]:,} {one if kinds[kind] == 1 else many}"
        for kind, one, many in _KINDS
        if kinds[kind]
    )
    cpus: dict[str, list[int]] = {}
    for part in parts:
        if part.kind == "cpu":
            for state in filter(None, (part.off, "used" if part.taken else "")):
                cpus.setdefault(state, []).append(int(part.name))
    return "; ".join([held, *(f"{state}: CPUs {cpu_list(own)}" for state, own in cpus.items())])


def _nested(box: Box) -> Iterator[Box]:
    yield box
    for part in box.parts:
        yield from _nested(part)


def _box(box: Box) -> str:
    kind = f"{box.kind}{' off' if box.off else ''}{' taken' if box.taken else ''}"
    inner = "".join(_box(part) for part in box.parts)
    held = f"<ul>{inner}</ul>" if inner else ""
    name = f"<span>{escape(box.name)}</span>" if box.name else ""
    return f'<li class="{kind}">{name}{held}</li>'
