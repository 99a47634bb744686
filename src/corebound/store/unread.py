"""Launches that are read when somebody looks at them: of most runs nobody does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import overload

from corebound.model.record import Launch


class UnreadLaunches(Sequence[Launch]):
    """The launches of one run, read anew each time; whoever reads may remember the last few."""

    def __init__(self, read: Callable[[], Sequence[Launch]]) -> None:
        """Take what reads them."""
        self._read = read

    @overload
    def __getitem__(self, index: int) -> Launch: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Launch]: ...
    def __getitem__(self, index: int | slice) -> Launch | Sequence[Launch]:
        """Read them for one, or some."""
        return self._read()[index]

    def __len__(self) -> int:
        """Read them to count them."""
        return len(self._read())
