"""NumPy adapter: sets the seed and the BLAS's thread count, reports versions."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController


def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed NumPy's generators, and set the BLAS's pool size if requested."""
    del inter_op
    random.seed(seed)
    np.random.seed(seed)
    if intra_op is not None:
        _blas().limit(limits=intra_op)


def threads_set() -> int | None:
    """The size of the BLAS's pool, which a step may have changed; None without a BLAS."""
    return max((pool["num_threads"] for pool in _blas().info()), default=None)


def describe() -> dict[str, Any]:
    """The versions in use, the name and version of the BLAS, and the size of its pool."""
    pools = _blas().info()
    return {
        "threads_used": threads_set(),
        "versions": {"numpy": np.__version__},
        "blas": ", ".join(
            f"{pool['internal_api']} {pool['version']}".replace("openblas", "OpenBLAS")
            for pool in pools
        )
        or None,
    }
