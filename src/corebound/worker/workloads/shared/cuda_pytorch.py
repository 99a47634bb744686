"""CUDA in PyTorch: checks that GPUs are available, and times steps until the GPUs finish."""

from __future__ import annotations

import torch

from corebound.worker.workload import WorkloadError
from corebound.worker.workloads.shared.training_pytorch import Training


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


class Synchronised:
    """A training step on GPUs 0, 1, …; its time includes the work, not only its submission."""

    def __init__(self, training: Training, gpus: int) -> None:
        self._made = training
        self._gpus = gpus
        self.work = training.work
        self.check = training.check

    def step(self) -> torch.Tensor:
        """Train once, and wait until every GPU has done its part."""
        loss = self._made.step()
        for gpu in range(self._gpus):
            torch.cuda.synchronize(gpu)
        return loss
