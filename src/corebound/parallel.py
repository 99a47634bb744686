"""How what is the same work for many things is asked for, whoever does it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


class Mapper(Protocol):
    """Calls a function with each item, and gives what comes of each, in the items' order.

    The function must change nothing: whether it is called here or in other processes is the
    mapper's choice, and what it gives must be fit to be pickled.
    """

    def __call__(
        self, function: Callable[[_Item], _Made], items: Sequence[_Item], /
    ) -> Iterator[_Made]:
        """As `map` of one sequence."""


def serial_map(function: Callable[[_Item], _Made], items: Sequence[_Item], /) -> Iterator[_Made]:
    """One after another, in this process.

    >>> list(serial_map(abs, [-1, 2]))
    [1, 2]
    """
    return map(function, items)
