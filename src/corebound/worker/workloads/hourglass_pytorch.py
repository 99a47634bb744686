"""Training of the stacked hourglass in PyTorch's eager mode, with selectable dropout."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from corebound.worker.workloads.shared import hourglass
from corebound.worker.workloads.shared.hourglass import (
    DROPPED_BYTES,
    EPSILON,
    JOINTS,
    LEARNING_RATE,
    RATE,
    RUNNING_SHARE,
    Shape,
)
from corebound.worker.workloads.shared.training_pytorch import Training, training


class CheapDropout(nn.Module):
    """Dropout from one random byte for each number, eight bytes a draw.

    torch.nn.Dropout draws a random number of its own for each. The share that
    is dropped is a multiple of 1/256, and what is kept is scaled by the true share.
    """

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Drop some of `numbers`, of any shape, and scale the others."""
        draws = torch.empty((numbers.numel() + 7) // 8, dtype=torch.int64)
        # All 64 bits: without bounds `random_` leaves the sign bit, and one byte in eight, short.
        draws.random_(-(2**63), None)
        bytes_ = draws.view(torch.uint8)[: numbers.numel()].view(numbers.shape)
        return numbers * (bytes_ >= DROPPED_BYTES) * (256 / (256 - DROPPED_BYTES))


class Network(nn.Module):
    """The network, with its layers in the order that they were made in."""

    def __init__(self, shape: Shape, dropout: str) -> None:
        super().__init__()
        self._layers = nn.ModuleList()
        self._network = hourglass.network(self, shape, dropout)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Of images batch×3×side×side make heat maps batch×stacks×joints×side/4×side/4."""
        result: torch.Tensor = self._network(images)
        return result

    def convolution(self, before: int, after: int, side: int = 1, stride: int = 1) -> nn.Module:
        """A convolution of side×side."""
        return self._add(nn.Conv2d(before, after, side, stride=stride, padding=side // 2))

    def block(self, before: int, after: int, side: int = 1, stride: int = 1) -> nn.Module:
        """A convolution, batch normalisation and a ReLU."""
        convolution = nn.Conv2d(before, after, side, stride=stride, padding=side // 2)
        norm = nn.BatchNorm2d(after, eps=EPSILON, momentum=RUNNING_SHARE)
        return self._add(nn.Sequential(convolution, norm, nn.ReLU()))

    def dropout(self, kind: str, number: int) -> nn.Module:
        """The dropout of a kind; all of them draw from one generator."""
        del number
        if kind == "plain":
            return self._add(nn.Dropout(RATE))
        return CheapDropout() if kind == "cheap" else nn.Identity()

    def halve(self, maps: torch.Tensor) -> torch.Tensor:
        """The largest of 2×2 numbers each."""
        return nn.functional.max_pool2d(maps, 2)

    def double(self, maps: torch.Tensor) -> torch.Tensor:
        """Each number four times."""
        return nn.functional.interpolate(maps, scale_factor=2)

    def stack(self, heats: list[torch.Tensor]) -> torch.Tensor:
        """Join heat maps in a dimension after the first."""
        return torch.stack(heats, dim=1)

    def _add(self, layer: nn.Module) -> nn.Module:
        self._layers.append(layer)
        return layer


def _make(shape: Shape, dropout: str) -> Training:
    return training(
        Network(shape, dropout),
        loss=nn.functional.mse_loss,
        inputs=torch.rand(shape.batch, 3, shape.image, shape.image),
        targets=torch.rand(shape.batch, shape.stacks, JOINTS, shape.side, shape.side),
        rate=LEARNING_RATE,
    )


step = partial(hourglass.step, _make)
