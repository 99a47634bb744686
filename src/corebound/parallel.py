"""Apply a function to many items, serially or in several processes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


class Mapper(Protocol):
    """Calls a function with each item and yields the results in the items' order.

    The mapper may call the function in this process or in others. The function must therefore
    have no side effects, and its results must be picklable.
    """

    def __call__(
        self, function: Callable[[_Item], _Made], items: Sequence[_Item], /
    ) -> Iterator[_Made]:
        """Like `map` with one sequence."""


def serial_map(function: Callable[[_Item], _Made], items: Sequence[_Item], /) -> Iterator[_Made]:
    """Call the function with one item after another, in this process.

    >>> list(serial_map(abs, [-1, 2]))
    [1, 2]
    """
    return map(function, items)
