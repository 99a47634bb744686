"""A square matrix product in PyTorch, on CPUs or on a GPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from corebound.worker.workloads.shared import cuda_pytorch
from corebound.worker.workloads.shared.result_checks import wrong_result


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """Computes `left @ right` into preallocated memory."""

    left: torch.Tensor
    right: torch.Tensor
    out: torch.Tensor

    def step(self) -> torch.Tensor:
        """Multiply once: 2·size³ floating-point operations."""
        torch.mm(self.left, self.right, out=self.out)
        if self.out.is_cuda:
            # A GPU multiplies asynchronously, so wait until it has finished.
            torch.cuda.synchronize(self.out.device)
        return self.out

    def work(self) -> dict[str, float]:
        """What a step does: 2·size³ floating-point operations."""
        return {"flop": 2.0 * len(self.left) ** 3}

    def check(self, result: torch.Tensor) -> None:
        """Three rows against the same product in float64, on the CPU.

        Raises:
            WorkloadError: they differ by more than rounding.
        """
        exact = self.left[:3].cpu().double() @ self.right.cpu().double()
        if not torch.allclose(result[:3].cpu().double(), exact, rtol=1e-3, atol=1e-2):
            raise wrong_result("the matrix product is wrong.", check="the build of torch")


def product(*, size: int = 1024, dtype: str = "float32", gpus: int = 0) -> Product:
    """Set up one size×size product of standard normal numbers.

    Args:
        size: Rows and columns.
        dtype: Of the numbers; float32 keeps its precision on a GPU, for torch does
            not use TF32 unless told to.
        gpus: 0: on the CPU; 1: on the first GPU.

    Raises:
        WorkloadError: a GPU is asked for that torch does not find.
    """
    device = cuda_pytorch.device(gpus)
    kind = getattr(torch, dtype)
    left, right = (torch.randn(size, size).to(kind).to(device) for _ in range(2))
    return Product(left=left, right=right, out=torch.empty_like(left))
