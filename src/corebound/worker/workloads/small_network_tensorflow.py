"""Training of the small network in TensorFlow, in graph mode or eager mode."""

from __future__ import annotations

import contextlib
from array import array
from functools import partial

import numpy as np

from corebound.worker.adapters.tensorflow import tf
from corebound.worker.workloads.shared import small_network
from corebound.worker.workloads.shared.small_network import (
    LEARNING_RATE,
    Shape,
    Training,
    initial_numbers,
    refuse_parameters,
)


def _make(shape: Shape, *, mode: str, **of_mindspore: object) -> Training:
    refuse_parameters(framework="TensorFlow", **of_mindspore)
    batch, width = shape.batch, shape.width
    start = initial_numbers(shape)
    weights = [tf.Variable(_values(values, width, width)) for values in start.weights]
    biases = [tf.Variable(_values(values, width)) for values in start.biases]
    scales = [tf.Variable(_values(values, width)) for values in start.scales]
    head = tf.Variable(_values(start.head, width, width))
    inputs = tf.constant(_values(start.inputs, batch, width))
    targets = tf.constant(_values(start.targets, batch, width))
    parameters = [*weights, *biases, *scales, head]

    # Where operators run one by one, nothing shows a scope, and entering it takes time.
    scope = contextlib.nullcontext if mode == "eager" else tf.name_scope

    def run_step() -> tuple[tf.Tensor, tf.Tensor]:
        with tf.GradientTape() as tape, scope("forward"):
            hidden = inputs
            for weight, bias, scale in zip(weights, biases, scales, strict=True):
                dense = tf.nn.bias_add(tf.matmul(hidden, weight), bias)
                hidden = tf.add_n([tf.multiply(tf.nn.relu(dense), scale), hidden])
            outputs = tf.abs(tf.matmul(hidden, head))
            loss = tf.reduce_mean(tf.square(outputs - targets))
        with scope("backward"):
            gradients = tape.gradient(loss, parameters)
        for parameter, gradient in zip(parameters, gradients, strict=True):
            tf.raw_ops.ResourceApplyGradientDescent(
                var=parameter.handle, alpha=LEARNING_RATE, delta=gradient
            )
        return loss, outputs

    traced_step = run_step if mode == "eager" else tf.function(run_step)

    def advance() -> tuple[float, tf.Tensor]:
        loss, outputs = traced_step()
        return float(loss.numpy()), outputs

    return Training(shape=shape, advance=advance, parameters=parameters)


def _values(values: array[float], *shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.frombuffer(values, dtype=np.float32).reshape(shape)


# Usually, a step is traced into a graph.
training = partial(small_network.training, _make)
