"""Inference with ResNet-50 in PyTorch, with the weights that every runtime has."""

from __future__ import annotations

import torch

from corebound.worker.adapters import pytorch
from corebound.worker.workloads.shared import resnet50
from corebound.worker.workloads.shared.inference_pytorch import (
    Inference,
    forward_pass,
    load_weights,
)


def inference(
    *, batch: int = 1, image: int = 224, dtype: str = "float32", mode: str = "usual"
) -> Inference:
    """Set up the study's exercise: by default, one image of 3×224×224 pixels.

    Source: Grokking PyTorch Intel CPU performance from first principles.
    """
    kind = getattr(torch, dtype)
    # Random weights take time to draw, and are replaced.
    with torch.device("meta"):
        model = pytorch.torchvision().models.resnet50(weights=None)
    load_weights(model, resnet50.weights())
    return forward_pass(
        model.eval().to(kind),
        torch.from_numpy(resnet50.images(batch, image)).to(kind),
        name="ResNet-50",
        shape=(batch, resnet50.CLASSES),
        unit="images",
        mode=mode,
    )
