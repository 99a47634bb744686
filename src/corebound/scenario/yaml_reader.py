"""Parse YAML into a tree of values with line numbers, and report every syntax error."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence

import yaml
from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import Fault
from corebound.scenario.fault_wording import printable

Scalar = str | int | float | bool | None
Path = tuple[str | int, ...]

# A place in a scenario, what is wrong there, and how to fix it.
Flaw = tuple[Path, str, str]

# Far deeper than any scenario; it bounds every traversal of the tree.
MOST_DEPTH = 16


class Node(Struct, frozen=True, kw_only=True):
    """A value with its line: the line of its key if it has one; None if not from a file.

    `text` is a scalar as it was written, without its quotes. A `flawed` value was
    already reported as a fault and must not be used.
    """

    value: Scalar | dict[str, Node] | list[Node]
    line: int | None
    text: str = ""
    quoted: bool = False
    flawed: bool = False

    def child(self, part: str | int) -> Node | None:
        """The node under a key or an index, if there is one."""
        if isinstance(self.value, dict) and isinstance(part, str):
            return self.value.get(part)
        if isinstance(self.value, list) and isinstance(part, int) and part < len(self.value):
            return self.value[part]
        return None

    def at(self, path: Path) -> Node | None:
        """The node at `path`, if there is one."""
        node: Node | None = self
        for part in path:
            node = node and node.child(part)
        return node

    def nearest(self, path: Path) -> Node:
        """The node at `path`, or the deepest one on the way to it."""
        node = self
        for part in path:
            if (child := node.child(part)) is None:
                break
            node = child
        return node

    def children(self) -> tuple[tuple[str | int, Node], ...]:
        """The direct children of a mapping or a list, each with its key or index."""
        if isinstance(self.value, dict):
            return tuple(self.value.items())
        return tuple(enumerate(self.value)) if isinstance(self.value, list) else ()

    def walk(self, path: Path = ()) -> Iterator[tuple[Path, Node]]:
        """This node and all nodes below it, each with its path, in file order."""
        yield path, self
        for part, child in self.children():
            yield from child.walk((*path, part))


def as_data(node: Node) -> object:
    """The tree as dictionaries, lists and scalars."""
    if isinstance(node.value, dict):
        return {key: as_data(child) for key, child in node.value.items()}
    if isinstance(node.value, list):
        return [as_data(child) for child in node.value]
    return node.value


def as_tree(data: object) -> Node:
    """JSON data as a tree without lines."""
    if isinstance(data, Mapping):
        return Node(value={str(key): as_tree(value) for key, value in data.items()}, line=None)
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return Node(value=[as_tree(value) for value in data], line=None)
    if data is None or isinstance(data, bool):
        return Node(value=data, line=None, text={None: "", True: "true"}.get(data, "false"))
    scalar = data if isinstance(data, int | float) else str(data)
    return Node(value=scalar, line=None, text=str(data))


# The range of 64-bit integers, which JSON readers and records can hold.
INTEGERS = range(-(2**63), 2**63)


class FlawError(Exception):
    """A scalar is not acceptable."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(what)
        self.what = what
        self.fix = fix


def check_characters(text: str) -> None:
    """Reject characters that are unsafe in terminals, files or environment variables.

    Raises:
        FlawError: `text` contains a control character or half a surrogate pair.
    """
    for character in text:
        if (character < " " and character not in "\n\t") or "\x7f" <= character < "\xa0":
            raise FlawError(
                f"this text holds the control character U+{ord(character):04X}.", "Remove it."
            )
        if "\ud800" <= character <= "\udfff":
            raise FlawError(
                f"`\\u{ord(character):04X}` is half a character.", "Write the character itself."
            )


# Source: YAML 1.2.2, section 10.3.2, the core schema.
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_BASES = {"0o": 8, "0x": 16}


def resolve(text: str) -> Scalar:
    """The value of a plain scalar in YAML 1.2's core schema.

    Raises:
        FlawError: the scalar is a number that is not finite or too large to store.
    """
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INTEGER.fullmatch(text):
        if len(text) > 64:
            raise _too_large(text)
        integer = int(text[2:], _BASES[text[:2]]) if text[:2] in _BASES else int(text)
        if integer not in INTEGERS:
            raise _too_large(text)
        return integer
    if _NOT_FINITE.fullmatch(text):
        raise FlawError(f"`{text}` is not a finite number.", "Write a number.")
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not math.isfinite(number):
            raise _too_large(text)
        return number
    return text


def _too_large(number: str) -> FlawError:
    return FlawError(
        f"`{printable(number)}` is too large a number.", "Write a smaller one, or text in quotes."
    )


# A piece of PyYAML's message, then our problem and fix; and whether to show the line
# where the construct began (its context) or where the parser stopped.
_SYNTAX_ERRORS = (
    (
        "found character '\\t' that cannot start any token",
        "there is a tab where YAML allows only spaces.",
        "Indent with spaces.",
        False,
    ),
    (
        "while parsing a flow sequence",
        "a `[` that opens here is not closed properly.",
        "Close it with `]`, and put commas between the values.",
        True,
    ),
    (
        "while parsing a flow mapping",
        "a `{` that opens here is not closed properly.",
        "Close it with `}`, and put commas between the entries.",
        True,
    ),
    (
        "expected alphabetic or numeric character",
        "a `*` or `&` here begins the name of no anchor.",
        "Put the value in quotes.",
        False,
    ),
    (
        "but found ']'",
        "a `]` closes nothing here.",
        "Remove it, or open a list with `[`.",
        False,
    ),
    (
        "but found '}'",
        "a `}` closes nothing here.",
        "Remove it, or open a mapping with `{`.",
        False,
    ),
    (
        "found character",
        "a value here starts with a character that YAML reserves.",
        "Put the value in quotes.",
        False,
    ),
    (
        "mapping values are not allowed here",
        "a `:` is not allowed here.",
        "Check the indentation, and put text that contains `: ` in quotes.",
        False,
    ),
    (
        "could not find expected ':'",
        "this line has no `:` after its key.",
        "Write `key: value`.",
        True,
    ),
    (
        "while scanning a quoted scalar",
        "a quote that opens here is not closed properly.",
        "Close it, and double a backslash that is meant literally.",
        True,
    ),
    (
        "while scanning a double-quoted scalar",
        "a backslash in double quotes begins no escape here.",
        "Double it, or use single quotes.",
        False,
    ),
    (
        "expected <block end>",
        "this line does not fit the indentation above it.",
        "Indent all keys of one mapping, and all items of one list, alike.",
        False,
    ),
    (
        "expected '<document start>'",
        "there is content after the end of the document.",
        "Indent all keys alike, and keep one mapping in the file.",
        False,
    ),
)


def explain_syntax_error(error: yaml.MarkedYAMLError) -> tuple[int, str, str]:
    """The line of a syntax error, what is wrong and how to fix it."""
    message = f"{error.context or ''} {error.problem or ''}"
    for fragment, what, fix, at_context in _SYNTAX_ERRORS:
        if fragment in message:
            mark = (error.context_mark if at_context else None) or error.problem_mark
            return _line_of_mark(mark), what, fix
    problem = printable(error.problem or "invalid syntax", 120)
    return (
        _line_of_mark(error.problem_mark),
        f"this is not YAML: {problem}.",
        "Fix the syntax here.",
    )


def _line_of_mark(mark: yaml.Mark | None) -> int:
    return 1 if mark is None else int(mark.line) + 1


# Limits far above any scenario written by hand, so that a malicious file is rejected
# before it exhausts memory or time. PyYAML scans about 0.1 MB per second.
MOST_BYTES = 256 * 1024
MOST_NODES = 50_000


def read_yaml(data: bytes, file: str) -> tuple[Node | None, tuple[Fault, ...]]:
    """Read one YAML document.

    Args:
        data: The file's bytes.

    Returns:
        The tree, or None if the syntax is too broken for one; and every fault.
    """
    reader = _Reader(file)
    node = None
    try:
        node = reader.document(data)
    except _UnreadableError as error:
        reader.report(error.line, error.what, error.fix)
    return node, tuple(reader.faults)


class _UnreadableError(Exception):
    """The rest of the file cannot be read."""

    def __init__(self, line: int, what: str, fix: str) -> None:
        super().__init__(what)
        self.line = line
        self.what = what
        self.fix = fix


class _Reader:
    def __init__(self, file: str) -> None:
        self._file = file
        self._events: Iterator[yaml.Event] = iter(())
        # Each anchor's value and number of nodes; None while it is being read.
        self._anchors: dict[str, tuple[Node, int] | None] = {}
        self._nodes = 0
        self._line = 1
        self.faults: list[Fault] = []

    def report(self, line: int, what: str, fix: str) -> None:
        self.faults.append(Fault(file=self._file, line=line, what=what, fix=fix))

    def document(self, data: bytes) -> Node:
        self._events = yaml.parse(_decode(data), Loader=yaml.SafeLoader)
        self._next()  # the stream's start
        if isinstance(self._next(), yaml.StreamEndEvent):
            raise _UnreadableError(1, "the file is empty.", "Begin it with `schema: 1`.")
        node = self._node(self._next(), 1)
        self._next()  # the document's end
        if not isinstance(event := self._next(), yaml.StreamEndEvent):
            line = _line(event)
            self.report(line, "a second document begins here.", "Keep one scenario in each file.")
        return node

    def _next(self) -> yaml.Event:
        try:
            event = next(self._events)
        except yaml.MarkedYAMLError as error:
            raise _UnreadableError(*explain_syntax_error(error)) from None
        except (ValueError, OverflowError):
            # PyYAML does not check the numbers after `\U` and `%YAML`.
            raise _UnreadableError(
                self._line,
                "a number in an escape or a directive from here on is too large.",
                "Write the character itself.",
            ) from None
        self._line = _line(event)
        return event

    def _node(self, event: yaml.Event, depth: int) -> Node:
        """Read the node that begins with `event`; it is flawed if a fault was reported."""
        self._count(1, event, depth)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        nodes_before = self._nodes
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
            node = self._flaw(
                event,
                f"YAML tags such as `{_tag(tag)}` are not supported.",
                "Write the plain value.",
            )
        if anchor is not None:
            self._anchors[anchor] = (node, self._nodes - nodes_before + 1)
        return node

    def _flaw(self, event: yaml.Event, what: str, fix: str) -> Node:
        self.report(_line(event), what, fix)
        return Node(value=None, line=_line(event), flawed=True)

    def _count(self, nodes: int, event: yaml.Event, depth: int) -> None:
        self._nodes += nodes
        if depth > MOST_DEPTH:
            raise _UnreadableError(
                _line(event), f"this is nested more than {MOST_DEPTH} deep.", "Reduce the nesting."
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
        anchored = self._anchors[anchor]
        if anchored is None:
            return self._flaw(event, f"`*{name}` is used within `&{name}`.", "Write the value out.")
        node, size = anchored
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
                what = f"`{printable(key)}` appears here and on line {first}."
                self.report(line, what, "Keep one of them.")
            else:
                children[key] = child
        return Node(value=children, line=_line(event))

    def _key(self, event: yaml.Event, depth: int) -> str | None:
        if isinstance(event, yaml.ScalarEvent) and event.value == "<<" and event.implicit[0]:
            self.report(_line(event), "`<<` (merge) is not supported.", "Write the keys out.")
            return None
        node = self._node(event, depth + 1)
        if isinstance(node.value, str):
            return node.value
        if not node.flawed:
            key = f"the key `{printable(node.text)}`" if node.text else "a key here"
            self.report(_line(event), f"{key} is not text.", "Write keys as plain words.")
        return None

    def _scalar(self, event: yaml.ScalarEvent) -> Node:
        text = event.value
        try:
            check_characters(text)
            value = resolve(text) if event.implicit[0] else text
        except FlawError as flaw:
            return self._flaw(event, flaw.what, flaw.fix)
        quoted = event.style in {"'", '"'}
        return Node(value=value, line=_line(event), text=text, quoted=quoted)


# Characters that YAML forbids, and those that are line breaks for PyYAML but not for
# editors: all line numbers below them would be wrong.
_UNSAFE = re.compile(f"{yaml.reader.Reader.NON_PRINTABLE.pattern}|[\x85\u2028\u2029]")


def _decode(data: bytes) -> str:
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
    if unsafe := _UNSAFE.search(text):
        raise _UnreadableError(
            text[: unsafe.start()].count("\n") + 1,
            f"the character U+{ord(unsafe.group()):04X} is not allowed in a scenario.",
            "Remove it; an editor may not show it.",
        )
    return text


def _line(event: yaml.Event) -> int:
    return 1 if event.start_mark is None else int(event.start_mark.line) + 1


def _tag(tag: str) -> str:
    return printable(tag.replace("tag:yaml.org,2002:", "!!"))
