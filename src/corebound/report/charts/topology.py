"""A machine as boxes in boxes: sockets, nodes, caches, cores, CPUs.

Lists within lists that the style sheet draws: so the numbers keep their size on a phone,
a machine of 512 CPUs wraps, and who does not see it hears the same nesting.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A part of a machine.

    Attributes:
        kind: What it is; a core's parts are its CPUs.
        name: What is written at it.
        off: Why it cannot be used, such as `not allowed`; empty where it can.
        parts: What it holds.
        taken: Whether a setting's threads may run there.
    """

    kind: Literal["package", "node", "cache", "core", "cpu", "group"]
    name: str
    off: str
    parts: tuple[Box, ...]
    taken: bool = False


def topology_html(boxes: tuple[Box, ...]) -> str:
    """Draw the outermost boxes and all in them."""
    return f'<ul class="machine">{"".join(_box(box) for box in boxes)}</ul>'


def _box(box: Box) -> str:
    off = f'<span class="hidden"> {escape(box.off)}</span>' if box.off else ""
    taken = '<span class="hidden"> used</span>' if box.taken else ""
    kind = f"{box.kind}{' off' if box.off else ''}{' taken' if box.taken else ''}"
    inner = "".join(_box(part) for part in box.parts)
    held = f"<ul>{inner}</ul>" if inner else ""
    name = f"<span>{escape(box.name)}{off}{taken}</span>" if box.name or off else ""
    return f'<li class="{kind}">{name}{held}</li>'
