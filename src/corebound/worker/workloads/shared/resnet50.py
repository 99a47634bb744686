"""ResNet-50 for every runtime: its layers and equal weights, in NumPy alone.

Names and layouts are those of torchvision, so that its model takes the weights as they are.

Source: He et al., Deep residual learning for image recognition (2015), with the stride in the
3×3 convolution of a block, as in torchvision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from corebound.worker.workloads.shared.seeded_numbers import SeededNumbers

CLASSES = 1000
EPSILON = 1e-5
# Width, number of blocks and stride of each stage; a block gives four times its width.
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
EXPANSION = 4
FEATURES = STAGES[-1][0] * EXPANSION

Weights = dict[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Convolution:
    """A convolution without bias, with its batch normalisation.

    Attributes:
        name, norm: The prefixes of both in the names of weights.
        before, after: The number of channels.
        side: The side of its square kernel.
    """

    name: str
    norm: str
    before: int
    after: int
    side: int
    stride: int = 1

    @property
    def padding(self) -> int:
        """Pixels added on each side, which keep the size if the stride is 1."""
        return self.side // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Three convolutions, added to the input or to a projection of it."""

    path: tuple[Convolution, Convolution, Convolution]
    projection: Convolution | None


STEM = Convolution(name="conv1", norm="bn1", before=3, after=64, side=7, stride=2)


def blocks() -> Iterator[Block]:
    """The 16 blocks in their order."""
    before = STEM.after
    for stage, (width, count, first_stride) in enumerate(STAGES, start=1):
        for index in range(count):
            prefix = f"layer{stage}.{index}"
            stride = first_stride if index == 0 else 1
            after = width * EXPANSION
            sizes = ((before, width, 1, 1), (width, width, 3, stride), (width, after, 1, 1))
            first, second, third = (
                Convolution(
                    name=f"{prefix}.conv{number}",
                    norm=f"{prefix}.bn{number}",
                    before=channels,
                    after=width_after,
                    side=side,
                    stride=own_stride,
                )
                for number, (channels, width_after, side, own_stride) in enumerate(sizes, start=1)
            )
            projection = Convolution(
                name=f"{prefix}.downsample.0",
                norm=f"{prefix}.downsample.1",
                before=before,
                after=after,
                side=1,
                stride=stride,
            )
            yield Block(path=(first, second, third), projection=None if index else projection)
            before = after


def convolutions() -> Iterator[Convolution]:
    """Every convolution of the network."""
    yield STEM
    for block in blocks():
        yield from block.path
        if block.projection is not None:
            yield block.projection


def weights() -> Weights:
    """All 25.6 million weights and the statistics of batch normalisation, by torchvision's names.

    Kernels have the shape after×before×side×side and the variance 2/inputs, which keeps the
    magnitude through a ReLU (He et al., 2015). The last norm of a block scales by less, so
    that the sums over 16 blocks stay near 1.
    """
    numbers = SeededNumbers()
    result: Weights = {}
    for convolution in convolutions():
        shape = (convolution.after, convolution.before, convolution.side, convolution.side)
        limit = math.sqrt(6 / math.prod(shape[1:]))
        low, high = (0.2, 0.4) if convolution.norm.endswith("bn3") else (0.8, 1.2)
        channels = (convolution.after,)
        result |= {
            f"{convolution.name}.weight": numbers.uniform(shape, -limit, limit),
            f"{convolution.norm}.weight": numbers.uniform(channels, low, high),
            f"{convolution.norm}.bias": numbers.uniform(channels, -0.1, 0.1),
            f"{convolution.norm}.running_mean": numbers.uniform(channels, -0.1, 0.1),
            f"{convolution.norm}.running_var": numbers.uniform(channels, 0.8, 1.2),
        }
    limit = math.sqrt(3 / FEATURES)
    result["fc.weight"] = numbers.uniform((CLASSES, FEATURES), -limit, limit)
    result["fc.bias"] = numbers.uniform((CLASSES,), -0.1, 0.1)
    return result


def images(batch: int, image: int) -> NDArray[np.float32]:
    """Random pixels, batch×3×image×image: the same in every environment."""
    return SeededNumbers(batch * 10_000 + image).uniform((batch, 3, image, image), -1.0, 1.0)
