"""The rectangles of a drawing of CPU × time, and their areas."""

import re

from support.markup import parse_xml

_BLOCK = re.compile(r"([Mm])(\S+) ([-\d.e+]+)v([-\d.e+]+)h([-\d.e+]+)v\S+?z")


def blocks(svg: str, kind: str) -> list[tuple[float, float, float, float]]:
    """(x, y, width, height) of the rectangles of one kind, as shares of the drawing's sides."""
    _, _, wide, high = map(float, parse_xml(svg).attrib["viewBox"].split())
    found = []
    for drawn in parse_xml(svg).findall("path"):
        if drawn.get("class") != kind:
            continue
        x = y = 0.0
        for step, right, down, up, width in _BLOCK.findall(drawn.get("d") or ""):
            x, y = (x, y) if step == "m" else (0.0, 0.0)
            x, y = x + float(right), y + float(down)
            assert -0.01 <= x <= x + float(width) <= wide + 0.01
            found.append((x / wide, (y + float(up)) / high, float(width) / wide, -float(up) / high))
    return found


def area(svg: str, kind: str) -> float:
    return sum(width * height for _, _, width, height in blocks(svg, kind))
