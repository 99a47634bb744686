"""LightGBM adapter: sets the seed and the thread count, counts threads, reports versions."""

from __future__ import annotations

import random
from typing import Any

import lightgbm
import numpy as np
from threadpoolctl import ThreadpoolController

from corebound.worker.native_threads import PoolCounter

# Created when this module is imported, which is before anything computes.
_POOL = PoolCounter()


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed NumPy's generators, and size the OpenMP pool, which models use by default.

    LightGBM has no global seed or thread count; a model takes its own as parameters.
    """
    del inter_op
    random.seed(seed)
    np.random.seed(seed)
    if intra_op is not None:
        ThreadpoolController().select(user_api="openmp").limit(limits=intra_op)


def describe() -> dict[str, Any]:
    """The version in use, and the number of threads that LightGBM has really started."""
    return {
        "threads_used": _POOL.size,
        "versions": {"lightgbm": lightgbm.__version__, "numpy": np.__version__},
    }
