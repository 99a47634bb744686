"""Training an image classifier in PyTorch: a small network, or ResNet-18."""

from __future__ import annotations

import torch
from torch import nn

from corebound.worker.adapters import pytorch
from corebound.worker.workloads.shared import cuda_pytorch
from corebound.worker.workloads.shared.training_pytorch import Training, training

CLASSES = 100


def classifier(name: str) -> nn.Module:
    """The small or the large network, for any image of at least 8×8 pixels.

    `small` is three convolutions, 30 thousand parameters and 5.7 MFLOP for the
    forward pass of a 3×64×64 image; `large` is ResNet-18 of 100 classes, 11.2
    million parameters and 0.30 GFLOP. A training step is three times that.
    """
    if name == "large":
        model: nn.Module = pytorch.torchvision().models.resnet18(weights=None, num_classes=CLASSES)
        return model
    layers: list[nn.Module] = []
    for before, after in ((3, 16), (16, 32), (32, 64)):
        layers += [
            nn.Conv2d(before, after, 3, stride=2, padding=1),
            nn.BatchNorm2d(after),
            nn.ReLU(),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))


def step(*, model: str = "small", batch: int = 16, image: int = 64, gpus: int = 0) -> Training:
    """Set up a step on one batch of batch×3×image×image random pixels.

    It computes on the CPU, or with `gpus: 1` on the first GPU.

    Raises:
        WorkloadError: A GPU is asked for that torch does not find.
    """
    device = cuda_pytorch.device(gpus)
    return training(
        classifier(model).to(device),
        loss=nn.functional.cross_entropy,
        inputs=torch.rand(batch, 3, image, image).to(device),
        targets=torch.randint(CLASSES, (batch,)).to(device),
    )
