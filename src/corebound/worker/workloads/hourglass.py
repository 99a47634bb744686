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

JOINTS = 16
DEPTH = 4
# What an image is divided by before the first hourglass.
STEM = 4
# The share that dropout drops. The cheap one tells by a byte: 26 of 256.
RATE = 0.1
DROPPED_BYTES = round(RATE * 256)
# Of batch normalisation, as both frameworks' models usually have it.
EPSILON = 1e-5
RUNNING_SHARE = 0.1
# From 16 channels up the first step then lowered the loss for 90 seeds of 90, in PyTorch.
LEARNING_RATE = 0.001
MOMENTUM = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How large: so many hourglasses of so many channels, for images of image×image pixels."""

    stacks: int
    channels: int
    image: int
    batch: int

    @property
    def side(self) -> int:
        """Rows, and columns, of a heat map."""
        return self.image // STEM


def require_heats(shape: Shape, found: tuple[int, ...], *, channels_last: bool) -> None:
    """Refuse heat maps of another shape.

    Args:
        shape: The network's.
        found: What came out.
        channels_last: Joints are the last dimension; else the third, after the stacks.

    Raises:
        WorkloadError: they are not one for each image, stack and joint.
    """
    maps = (shape.side, shape.side, JOINTS) if channels_last else (JOINTS, shape.side, shape.side)
    if found != (expected := (shape.batch, shape.stacks, *maps)):
        raise _wrong(f"the heat maps are {found}, not {expected}.")


def require_finite(finite: Iterable[bool]) -> None:
    """Refuse numbers that are not.

    Args:
        finite: For each tensor, whether all that it holds is finite.

    Raises:
        WorkloadError: one holds something else.
    """
    if not all(finite):
        raise _wrong("a step left numbers that are not finite.")


def _wrong(what: str) -> WorkloadError:
    return WorkloadError(
        what=what, fix="Timings of a wrong result mean nothing: check the framework's build."
    )
