"""A forward pass in PyTorch without gradients, and the check of its output."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from corebound.worker.workload import WorkloadError

MEND = "Timings of a wrong result mean nothing: check the build of torch."


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """One batch through a model.

    Attributes:
        name: What the model is called when its output is wrong.
        model: In evaluation mode.
        inputs: What it is called with.
        shape: Of its output.
        unit, count: What a step handles, and how many.
    """

    name: str
    model: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    shape: tuple[int, ...]
    unit: str
    count: int

    def step(self) -> torch.Tensor:
        """Run the model once."""
        with torch.inference_mode():
            result: torch.Tensor = self.model(*self.inputs)
        return result

    def work(self) -> dict[str, float]:
        """What a step does, counted in the unit it says."""
        return {self.unit: float(self.count)}

    def check(self, result: torch.Tensor) -> None:
        """Numbers of the right shape, all finite, not all the same.

        Raises:
            WorkloadError: they are not.
        """
        require_sound(result, self.shape, self.name)


def require_sound(result: torch.Tensor, shape: tuple[int, ...], name: str) -> None:
    """Refuse an output that cannot be a model's.

    Raises:
        WorkloadError: its shape is another, a number is not finite, or all are the same.
    """
    if tuple(result.shape) != shape:
        raise WorkloadError(what=f"{name} gave {tuple(result.shape)}, not {shape}.", fix=MEND)
    if not bool(torch.isfinite(result).all()):
        raise WorkloadError(what=f"{name} gave numbers that are not finite.", fix=MEND)
    if result.numel() > 1 and float(result.float().std()) == 0.0:
        raise WorkloadError(what=f"{name} gave the same number everywhere.", fix=MEND)
