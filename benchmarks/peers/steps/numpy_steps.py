"""A product of two square matrices in float32, by the threads of NumPy's BLAS."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

SIDE = 768


def matmul() -> Callable[[], NDArray[np.float32]]:
    """The step."""
    return extra_work(SIDE)


def extra_work(size: int) -> Callable[[], NDArray[np.float32]]:
    """A product of two matrices of side `size`."""
    rng = np.random.default_rng(0)
    left, right = rng.random((2, size, size), dtype=np.float32)
    return lambda: left @ right
