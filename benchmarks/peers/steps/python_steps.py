"""A loop in pure Python of a few milliseconds."""

from __future__ import annotations

from collections.abc import Callable

TURNS = 40_000


def loop() -> Callable[[], int]:
    """The step."""
    return extra_work(TURNS)


def extra_work(size: int) -> Callable[[], int]:
    """`size` turns of the loop."""

    def step() -> int:
        value = 0
        for number in range(size):
            value += number & 7
        return value

    return step
