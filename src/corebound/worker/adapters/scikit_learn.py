"""scikit-learn adapter: sets the seed and thread counts, counts threads, reports versions.

Its models compute in parallel in one of three ways: forests with joblib's threads, histogram
gradient boosting and others with OpenMP, and linear models within the BLAS.
"""

from __future__ import annotations

import random
from typing import Any

import joblib
import numpy as np
import sklearn
from joblib.parallel import FallbackToBackend, ThreadingBackend, register_parallel_backend
from sklearn import ensemble
from threadpoolctl import ThreadpoolController

from corebound.worker.native_threads import PoolCounter

# Workloads import `ensemble` from here, so that its libraries are loaded before the count begins.
__all__ = ["describe", "ensemble", "prepare"]

_POOL = PoolCounter()
_BACKEND = "corebound-threading"


class CountingThreads(ThreadingBackend):  # type: ignore[misc]  # joblib is untyped
    """joblib's threads, with a note of how many run at the same time.

    They end with each call, so that they cannot be counted afterwards.

    Attributes:
        most: The largest number so far; None if nothing ran in parallel through joblib.
    """

    most: int | None = None

    def configure(self, *args: Any, **keywords: Any) -> int:
        """Size the pool of one parallel call."""
        try:
            size = int(super().configure(*args, **keywords))
        except FallbackToBackend:  # one thread: joblib starts none
            self._note(1)
            raise
        self._note(size)
        return size

    @classmethod
    def _note(cls, size: int) -> None:
        CountingThreads.most = max(size, CountingThreads.most or 0)


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed NumPy's generators, and set the threads of OpenMP, the BLAS and joblib if requested.

    The last is the `n_jobs` of every model that names none itself.
    """
    del inter_op
    random.seed(seed)
    np.random.seed(seed)
    register_parallel_backend(_BACKEND, CountingThreads)
    joblib.parallel_config(_BACKEND, n_jobs=intra_op)
    if intra_op is not None:
        ThreadpoolController().limit(limits=intra_op)


def threads_set() -> int | None:
    """OpenMP's limit, which a function may have lowered; None without OpenMP."""
    pools = ThreadpoolController().select(user_api="openmp").info()
    return min((pool["num_threads"] for pool in pools), default=None)


def describe() -> dict[str, Any]:
    """The versions in use, the BLAS, and how many threads have really run.

    None if nothing ran through joblib, and OpenMP started no thread: the model may compute in
    the BLAS, whose threads exist whether it uses them or not.
    """
    openmp = _POOL.size
    pools = ThreadpoolController().select(user_api="blas").info()
    return {
        "threads_used": CountingThreads.most or (openmp if openmp > 1 else None),
        "versions": {"scikit-learn": sklearn.__version__, "numpy": np.__version__},
        "blas": ", ".join(
            sorted(
                {
                    f"{pool['internal_api']} {pool['version']}".replace("openblas", "OpenBLAS")
                    for pool in pools
                }
            )
        )
        or None,
    }
