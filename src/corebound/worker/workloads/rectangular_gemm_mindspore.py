"""A rows×inner by inner×columns matrix product in MindSpore."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from corebound.worker.workloads.shared.result_checks import wrong_result


class Multiply(nn.Cell):
    """The product as a graph of one operator."""

    def construct(self, left: Any, right: Any) -> Any:
        """Multiply; MindSpore compiles the source of this."""
        return ops.matmul(left, right)


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """`left @ right`."""

    multiply: Multiply
    left: ms.Tensor
    right: ms.Tensor

    def step(self) -> Any:
        """Multiply once and wait for the product."""
        return self.multiply(self.left, self.right).asnumpy()

    def work(self) -> dict[str, float]:
        """What a step does: 2·rows·inner·columns floating-point operations."""
        return {"flop": 2.0 * math.prod(self.left.shape) * self.right.shape[1]}

    def check(self, result: Any) -> None:
        """Three rows against the same product in float64.

        Raises:
            WorkloadError: they differ by more than rounding.
        """
        left, right = (matrix.asnumpy().astype(np.float64) for matrix in (self.left, self.right))
        # Sums of products of standard normal numbers are as large as √inner.
        unit = float(np.finfo(result.dtype).eps) * left.shape[1]
        expected = (left.shape[0], right.shape[1])
        if result.shape != expected or not np.allclose(result[:3], left[:3] @ right, atol=unit):
            raise wrong_result("the matrix product is wrong.", check="the build of MindSpore")


def product(
    *, rows: int = 1024, inner: int = 1024, columns: int = 1024, dtype: str = "float32"
) -> Product:
    """Set up one product of standard normal numbers, in graph mode."""
    ms.set_context(mode=ms.GRAPH_MODE)

    def normal(*shape: int) -> ms.Tensor:
        return ms.Tensor(np.random.standard_normal(shape).astype(dtype))

    return Product(multiply=Multiply(), left=normal(rows, inner), right=normal(inner, columns))
