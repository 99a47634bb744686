"""Inference in PyTorch: eight convolutions, or ResNet-50."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from corebound.worker.adapters import pytorch

LAYERS, CHANNELS, HEIGHT = 8, 64, 56
EXTRA_HEIGHT = 8


def convolutions() -> Callable[[], torch.Tensor]:
    """Eight 3×3 convolutions of 64 channels, on one image of 56×56 pixels."""
    network = nn.Sequential(*(_convolution() for _ in range(LAYERS)))
    return _inference(network, torch.rand(1, CHANNELS, HEIGHT, HEIGHT))


def resnet50() -> Callable[[], torch.Tensor]:
    """ResNet-50 on one image of 224×224 pixels."""
    network = pytorch.torchvision().models.resnet50(weights=None)
    return _inference(network, torch.rand(1, 3, 224, 224))


def extra_work(size: int) -> Callable[[], torch.Tensor]:
    """A 3×3 convolution of 64 channels, on one image of 8×`size` pixels."""
    return _inference(_convolution(), torch.rand(1, CHANNELS, EXTRA_HEIGHT, size))


def _convolution() -> nn.Module:
    return nn.Conv2d(CHANNELS, CHANNELS, kernel_size=3, padding=1)


def _inference(network: nn.Module, image: torch.Tensor) -> Callable[[], torch.Tensor]:
    network.eval()

    def step() -> torch.Tensor:
        with torch.inference_mode():
            output: torch.Tensor = network(image)
        return output

    return step
