"""The small network that every framework trains: its shape, initial numbers and checks.

Uses only the standard library, so that every environment starts from equal weights. Each
layer is Dense, ReLU, Mul and AddN; the network ends in MatMul and Abs:

    h[0] = inputs
    h[i + 1] = relu(h[i] @ weight[i] + bias[i]) * scale[i] + h[i]
    outputs = abs(h[layers] @ head);  loss = mean((outputs - targets)²)

Source of the operators: the study of CPU training in MindSpore and in TensorFlow.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from corebound.worker.workload import WorkloadError
from corebound.worker.workloads.shared.result_checks import training_fault, wrong_result

# At this rate the loss falls in each of the first hundred steps, for every shape that was
# tried (widths 16 to 512, 1 to 12 layers).
LEARNING_RATE = 0.05
SEED = 20_220_117


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The size: inputs of batch×width, and the number of layers of width×width."""

    batch: int
    width: int
    layers: int

    @property
    def parameter_count(self) -> int:
        """Number of trainable values: weight, bias and scale of each layer, then the head."""
        return self.layers * (self.width**2 + 2 * self.width) + self.width**2

    @property
    def matmul_flops(self) -> int:
        """Floating-point operations of one step's matrix products.

        Each layer has three, and so has the head: forward, and the gradients of
        its weight and of its input, which the first layer does not need.
        """
        products = 3 * (self.layers + 1) - 1
        return products * 2 * self.batch * self.width**2


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The initial values of a training: float32, row by row.

    Attributes:
        inputs, targets: batch×width.
        weights: width×width, one for each layer.
        biases, scales: width, one for each layer.
        head: width×width.
    """

    inputs: array[float]
    targets: array[float]
    weights: tuple[array[float], ...]
    biases: tuple[array[float], ...]
    scales: tuple[array[float], ...]
    head: array[float]


def initial_numbers(shape: Shape) -> Numbers:
    """The initial values of a shape: the same in every framework and launch."""
    draws = itertools.count()

    def uniform(count: int, low: float, high: float) -> array[float]:
        key = f"{SEED} {next(draws)}".encode()
        integers = struct.unpack(f"<{count}I", hashlib.shake_256(key).digest(4 * count))
        span = (high - low) / 2**32
        return array("f", [low + span * integer for integer in integers])

    width, square = shape.width, shape.width**2
    # Variance 1/width preserves the magnitude through a product (LeCun).
    limit = math.sqrt(3 / width)
    layers = range(shape.layers)
    return Numbers(
        inputs=uniform(shape.batch * width, -1.0, 1.0),
        targets=uniform(shape.batch * width, 0.0, 1.0),
        weights=tuple(uniform(square, -limit, limit) for _ in layers),
        biases=tuple(uniform(width, -0.1, 0.1) for _ in layers),
        scales=tuple(uniform(width, 0.4, 0.6) for _ in layers),
        head=uniform(square, -limit, limit),
    )


class HasShape(Protocol):
    """The part of a framework's tensor that the checks need."""

    @property
    def shape(self) -> Sequence[int]:
        """Its dimensions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The training in one framework, with its checks.

    Attributes:
        advance: Takes one step and waits for it; returns loss and outputs.
        parameters: The framework's own, current values.
        losses: The loss before each step so far.
    """

    shape: Shape
    advance: Callable[[], tuple[float, HasShape]]
    parameters: Sequence[HasShape]
    losses: list[float] = field(default_factory=list)

    def step(self) -> HasShape:
        """Train on the batch once: forward, backward, update; returns the outputs."""
        loss, outputs = self.advance()
        self.losses.append(loss)
        return outputs

    def work(self) -> dict[str, float]:
        """The work of a step in its matrix products, forward and backward."""
        return {"flop": float(self.shape.matmul_flops)}

    def check(self, outputs: HasShape) -> None:
        """Check the shape of the outputs, the number of parameters and that the loss is finite.

        Raises:
            WorkloadError: one is wrong.
        """
        count = sum(math.prod(parameter.shape) for parameter in self.parameters)
        expected = (self.shape.batch, self.shape.width)
        if tuple(outputs.shape) != expected or count != self.shape.parameter_count:
            raise _wrong(f"it gave {tuple(outputs.shape)} outputs with {count} parameters")
        if not math.isfinite(self.losses[-1]):
            raise _wrong(f"its loss is {self.losses[-1]}")

    def teardown(self) -> None:
        """Check the first steps, once no step is timed any more.

        Raises:
            WorkloadError: they did not lower the loss.
        """
        if (fault := training_fault(self.losses)) is not None:
            raise _wrong(fault)


def _wrong(what: str) -> WorkloadError:
    return wrong_result(f"the small network does not train correctly: {what}.")


def training(
    make: Callable[..., Training],
    *,
    batch: int = 64,
    width: int = 256,
    layers: int = 6,
    mode: str = "usual",
    dispatch_threads: int = 0,
    blocking: bool = False,
) -> Training:
    """Set the training up in a framework.

    Args:
        make: Makes it of the Shape, and of `mode`, `dispatch_threads` and `blocking`.
        layers: How many before the head.
        mode: `graph`, `eager`, or `usual`: what the framework's users usually choose.
        dispatch_threads: The number of threads that dispatch operators; 0: framework default.
        blocking: Wait for each operator before dispatching the next.

    Raises:
        WorkloadError: the framework does not support a parameter.
    """
    shape = Shape(batch=batch, width=width, layers=layers)
    return make(shape, mode=mode, dispatch_threads=dispatch_threads, blocking=blocking)


def refuse_parameters(*, framework: str, **parameters: object) -> None:
    """Reject parameters that this framework does not support.

    Raises:
        WorkloadError: one of `parameters` is set.
    """
    for name, value in parameters.items():
        if value:
            raise WorkloadError(
                what=f"{framework} has no `{name}`, which is set to {value}.",
                fix=f"Remove `{name}`, or exclude {framework} from those cells.",
            )
