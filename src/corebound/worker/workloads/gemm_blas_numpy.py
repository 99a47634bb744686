"""A matrix product of NumPy arrays, computed by a choice of BLAS libraries.

NumPy's wheels contain OpenBLAS. MKL is loaded in addition, from the package `mkl`,
and called through the C interface that every BLAS has.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from corebound.worker.workload import WorkloadError
from corebound.worker.workloads import gemm_numpy
from corebound.worker.workloads.gemm_numpy import Multiply, Product

# CblasRowMajor and CblasNoTrans, of cblas.h.
ROW_MAJOR = 101
NOT_TRANSPOSED = 111

# For each type: the function of cblas.h, and its scalars.
FUNCTIONS: dict[str, tuple[str, Any]] = {
    "float32": ("cblas_sgemm", ctypes.c_float),
    "float64": ("cblas_dgemm", ctypes.c_double),
}


def product(*, size: int = 1024, dtype: str = "float32", blas: str = "openblas") -> Product:
    """Set up one size×size product of standard normal numbers.

    Args:
        size: Rows and columns.
        dtype: Of the numbers.
        blas: `openblas` multiplies by NumPy itself, `mkl` by MKL.

    Raises:
        WorkloadError: the environment lacks that BLAS.
    """
    multiply = np.matmul if blas == "openblas" else _by_mkl(size, dtype)
    arrays = gemm_numpy.product(size=size, dtype=dtype)
    return Product(
        left=arrays.left,
        right=arrays.right,
        out=arrays.out,
        multiply=multiply,
        blas=_version(blas),
    )


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
    """Name and version of the library, as it says itself."""
    for pool in threadpool_info():
        if pool["internal_api"] == blas:
            return f"{'MKL' if blas == 'mkl' else 'OpenBLAS'} {pool['version']}"
    raise WorkloadError(
        what=f"NumPy does not use {blas} here.",
        fix="Install NumPy from its wheels, which carry OpenBLAS.",
    )
