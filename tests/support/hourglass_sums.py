"""The hourglass on paper: its parameters and operations, counted without any framework."""

from collections.abc import Iterator

from msgspec import Struct

from corebound.worker.workloads.shared.hourglass import DEPTH, JOINTS, Shape


class Convolution(Struct, frozen=True, kw_only=True):
    """Of maps of `before` channels make `after`; each output sees side×side inputs.

    Attributes:
        across: Rows, and columns, of what comes out.
        norm: A batch normalisation and a ReLU follow.
    """

    before: int
    after: int
    side: int
    across: int
    norm: bool

    @property
    def parameter_count(self) -> int:
        """Weights and biases, then scale and shift of the normalisation."""
        return self.after * (self.before * self.side**2 + 1 + 2 * self.norm)

    @property
    def flops(self) -> int:
        """Floating-point operations of one image's products, forward."""
        return 2 * self.before * self.after * self.side**2 * self.across**2


def parameter_count(shape: Shape) -> int:
    """Trainable numbers."""
    return sum(convolution.parameter_count for convolution in _convolutions(shape))


def forward_flops(shape: Shape) -> int:
    """Floating-point operations of the convolutions of one forward pass."""
    return shape.batch * sum(convolution.flops for convolution in _convolutions(shape))


def _convolutions(shape: Shape) -> Iterator[Convolution]:
    """Every convolution there is: the stem's, each hourglass's, heads, ways back."""
    channels, half, side = shape.channels, shape.channels // 2, shape.side
    yield Convolution(before=3, after=half, side=7, across=shape.image // 2, norm=True)
    yield from _residual(half, channels, shape.image // 2)
    for stack in range(shape.stacks):
        yield from _hourglass(channels, side, DEPTH)
        yield Convolution(before=channels, after=channels, side=1, across=side, norm=True)
        yield Convolution(before=channels, after=JOINTS, side=1, across=side, norm=False)
        if stack < shape.stacks - 1:
            yield Convolution(before=JOINTS, after=channels, side=1, across=side, norm=False)


def _residual(before: int, after: int, across: int) -> Iterator[Convolution]:
    half = after // 2
    for inner, outer, side in ((before, half, 1), (half, half, 3), (half, after, 1)):
        yield Convolution(before=inner, after=outer, side=side, across=across, norm=True)
    if before != after:
        yield Convolution(before=before, after=after, side=1, across=across, norm=False)


def _hourglass(channels: int, across: int, depth: int) -> Iterator[Convolution]:
    yield from _residual(channels, channels, across)
    yield from _residual(channels, channels, across // 2)
    if depth > 1:
        yield from _hourglass(channels, across // 2, depth - 1)
    else:
        yield from _residual(channels, channels, across // 2)
    yield from _residual(channels, channels, across // 2)
