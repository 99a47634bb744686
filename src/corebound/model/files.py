"""A machine's files as they are handed to what reads them.

They come in as an argument, so everything that reads a `Tree` is pure: a live
machine, a saved directory and a test's dictionary are the same to it.
"""

from __future__ import annotations

from typing import Protocol


class Tree(Protocol):
    """Files below one root, by paths such as `sys/devices/system/cpu/online`."""

    def read(self, path: str) -> str | None:
        """The text of a file, or None where it is absent or cannot be read."""
        ...

    def names(self, path: str) -> tuple[str, ...]:
        """What a directory holds, in any order; empty where there is none."""
        ...
