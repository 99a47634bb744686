"""A matrix product of NumPy arrays, computed by a choice of BLAS libraries.

NumPy's wheels contain OpenBLAS. MKL is loaded in addition, from the package `mkl`,
and called through the C interface that every BLAS has.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from corebound.worker.workload import WorkloadError
from corebound.worker.workloads.gemm_numpy import Product

Multiply = Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], object]

# CblasRowMajor and CblasNoTrans, of cblas.h.
ROW_MAJOR = 101
NOT_TRANSPOSED = 111

# For each type: the function of cblas.h, and its scalars.
FUNCTIONS: dict[str, tuple[str, Any]] = {
    "float32": ("cblas_sgemm", ctypes.c_float),
    "float64": ("cblas_dgemm", ctypes.c_double),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BlasProduct:
    """`left @ right` by one function.

    Attributes:
        product: The arrays, and the check of the result.
        multiply: Given `left`, `right` and where the result goes.
        blas: The library that holds it, with its version, as it is recorded.
    """

    product: Product
    multiply: Multiply = field(repr=False)
    blas: str

    def step(self) -> NDArray[Any]:
        """Multiply once: 2·size³ floating-point operations."""
        arrays = self.product
        self.multiply(arrays.left, arrays.right, arrays.out)
        return arrays.out

    def work(self) -> dict[str, float]:
        """What a step does, as the arrays say it."""
        return self.product.work()

    def check(self, result: NDArray[Any]) -> None:
        """Three rows against the same product in float64.

        Raises:
            WorkloadError: they differ by more than rounding.
        """
        self.product.check(result)


def product(*, size: int = 1024, dtype: str = "float32", blas: str = "openblas") -> BlasProduct:
    """Set up one size×size product of standard normal numbers.

    Args:
        size: Rows and columns.
        dtype: Of the numbers.
        blas: `openblas` multiplies by NumPy itself, `mkl` by MKL.

    Raises:
        WorkloadError: the environment lacks that BLAS.
    """
    numbers = np.random.default_rng(np.random.randint(2**31))
    left, right = (numbers.standard_normal((size, size)).astype(dtype) for _ in range(2))
    arrays = Product(left=left, right=right, out=np.zeros((size, size), dtype=dtype))
    multiply = _by_numpy if blas == "openblas" else _by_mkl(size, dtype)
    return BlasProduct(product=arrays, multiply=multiply, blas=_version(blas))


def _by_numpy(left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]) -> object:
    return np.matmul(left, right, out=out)


def _by_mkl(size: int, dtype: str) -> Multiply:
    name, scalar = FUNCTIONS[dtype]
    function = getattr(_mkl(), name)
    function.restype = None
    number, pointer = ctypes.c_int, ctypes.c_void_p
    matrix = (pointer, number)
    function.argtypes = (*6 * (number,), scalar, *matrix, *matrix, scalar, *matrix)

    def multiply(left: NDArray[Any], right: NDArray[Any], out: NDArray[Any]) -> None:
        shape = (ROW_MAJOR, NOT_TRANSPOSED, NOT_TRANSPOSED, size, size, size)
        a, b, c = ((array.ctypes.data, size) for array in (left, right, out))
        function(*shape, 1.0, *a, *b, 0.0, *c)

    return multiply


def _mkl() -> ctypes.CDLL:
    """MKL's single library, which the package puts into the environment's `lib`."""
    libraries = sorted((Path(sys.prefix) / "lib").glob("libmkl_rt.so.*"))
    if not libraries:
        raise WorkloadError(
            what="this environment has no MKL.",
            fix="Use the environment numpy-mkl, or add mkl==VERSION to the requirements file.",
        )
    return ctypes.CDLL(str(libraries[-1]))


def _version(blas: str) -> str:
    """Name and version of the library, as it says itself.

    Raises:
        WorkloadError: it is not loaded: NumPy was built with another.
    """
    for pool in threadpool_info():
        if pool["internal_api"] == blas:
            return f"{'MKL' if blas == 'mkl' else 'OpenBLAS'} {pool['version']}"
    raise WorkloadError(
        what=f"NumPy does not use {blas} here.",
        fix="Install NumPy from its wheels, which carry OpenBLAS.",
    )
