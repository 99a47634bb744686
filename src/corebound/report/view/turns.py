"""Taking turns: of many that belong together a page does not show all before any other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable


def turns(kinds: Iterable[Hashable]) -> list[int]:
    """For each in order its number among those of its kind: sorted by that, kinds alternate.

    >>> turns("aab")
    [1, 2, 1]
    """
    seen: Counter[Hashable] = Counter()
    found = []
    for kind in kinds:
        seen[kind] += 1
        found.append(seen[kind])
    return found
