"""YAML text to a tree that knows its lines, every flaw named.

PyYAML's scanner and parser do the syntax. Its composer and resolver are not
used: they recurse without bound, expand aliases without bound, and read
YAML 1.1, where `no` is false and `1:30` is 90.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml
from msgspec.structs import replace

from corebound.errors import Fault
from corebound.planning.scalars import FlawError, check_characters, resolve
from corebound.planning.tree import MOST_DEPTH, Node, printable
from corebound.planning.yaml_words import syntax_words

# Limits far above any scenario written by hand, so that a file made to exhaust
# memory or patience is refused early. PyYAML scans some 0.1 MB a second.
MOST_BYTES = 256 * 1024
MOST_NODES = 50_000


def read(data: bytes, file: str) -> tuple[Node | None, tuple[Fault, ...]]:
    """Read one YAML document.

    Args:
        data: The file's bytes.
        file: Its name, for the faults.

    Returns:
        The tree, or None where the syntax gives none; and every flaw.
    """
    reader = _Reader(file)
    node = None
    try:
        node = reader.document(data)
    except _UnreadableError as error:
        reader.say(error.line, error.what, error.mend)
    return node, tuple(reader.faults)


class _UnreadableError(Exception):
    """Nothing after this can be read."""

    def __init__(self, line: int, what: str, mend: str) -> None:
        super().__init__(what)
        self.line = line
        self.what = what
        self.mend = mend


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._events: Iterator[yaml.Event] = iter(())
        # Each anchor's value and how many nodes it holds; None while it is being read.
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._nodes = 0
        self._line = 1
        self.faults: list[Fault] = []

    def say(self, line: int, what: str, mend: str) -> None:
        self.faults.append(Fault(file=self._file, line=line, what=what, mend=mend))

    def document(self, data: bytes) -> Node:
        self._events = yaml.parse(_decoded(data), Loader=yaml.SafeLoader)
        self._next()  # the stream's start
        if isinstance(self._next(), yaml.StreamEndEvent):
            raise _UnreadableError(1, "the file is empty.", "Begin it with `schema: 1`.")
        node = self._node(self._next(), 1)
        self._next()  # the document's end
        if not isinstance(event := self._next(), yaml.StreamEndEvent):
            line = _line(event)
            self.say(line, "a second document begins here.", "Keep one scenario in each file.")
        return node

    def _next(self) -> yaml.Event:
        try:
            event = next(self._events)
        except yaml.MarkedYAMLError as error:
            raise _UnreadableError(*syntax_words(error)) from None
        except (ValueError, OverflowError):
            # PyYAML trusts that `\U` and `%YAML` are followed by sane numbers.
            raise _UnreadableError(
                self._line,
                "a number in an escape or a directive from here on is too large.",
                "Write the character itself.",
            ) from None
        self._line = _line(event)
        return event

    def _node(self, event: yaml.Event, depth: int) -> Node:
        """The node that begins with `event`; flawed where that has been said."""
        self._count(1, event, depth)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        counted = self._nodes
        anchor: str | None = getattr(event, "anchor", None)
        if anchor is not None:
            self._anchors[anchor] = None
        if isinstance(event, yaml.MappingStartEvent):
            node = self._mapping(event, depth)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self._sequence(event, depth)
        elif isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event)
        else:
            raise TypeError(f"the parser gave {event!r} where a node begins")
        if (tag := getattr(event, "tag", None)) is not None:
            node = self._flaw(event, f"`{_tag(tag)}` is a tag.", "Write the plain value.")
        if anchor is not None:
            self._anchors[anchor] = (node, self._nodes - counted + 1)
        return node

    def _flaw(self, event: yaml.Event, what: str, mend: str) -> Node:
        self.say(_line(event), what, mend)
        return Node(value=None, line=_line(event), flawed=True)

    def _count(self, more: int, event: yaml.Event, depth: int) -> None:
        self._nodes += more
        if depth > MOST_DEPTH:
            raise _UnreadableError(
                _line(event), f"this is nested more than {MOST_DEPTH} deep.", "Write it flatter."
            )
        if self._nodes > MOST_NODES:
            raise _UnreadableError(
                _line(event),
                f"the file holds more than {MOST_NODES:,} values, aliases written out.",
                "Split it, or use fewer aliases.",
            )

    def _alias(self, event: yaml.AliasEvent) -> Node:
        anchor = event.anchor or ""
        name = printable(anchor)
        if anchor not in self._anchors:
            return self._flaw(
                event, f"`*{name}` refers to no anchor above.", f"Mark a value with `&{name}`."
            )
        known = self._anchors[anchor]
        if known is None:
            return self._flaw(event, f"`*{name}` stands within `&{name}`.", "Write the value out.")
        node, size = known
        self._count(size, event, 1)
        return replace(node, line=_line(event))

    def _sequence(self, event: yaml.SequenceStartEvent, depth: int) -> Node:
        children = []
        while not isinstance(item := self._next(), yaml.SequenceEndEvent):
            children.append(self._node(item, depth + 1))
        return Node(value=children, line=_line(event))

    def _mapping(self, event: yaml.MappingStartEvent, depth: int) -> Node:
        children: dict[str, Node] = {}
        while not isinstance(item := self._next(), yaml.MappingEndEvent):
            key, line = self._key(item, depth), _line(item)
            child = replace(self._node(self._next(), depth + 1), line=line)
            if key is None:
                continue
            if key in children:
                first = children[key].line
                what = f"`{printable(key)}` stands here and on line {first}."
                self.say(line, what, "Keep one of them.")
            else:
                children[key] = child
        return Node(value=children, line=_line(event))

    def _key(self, event: yaml.Event, depth: int) -> str | None:
        if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
            self.say(_line(event), "`<<` does not merge here.", "Write the keys out.")
            return None
        node = self._node(event, depth + 1)
        if isinstance(node.value, str):
            return node.value
        if not node.flawed:
            shown = f"the key `{printable(node.text)}`" if node.text else "a key here"
            self.say(_line(event), f"{shown} is not text.", "Write keys as plain words.")
        return None

    def _scalar(self, event: yaml.ScalarEvent) -> Node:
        text = event.value
        try:
            check_characters(text)
            value = resolve(text) if event.implicit[0] else text
        except FlawError as flaw:
            return self._flaw(event, flaw.what, flaw.mend)
        quoted = event.style in {"'", '"'}
        return Node(value=value, line=_line(event), text=text, quoted=quoted)


# What YAML refuses, and what breaks lines for PyYAML but for no editor, so that
# every line below would be misnamed.
_REFUSED = re.compile(f"{yaml.reader.Reader.NON_PRINTABLE.pattern}|[\x85\u2028\u2029]")


def _decoded(data: bytes) -> str:
    if len(data) > MOST_BYTES:
        raise _UnreadableError(
            1,
            f"the file has {len(data):,} bytes, more than a scenario may have.",
            f"Keep it under {MOST_BYTES:,}.",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _UnreadableError(line, "this is not UTF-8 text.", "Save it as UTF-8.") from None
    if found := _REFUSED.search(text):
        raise _UnreadableError(
            text[: found.start()].count("\n") + 1,
            f"the character U+{ord(found.group()):04X} may not stand in a scenario.",
            "Remove it; an editor may not show it.",
        )
    return text


def _line(event: yaml.Event) -> int:
    return 1 if event.start_mark is None else int(event.start_mark.line) + 1


def _tag(tag: str) -> str:
    return printable(tag.replace("tag:yaml.org,2002:", "!!"))
