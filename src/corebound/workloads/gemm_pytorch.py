"""The same square matrix product in PyTorch."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from corebound.worker.workload import WorkloadError


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """`left @ right` into memory that is already there."""

    left: torch.Tensor
    right: torch.Tensor
    out: torch.Tensor

    def step(self) -> torch.Tensor:
        """Multiply once: 2·size³ floating-point operations."""
        return torch.mm(self.left, self.right, out=self.out)

    def work(self) -> dict[str, float]:
        """What a step does: 2·size³ floating-point operations."""
        return {"flop": 2.0 * len(self.left) ** 3}

    def check(self, result: torch.Tensor) -> None:
        """Three rows against the same product in float64.

        Raises:
            WorkloadError: they differ by more than rounding.
        """
        exact = self.left[:3].double() @ self.right.double()
        if not torch.allclose(result[:3].double(), exact, rtol=1e-3, atol=1e-2):
            raise WorkloadError(
                what="the matrix product is wrong.",
                mend="Timings of a wrong result mean nothing: check the build of torch.",
            )


def product(*, size: int = 1024, dtype: str = "float32") -> Product:
    """Set up one size×size product of standard normal numbers."""
    kind = getattr(torch, dtype)
    left, right = (torch.randn(size, size).to(kind) for _ in range(2))
    return Product(left=left, right=right, out=torch.empty(size, size, dtype=kind))
