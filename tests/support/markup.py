"""Parsers for the XML and HTML that corebound writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from xml.etree.ElementTree import Element as XmlElement

from defusedxml.ElementTree import fromstring


def parse_xml(text: str) -> XmlElement:
    """The root of a whole document of XML; entities without end are refused.

    Raises:
        ParseError: it is none.
    """
    root: XmlElement = fromstring(text)
    return root


_VOID = frozenset({"meta", "link", "input", "br", "img", "hr", "wbr"})


@dataclass(slots=True, eq=False, repr=False)
class Element:
    """An element; `parts` are its elements and texts in order."""

    tag: str
    attributes: dict[str, str]
    parent: Element | None
    parts: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All its text, as it stands."""
        return "".join(part if isinstance(part, str) else part.text for part in self.parts)

    @property
    def classes(self) -> set[str]:
        """Its classes."""
        return set(self.attributes.get("class", "").split())

    def all(self, *tags: str) -> Iterator[Element]:
        """The elements within it of these tags, or of any, in order."""
        for part in self.parts:
            if isinstance(part, Element):
                if not tags or part.tag in tags:
                    yield part
                yield from part.all(*tags)

    def within(self, *tags: str) -> Element | None:
        """The nearest element of these tags that holds it."""
        ancestor = self.parent
        while ancestor is not None and ancestor.tag not in tags:
            ancestor = ancestor.parent
        return ancestor


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = self.at = Element("", {}, None)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        made = Element(tag, {name: value or "" for name, value in attrs}, self.at)
        self.at.parts.append(made)
        if tag not in _VOID:
            self.at = made

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.at.parts.append(Element(tag, {name: value or "" for name, value in attrs}, self.at))

    def handle_endtag(self, tag: str) -> None:
        if self.at.tag != tag or self.at.parent is None:
            raise ValueError(f"</{tag}> closes no <{self.at.tag}>")
        self.at = self.at.parent

    def handle_data(self, data: str) -> None:
        self.at.parts.append(data)


def parse_html(page: str) -> Element:
    """The root of a page's elements.

    Raises:
        ValueError: an element is closed that is not open.
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    if reader.at is not reader.root:
        raise ValueError(f"<{reader.at.tag}> is not closed")
    return reader.root


def by_id(root: Element, name: str) -> Element | None:
    """The element with this id."""
    return next((element for element in root.all() if element.attributes.get("id") == name), None)
