"""Training of the stacked hourglass in TensorFlow as a graph, with selectable dropout."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from corebound.worker.adapters.tensorflow import tf
from corebound.worker.workloads.shared import hourglass
from corebound.worker.workloads.shared.hourglass import (
    DROPPED_BYTES,
    EPSILON,
    JOINTS,
    LEARNING_RATE,
    MOMENTUM,
    RATE,
    RUNNING_SHARE,
    Layer,
    Shape,
    require_finite,
    require_heats,
)
from corebound.worker.workloads.shared.result_checks import require_learning


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Layers as functions, and the variables that they were made with.

    Attributes:
        parameters: The trained variables, in PyTorch's order; a convolution's weights
            have the shape side×side×before×after.
        generator: The random numbers of the cheap dropout.
    """

    parameters: list[tf.Variable] = field(default_factory=list)
    generator: tf.random.Generator = field(
        # Seeded from the launch's seed; no other algorithm is available on CPUs.
        default_factory=lambda: tf.random.Generator.from_seed(
            tf.random.uniform((), maxval=2**31 - 1, dtype=tf.int32), alg="philox"
        )
    )

    def block(self, before: int, after: int, side: int = 1, stride: int = 1) -> Layer:
        """A convolution, batch normalisation and a ReLU."""
        convolution = self.convolution(before, after, side, stride)
        scale, shift = self._variable(tf.ones(after)), self._variable(tf.zeros(after))
        mean, variance = (tf.Variable(tf.fill([after], one), trainable=False) for one in (0.0, 1.0))

        def layer(maps: tf.Tensor) -> tf.Tensor:
            normed, *running = tf.raw_ops.FusedBatchNormV3(
                x=convolution(maps),
                scale=scale,
                offset=shift,
                mean=mean,
                variance=variance,
                epsilon=EPSILON,
                exponential_avg_factor=RUNNING_SHARE,
            )[:3]
            mean.assign(running[0])
            variance.assign(running[1])
            return tf.nn.relu(normed)

        return layer

    def convolution(self, before: int, after: int, side: int = 1, stride: int = 1) -> Layer:
        """A convolution of side×side."""
        # What PyTorch draws them from.
        limit = 1 / math.sqrt(before * side**2)
        weight, bias = (
            self._variable(tf.random.uniform(shape, -limit, limit))
            for shape in ((side, side, before, after), (after,))
        )
        # With a stride of two, `SAME` would pad less before the maps than after them.
        around = [side // 2] * 2
        padding = "SAME" if stride == 1 else [[0, 0], around, around, [0, 0]]
        return lambda maps: tf.nn.bias_add(tf.nn.conv2d(maps, weight, stride, padding), bias)

    def dropout(self, kind: str, number: int) -> Layer:
        """The dropout of a kind; the number seeds TensorFlow's own."""
        if kind == "plain":
            return lambda maps: tf.nn.dropout(maps, RATE, seed=number)
        return self.drop_cheaply if kind == "cheap" else tf.identity

    def drop_cheaply(self, maps: tf.Tensor) -> tf.Tensor:
        """Dropout from one random byte for each number, eight bytes a draw.

        tf.nn.dropout draws a random float for each. Of what else TensorFlow offers
        on CPUs, tried for the CPU time it takes: stateless Philox and a
        tf.random.Generator's floats cost the same as tf.nn.dropout; float16 more; ThreeFry
        is not there without XLA. 32-bit or 64-bit words, signed or not, from a generator or
        stateless, cut into bytes, all cost about the same: less than half.
        """
        count = tf.size(maps)
        integers = self.generator.uniform_full_int([(count + 7) // 8], tf.uint64)
        bytes_ = tf.reshape(tf.bitcast(integers, tf.uint8), [-1])[:count]
        mask = tf.cast(tf.reshape(bytes_, tf.shape(maps)) >= DROPPED_BYTES, maps.dtype)
        return maps * mask * (256 / (256 - DROPPED_BYTES))

    def _variable(self, start: tf.Tensor) -> tf.Variable:
        self.parameters.append(tf.Variable(start))
        return self.parameters[-1]

    def halve(self, maps: tf.Tensor) -> tf.Tensor:
        """The largest of 2×2 numbers each."""
        return tf.nn.max_pool2d(maps, 2, 2, "VALID")

    def double(self, maps: tf.Tensor) -> tf.Tensor:
        """Each number four times."""
        return tf.raw_ops.ResizeNearestNeighbor(images=maps, size=2 * tf.shape(maps)[1:3])

    def stack(self, heats: list[tf.Tensor]) -> tf.Tensor:
        """Join heat maps in a dimension after the first."""
        return tf.stack(heats, axis=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The network, and everything that a step needs.

    Attributes:
        forward: Maps images to heat maps, dropout included.
        inputs, targets: The batch: batch×image×image×3, and as `forward` gives it.
        advance: Takes one step; returns the loss before it, and the heat maps.
        random_state: The generator's state before the first step.
    """

    network: Network
    shape: Shape
    forward: Layer
    inputs: tf.Variable
    targets: tf.Variable
    advance: Callable[[], tuple[tf.Tensor, tf.Tensor]]
    random_state: tf.Tensor

    def step(self) -> tuple[float, tf.Tensor]:
        """Forward, backward and update once; returns the loss before the update, and heat maps."""
        loss, heats = self.advance()
        return float(loss.numpy()), heats

    def work(self) -> dict[str, float]:
        """What a step does: one batch of images."""
        return {"images": float(self.shape.batch)}

    def check(self, result: tuple[float, tf.Tensor]) -> None:
        """Heat maps of the right shape, all finite; the update lowered the loss of its batch.

        Raises:
            WorkloadError: they are not, or it did not.
        """
        loss, heats = result
        require_heats(self.shape, tuple(heats.shape), channels_last=True)
        # The loss alone does not show it: a ReLU that is fused with its norm turns NaN into zero.
        require_finite(
            bool(tf.reduce_all(tf.math.is_finite(tensor)))
            for tensor in (heats, *self.network.parameters)
        )
        require_learning(loss, self.recompute_loss())

    def recompute_loss(self) -> float:
        """The loss now, with the dropout masks of the first step."""
        before = tf.identity(self.network.generator.state)
        self.network.generator.state.assign(self.random_state)
        # Traced again, so that random operators restart from their seeds.
        loss = tf.function(lambda: _mean_square(self.forward(self.inputs), self.targets))()
        self.network.generator.state.assign(before)
        return float(loss.numpy())


def _mean_square(heats: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.square(heats - targets))


def _make(shape: Shape, dropout: str) -> Training:
    network = Network()
    forward = hourglass.network(network, shape, dropout)

    def drawn(*dimensions: int) -> tf.Variable:
        # Not a constant, which would be copied into the graph.
        return tf.Variable(tf.random.uniform(dimensions), trainable=False)

    inputs = drawn(shape.batch, shape.image, shape.image, 3)
    targets = drawn(shape.batch, shape.stacks, shape.side, shape.side, JOINTS)
    return Training(
        network=network,
        shape=shape,
        forward=forward,
        inputs=inputs,
        targets=targets,
        advance=tf.function(_advance(forward, inputs, targets, network.parameters)),
        random_state=tf.identity(network.generator.state),
    )


def _advance(
    forward: Layer, inputs: tf.Variable, targets: tf.Variable, parameters: Sequence[tf.Variable]
) -> Callable[[], tuple[tf.Tensor, tf.Tensor]]:
    """Make the step that is traced; the names of its scopes show a profile its phases."""
    momenta = [tf.Variable(tf.zeros_like(parameter), trainable=False) for parameter in parameters]

    def run_step() -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape, tf.name_scope("forward"):
            heats = forward(inputs)
            loss = _mean_square(heats, targets)
        with tf.name_scope("backward"):
            gradients = tape.gradient(loss, parameters)
        with tf.name_scope("update"):
            for parameter, momentum, gradient in zip(parameters, momenta, gradients, strict=True):
                # As PyTorch's: moved = momentum·moved + gradient; parameter -= rate·moved.
                tf.raw_ops.ResourceApplyMomentum(
                    var=parameter.handle,
                    accum=momentum.handle,
                    lr=LEARNING_RATE,
                    grad=gradient,
                    momentum=MOMENTUM,
                )
        return loss, heats

    return run_step


step = partial(hourglass.step, _make)
