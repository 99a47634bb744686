"""A workload of one's own: what `workload: example_function:setup` names.

The function is called once in each launch with the scenario's `parameters` and
returns what is to be timed: a callable, or, as here, an object with `step`.
`check` and `teardown` may be left out.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The SHA-256 of rows written as JSON."""

    rows: list[dict[str, float]]

    def step(self) -> str:
        """Write and hash the rows once; only this is timed."""
        return hashlib.sha256(json.dumps(self.rows).encode()).hexdigest()

    def check(self, result: str) -> None:
        """Judge the first result before any timing counts; raise if it is wrong."""
        digest = hashlib.sha256()
        for piece in json.JSONEncoder().iterencode(self.rows):
            digest.update(piece.encode())
        if result != digest.hexdigest():
            raise ValueError("the digest is not that of the rows")

    def teardown(self) -> None:
        """Release what set-up took, once the last step is through."""
        self.rows.clear()


def setup(*, rows: int) -> Digest:
    """Make so many rows of two numbers each; random, but alike in every launch."""
    numbers = random.Random(rows)  # noqa: S311  # data to hash, no secret
    return Digest(
        rows=[{"price": numbers.random(), "weight": numbers.gauss(0, 1)} for _ in range(rows)]
    )
