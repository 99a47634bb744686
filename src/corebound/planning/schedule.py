"""In which order cells are launched: a matter of the seed alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def order(keys: Iterable[str], *, seed: int, scenario: str, block: int) -> tuple[str, ...]:
    """Shuffle the cells of one scenario for one block.

    Every cell has its place whether it is launched this time or not, so a run
    that is continued later finds the same order again.

    Args:
        keys: The keys of all the scenario's cells.
        seed: The run's.
        scenario: Its name: every scenario is shuffled apart.
        block: The block's number, from 0.
    """

    def drawn(key: str) -> bytes:
        return hashlib.sha256(f"{seed}/{scenario}/{block}/{key}".encode()).digest()

    return tuple(sorted(keys, key=drawn))
