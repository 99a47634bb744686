"""MobileNetV3-Large in PyTorch with random weights: a network for phones and small servers.

5.5 million parameters, 0.43 GFLOP for one image of 3×224×224.

Source: Howard et al., Searching for MobileNetV3 (2019); torchvision's definition.
"""

from __future__ import annotations

import torch

from corebound.worker.adapters import pytorch
from corebound.worker.workloads.shared.inference_pytorch import Inference, forward_pass

CLASSES = 1000


def inference(
    *, batch: int = 1, image: int = 224, dtype: str = "float32", mode: str = "usual"
) -> Inference:
    """Set up the forward pass of batch×3×image×image random pixels to batch×1000 logits."""
    kind = getattr(torch, dtype)
    model = pytorch.torchvision().models.mobilenet_v3_large(weights=None)
    return forward_pass(
        model.eval().to(kind),
        torch.rand(batch, 3, image, image).to(kind),
        name="MobileNetV3",
        shape=(batch, CLASSES),
        unit="images",
        mode=mode,
    )
