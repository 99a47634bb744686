"""A file's values with their lines, whatever it was read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from corebound.foreign import one_line

Scalar = str | int | float | bool | None
Path = tuple[str | int, ...]

# A place in a scenario, what is wrong there, how to mend it.
Flaw = tuple[Path, str, str]

# Far deeper than any scenario goes; it bounds every walk.
MOST_DEPTH = 16


class Node(Struct, frozen=True, kw_only=True):
    """A value with its line, which is its key's where it has one; None for no file.

    `text` is a scalar as it was written, without its quotes. A `flawed` value has
    been named as a fault already and stands for nothing.
    """

    value: Scalar | dict[str, Node] | list[Node]
    line: int | None
    text: str = ""
    quoted: bool = False
    flawed: bool = False

    def child(self, part: str | int) -> Node | None:
        """What stands under a key or an index, if anything does."""
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
        """What stands directly in a mapping or a list, with its key or index."""
        if isinstance(self.value, dict):
            return tuple(self.value.items())
        return tuple(enumerate(self.value)) if isinstance(self.value, list) else ()


def plain(node: Node) -> object:
    """The tree as dictionaries, lists and scalars."""
    if isinstance(node.value, dict):
        return {key: plain(child) for key, child in node.value.items()}
    if isinstance(node.value, list):
        return [plain(child) for child in node.value]
    return node.value


def tree(data: object) -> Node:
    """JSON data as a tree without lines."""
    if isinstance(data, Mapping):
        return Node(value={str(key): tree(value) for key, value in data.items()}, line=None)
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return Node(value=[tree(value) for value in data], line=None)
    if data is None or isinstance(data, bool):
        return Node(value=data, line=None, text={None: "", True: "true"}.get(data, "false"))
    scalar = data if isinstance(data, int | float) else str(data)
    return Node(value=scalar, line=None, text=str(data))


def printable(text: str, most: int = 40) -> str:
    """Text for a message: on one line, nothing invisible, not long."""
    shown = one_line(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"
