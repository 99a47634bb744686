"""The stacked hourglass network as PyTorch and TensorFlow share it: its layout and its checks.

Uses only the standard library. This network for pose estimation consists of stacked
hourglasses. Each halves its feature maps four times, doubles them again, adds the skip
connections and ends in one heat map per joint. The next hourglass takes the maps and the heat
maps. The dropout between them needs random numbers, which took most of a step's time in the
study that this workload reproduces.

Sources: Newell et al., Stacked hourglass networks for human pose estimation
(2016), for the network, here with fewer channels; profiling a training script
on an Ascend NPU, for the question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from corebound.worker.workloads.shared.result_checks import wrong_result

JOINTS = 16
DEPTH = 4
# Factor by which an image is reduced before the first hourglass.
STEM = 4
# The share that dropout drops. The cheap dropout compares a byte: 26 of 256.
RATE = 0.1
DROPPED_BYTES = round(RATE * 256)
# The usual parameters of batch normalisation in both frameworks.
EPSILON = 1e-5
RUNNING_SHARE = 0.1
# With 16 channels or more, the first step then lowered the loss for 90 of 90 seeds in PyTorch.
LEARNING_RATE = 0.001
MOMENTUM = 0.9

# Of maps it makes maps.
Layer = Callable[[Any], Any]
Training = TypeVar("Training")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The size: the number of hourglasses and channels, and images of image×image pixels."""

    stacks: int
    channels: int
    image: int
    batch: int

    @property
    def side(self) -> int:
        """Number of rows and of columns of a heat map."""
        return self.image // STEM


class Layers(Protocol):
    """The layers of a framework, which keeps the parameters in the order that they are made in."""

    def convolution(self, before: int, after: int, side: int = 1, stride: int = 1) -> Layer:
        """A convolution of side×side, padded to keep the size of maps where the stride is 1."""

    def block(self, before: int, after: int, side: int = 1, stride: int = 1) -> Layer:
        """A convolution, batch normalisation and a ReLU."""

    def dropout(self, kind: str, number: int) -> Layer:
        """The dropout after an hourglass, counted from 1, of the kind that `step` names."""

    def halve(self, maps: Any) -> Any:
        """The largest of 2×2 numbers each."""

    def double(self, maps: Any) -> Any:
        """Each number four times."""

    def stack(self, heats: list[Any]) -> Any:
        """Join heat maps in a dimension after the first."""


def network(layers: Layers, shape: Shape, dropout: str) -> Layer:
    """Make the whole network: images in, one set of heat maps for each hourglass out.

    Of images batch×3×side×side it makes heat maps batch×stacks×joints×side/4×side/4; in
    TensorFlow, channels and joints are the last dimension.
    """
    channels = shape.channels
    stem = _chain(
        layers.block(3, channels // 2, 7, stride=2),
        _residual(layers, channels // 2, channels),
        layers.halve,
    )
    hourglasses = [
        _chain(
            _hourglass(layers, channels, DEPTH),
            layers.dropout(dropout, number),
            layers.block(channels, channels),
        )
        for number in range(1, shape.stacks + 1)
    ]
    heads = [layers.convolution(channels, JOINTS) for _ in hourglasses]
    projections = [layers.convolution(JOINTS, channels) for _ in hourglasses[1:]]

    def forward(images: Any) -> Any:
        maps = stem(images)
        heats = []
        for index, (hourglass, head) in enumerate(zip(hourglasses, heads, strict=True)):
            features = hourglass(maps)
            heats.append(head(features))
            if index < len(projections):
                maps = maps + features + projections[index](heats[-1])
        return layers.stack(heats)

    return forward


def _hourglass(layers: Layers, channels: int, depth: int) -> Layer:
    """Half the size and back again, `depth` times one within another."""
    skip, down = (_residual(layers, channels, channels) for _ in range(2))
    within = (
        _hourglass(layers, channels, depth - 1)
        if depth > 1
        else _residual(layers, channels, channels)
    )
    path = _chain(layers.halve, down, within, _residual(layers, channels, channels), layers.double)
    return lambda maps: skip(maps) + path(maps)


def _residual(layers: Layers, before: int, after: int) -> Layer:
    """The bottleneck of three convolutions, added to what came in."""
    half = after // 2
    path = _chain(
        layers.block(before, half), layers.block(half, half, 3), layers.block(half, after)
    )
    if before == after:
        return lambda maps: path(maps) + maps
    skip = layers.convolution(before, after)
    return lambda maps: path(maps) + skip(maps)


def _chain(*layers: Layer) -> Layer:
    def chained(maps: Any) -> Any:
        for layer in layers:
            maps = layer(maps)
        return maps

    return chained


def step(
    make: Callable[[Shape, str], Training],
    *,
    stacks: int = 2,
    channels: int = 128,
    image: int = 128,
    batch: int = 2,
    dropout: str = "plain",
) -> Training:
    """Set up a step in a framework, on one batch of random pixels.

    Args:
        make: Makes it of the shape and the kind of dropout.
        stacks: Hourglasses one after another.
        channels: Feature maps of each; even, 16 or more.
        image: Side of an image, a multiple of 64 from 128: it is halved six times, and the
            norm of innermost maps of one number each would make the loss jump about.
        batch: Images a step, at least two.
        dropout: `plain` is the framework's, `cheap` draws an eighth as often, `none` leaves it out.
    """
    return make(Shape(stacks=stacks, channels=channels, image=image, batch=batch), dropout)


def require_heats(shape: Shape, shape_of_heats: tuple[int, ...], *, channels_last: bool) -> None:
    """Reject heat maps of the wrong shape.

    Args:
        channels_last: Whether joints are the last dimension; otherwise they are the third.

    Raises:
        WorkloadError: there is not one for each image, stack and joint.
    """
    maps = (shape.side, shape.side, JOINTS) if channels_last else (JOINTS, shape.side, shape.side)
    if shape_of_heats != (expected := (shape.batch, shape.stacks, *maps)):
        raise wrong_result(f"the heat maps have the shape {shape_of_heats}; expected {expected}.")


def require_finite(finite: Iterable[bool]) -> None:
    """Reject numbers that are not finite.

    Args:
        finite: For each tensor, whether all its numbers are finite.

    Raises:
        WorkloadError: one is not.
    """
    if not all(finite):
        raise wrong_result("a step produced values that are not finite.")
