"""Training of the stacked hourglass in PyTorch's eager mode, with selectable dropout."""

from __future__ import annotations

import torch
from torch import nn

from corebound.worker.workloads.shared.hourglass import (
    DEPTH,
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


class Residual(nn.Module):
    """The bottleneck of three convolutions, added to what came in."""

    def __init__(self, before: int, after: int) -> None:
        super().__init__()
        half = after // 2
        self._path = nn.Sequential(
            *_convolution(before, half, 1), *_convolution(half, half, 3), *_convolution(half, after)
        )
        self._skip = nn.Identity() if before == after else nn.Conv2d(before, after, 1)

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Of maps batch×before×side×side make batch×after×side×side."""
        result: torch.Tensor = self._path(maps) + self._skip(maps)
        return result


class Hourglass(nn.Module):
    """Half the size and back again, `depth` times one within another."""

    def __init__(self, channels: int, depth: int) -> None:
        super().__init__()
        self._skip = Residual(channels, channels)
        self._down = nn.Sequential(nn.MaxPool2d(2), Residual(channels, channels))
        within = Hourglass(channels, depth - 1) if depth > 1 else Residual(channels, channels)
        self._up = nn.Sequential(within, Residual(channels, channels), nn.Upsample(scale_factor=2))

    def forward(self, maps: torch.Tensor) -> torch.Tensor:
        """Maps keep their shape."""
        result: torch.Tensor = self._skip(maps) + self._up(self._down(maps))
        return result


class Stack(nn.Module):
    """The whole network: images in, one set of heat maps for each hourglass out."""

    def __init__(self, stacks: int, channels: int, dropout: str) -> None:
        super().__init__()
        self._stem = nn.Sequential(
            *_convolution(3, channels // 2, 7, stride=2),
            Residual(channels // 2, channels),
            nn.MaxPool2d(2),
        )
        self._hourglasses = nn.ModuleList(
            nn.Sequential(
                Hourglass(channels, DEPTH), _dropout(dropout), *_convolution(channels, channels)
            )
            for _ in range(stacks)
        )
        self._heads = nn.ModuleList(nn.Conv2d(channels, JOINTS, 1) for _ in range(stacks))
        self._back = nn.ModuleList(nn.Conv2d(JOINTS, channels, 1) for _ in range(stacks - 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Of images batch×3×side×side make heat maps batch×stacks×joints×side/4×side/4."""
        maps = self._stem(images)
        heats = []
        for index, (hourglass, head) in enumerate(zip(self._hourglasses, self._heads, strict=True)):
            features = hourglass(maps)
            heats.append(head(features))
            if index < len(self._back):
                maps = maps + features + self._back[index](heats[-1])
        return torch.stack(heats, dim=1)


def _convolution(before: int, after: int, side: int = 1, stride: int = 1) -> tuple[nn.Module, ...]:
    return (
        nn.Conv2d(before, after, side, stride=stride, padding=side // 2),
        nn.BatchNorm2d(after, eps=EPSILON, momentum=RUNNING_SHARE),
        nn.ReLU(),
    )


def _dropout(kind: str) -> nn.Module:
    if kind == "plain":
        return nn.Dropout(RATE)
    return CheapDropout() if kind == "cheap" else nn.Identity()


def _mean_square(heats: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return nn.functional.mse_loss(heats, targets)


def step(
    *,
    stacks: int = 2,
    channels: int = 128,
    image: int = 128,
    batch: int = 2,
    dropout: str = "plain",
) -> Training:
    """Set up a step on one batch of batch×3×image×image random pixels.

    Args:
        stacks: Hourglasses one after another.
        channels: Feature maps of each; even, 16 or more.
        image: Side of an image, a multiple of 64 from 128: it is halved six times, and the
            norm of innermost maps of one number each would make the loss jump about.
        batch: Images a step, at least two.
        dropout: `plain` is torch's, `cheap` draws an eighth as often, `none` leaves it out.
    """
    shape = Shape(stacks=stacks, channels=channels, image=image, batch=batch)
    return training(
        Stack(stacks, channels, dropout),
        loss=_mean_square,
        inputs=torch.rand(batch, 3, image, image),
        targets=torch.rand(batch, stacks, JOINTS, shape.side, shape.side),
        rate=LEARNING_RATE,
    )
