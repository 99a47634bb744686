"""XGBoost adapter: sets the seed and the thread count, counts threads, reports versions."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import xgboost

from corebound.worker.native_threads import PoolCounter

# Created when this module is imported, which is before anything computes.
_POOL = PoolCounter()


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed NumPy's generators, and set the `nthread` of everything that names none itself.

    XGBoost has no global seed; a model takes its own as a parameter.
    """
    del inter_op
    random.seed(seed)
    np.random.seed(seed)
    if intra_op is not None:
        xgboost.set_config(nthread=intra_op)


def describe() -> dict[str, Any]:
    """The version in use, and the number of threads that XGBoost has really started.

    It silently starts no more than there are CPUs, whatever was requested.
    """
    return {
        "threads_used": _POOL.size,
        "versions": {"xgboost": xgboost.__version__, "numpy": np.__version__},
    }
