"""Plain Python adapter: without a framework, it sets only the seed."""

from __future__ import annotations

import random
from typing import Any


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed the standard library's generator; there are no pools to size."""
    del intra_op, inter_op
    random.seed(seed)


def describe() -> dict[str, Any]:
    """Nothing is in use beyond the interpreter."""
    return {"versions": {}}
