"""Inference with ResNet-50 in PyTorch with random weights: measures only the arithmetic."""

from __future__ import annotations

import torch

from corebound.worker.adapters import pytorch
from corebound.worker.workloads.shared.inference_pytorch import Inference

CLASSES = 1000


def inference(*, batch: int = 1, image: int = 224, dtype: str = "float32") -> Inference:
    """Set up the study's exercise: by default, one image of 3×224×224 pixels.

    Source: Grokking PyTorch Intel CPU performance from first principles.
    """
    kind = getattr(torch, dtype)
    return Inference(
        name="ResNet-50",
        model=pytorch.torchvision().models.resnet50(weights=None).eval().to(kind),
        inputs=(torch.rand(batch, 3, image, image).to(kind),),
        shape=(batch, CLASSES),
    )
