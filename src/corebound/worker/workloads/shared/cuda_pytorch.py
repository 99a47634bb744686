"""CUDA in PyTorch: checks that GPUs are available."""

from __future__ import annotations

import torch

from corebound.worker.workload import WorkloadError


def require(gpus: int) -> None:
    """Check that PyTorch can compute on the requested number of GPUs.

    Raises:
        WorkloadError: PyTorch was built without CUDA, or finds fewer GPUs.
    """
    if not torch.backends.cuda.is_built():
        raise WorkloadError(
            what=f"torch {torch.__version__} was built without CUDA.",
            fix="Make an environment with a CUDA build, and name it in the scenario:"
            " environments/pytorch-cuda.txt.",
        )
    # With an old driver, too, there is no GPU.
    available = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if available < gpus:
        raise WorkloadError(
            what=f"torch {torch.__version__} finds {available} GPUs, but the cell requests {gpus}.",
            fix="Check with nvidia-smi that the driver is new enough for this build.",
        )


def device(gpus: int) -> str:
    """Where a workload computes: on the first GPU, or on the CPU with `gpus` 0.

    Raises:
        WorkloadError: As for `require`.
    """
    if gpus:
        require(gpus)
    return "cuda:0" if gpus else "cpu"
