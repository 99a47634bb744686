"""Markup that corebound made, read back."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from defusedxml.ElementTree import fromstring


def parsed(text: str) -> Element:
    """The root of a whole document of XML; entities without end are refused.

    Raises:
        ParseError: it is none.
    """
    root: Element = fromstring(text)
    return root
