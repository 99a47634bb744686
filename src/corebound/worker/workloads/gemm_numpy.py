"""A square matrix product in NumPy, with little overhead beyond the BLAS call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebound.worker.workloads.shared.result_checks import wrong_result

Multiply = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """Computes `left @ right` into preallocated memory.

    Attributes:
        multiply: The function, of `left`, `right` and `out`.
        blas: The library that holds it, with its version; None: the one of NumPy.
    """

    left: NDArray[Any]
    right: NDArray[Any]
    out: NDArray[Any]
    multiply: Multiply = field(default=np.matmul, repr=False)
    blas: str | None = None

    def step(self) -> NDArray[Any]:
        """Multiply once: 2·size³ floating-point operations."""
        self.multiply(self.left, self.right, self.out)
        return self.out

    def work(self) -> dict[str, float]:
        """What a step does: 2·size³ floating-point operations."""
        return {"flop": 2.0 * len(self.left) ** 3}

    def check(self, result: NDArray[Any]) -> None:
        """Three rows against the same product in float64.

        Raises:
            WorkloadError: they differ by more than rounding.
        """
        exact = self.left[:3].astype(np.float64) @ self.right.astype(np.float64)
        if not np.allclose(result[:3], exact, rtol=1e-3, atol=1e-2):
            raise wrong_result("the matrix product is wrong.", check="the BLAS")


def product(*, size: int = 1024, dtype: str = "float32") -> Product:
    """Set up one size×size product of standard normal numbers."""
    numbers = np.random.default_rng(np.random.randint(2**31))
    left, right = (numbers.standard_normal((size, size)).astype(dtype) for _ in range(2))
    return Product(left=left, right=right, out=np.empty((size, size), dtype=dtype))
