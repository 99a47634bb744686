"""CUDA in PyTorch: whether it is there, and steps that end when the GPUs are done."""

from __future__ import annotations

import torch

from corebound.worker.workload import WorkloadError
from corebound.worker.workloads.training_pytorch import Training


def require(gpus: int) -> None:
    """See that PyTorch can compute on so many GPUs.

    Raises:
        WorkloadError: its build has no CUDA, or it finds fewer.
    """
    if not torch.backends.cuda.is_built():
        raise WorkloadError(
            what=f"torch {torch.__version__} was built without CUDA.",
            mend="Make an environment of a build with CUDA, and name it in the scenario:"
            " environments/pytorch-cuda.txt.",
        )
    # An old driver gives no GPU, too.
    found = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if found < gpus:
        raise WorkloadError(
            what=f"torch {torch.__version__} finds {found} GPUs, and {gpus} are asked for.",
            mend="Check that the driver is new enough for this build: nvidia-smi shows it.",
        )


class Synchronised:
    """A training step on GPUs 0, 1, …: its time is the work's, not that of asking for it."""

    def __init__(self, made: Training, gpus: int) -> None:
        self._made = made
        self._gpus = gpus
        self.work = made.work
        self.check = made.check

    def step(self) -> torch.Tensor:
        """Train once, and wait until every GPU has done its part."""
        loss = self._made.step()
        for gpu in range(self._gpus):
            torch.cuda.synchronize(gpu)
        return loss
