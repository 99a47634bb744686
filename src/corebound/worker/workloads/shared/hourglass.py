"""Parameters and checks shared by the stacked hourglass network in PyTorch and TensorFlow.

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

from collections.abc import Iterable
from dataclasses import dataclass

from corebound.worker.workload import WorkloadError
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


def require_heats(shape: Shape, shape_of_heats: tuple[int, ...], *, channels_last: bool) -> None:
    """Reject heat maps of the wrong shape.

    Args:
        shape: The network's size.
        shape_of_heats: The shape of the output.
        channels_last: Whether joints are the last dimension; otherwise they are the third.

    Raises:
        WorkloadError: there is not one for each image, stack and joint.
    """
    maps = (shape.side, shape.side, JOINTS) if channels_last else (JOINTS, shape.side, shape.side)
    if shape_of_heats != (expected := (shape.batch, shape.stacks, *maps)):
        raise _wrong(f"the heat maps have the shape {shape_of_heats}; expected {expected}.")


def require_finite(finite: Iterable[bool]) -> None:
    """Reject numbers that are not finite.

    Args:
        finite: For each tensor, whether all its numbers are finite.

    Raises:
        WorkloadError: one is not.
    """
    if not all(finite):
        raise _wrong("a step produced values that are not finite.")


def _wrong(what: str) -> WorkloadError:
    return wrong_result(what)
