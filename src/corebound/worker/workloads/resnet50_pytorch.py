"""Inference with ResNet-50 in PyTorch with random weights: measures only the arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from corebound.worker.adapters import pytorch
from corebound.worker.workload import WorkloadError

CLASSES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """The forward pass of one batch, without gradients."""

    model: torch.nn.Module
    images: torch.Tensor

    def step(self) -> torch.Tensor:
        """Classify the batch: images of batch×3×image×image to batch×1000 logits."""
        with torch.inference_mode():
            result: torch.Tensor = self.model(self.images)
        return result

    def check(self, result: torch.Tensor) -> None:
        """Logits of the right shape, all finite, and not the same for every class.

        Raises:
            WorkloadError: they are not.
        """
        expected = (self.images.shape[0], CLASSES)
        good = tuple(result.shape) == expected and bool(torch.isfinite(result).all())
        if not good or float(result.float().std()) == 0.0:
            raise WorkloadError(
                what=f"ResNet-50 gave {tuple(result.shape)} logits that are not {expected}, "
                "finite and varied.",
                fix="Timings of a wrong result mean nothing: check the build of torch.",
            )


def inference(*, batch: int = 1, image: int = 224, dtype: str = "float32") -> Inference:
    """Set up the study's exercise: one image of 3×224×224 unless told otherwise.

    Source: Grokking PyTorch Intel CPU performance from first principles.
    """
    models = pytorch.torchvision().models
    kind = getattr(torch, dtype)
    model = models.resnet50(weights=None).eval().to(kind)
    return Inference(model=model, images=torch.rand(batch, 3, image, image).to(kind))
