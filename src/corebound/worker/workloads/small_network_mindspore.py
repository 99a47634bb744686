"""Training of the small network in MindSpore, in graph mode or eager mode."""

from __future__ import annotations

from array import array
from functools import partial
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from corebound.worker.adapters import mindspore
from corebound.worker.workloads.shared import small_network
from corebound.worker.workloads.shared.small_network import (
    LEARNING_RATE,
    Numbers,
    Shape,
    Training,
    initial_numbers,
)


class Network(nn.Cell):
    """Inputs and targets to loss and outputs."""

    def __init__(self, shape: Shape, start: Numbers) -> None:
        super().__init__()
        width = shape.width
        self.weights = _tuple("weight", start.weights, width, width)
        self.biases = _tuple("bias", start.biases, width)
        self.scales = _tuple("scale", start.scales, width)
        self.head = ms.Parameter(_tensor(start.head, width, width), name="head")
        self.layers = shape.layers

    def construct(self, inputs: Any, targets: Any) -> Any:
        """Do the forward pass; MindSpore compiles the source of this."""
        hidden = inputs
        for layer in range(self.layers):
            dense = ops.matmul(hidden, self.weights[layer]) + self.biases[layer]
            hidden = ops.addn([ops.mul(ops.relu(dense), self.scales[layer]), hidden])
        outputs = ops.abs(ops.matmul(hidden, self.head))
        return ops.mean(ops.square(outputs - targets)), outputs


class Step(nn.Cell):
    """One step of training: forward, backward, update."""

    def __init__(self, network: Network) -> None:
        super().__init__(auto_prefix=False)
        self.network = network
        parameters = network.trainable_params()
        self.optimizer = nn.SGD(parameters, learning_rate=LEARNING_RATE)
        self.differentiate = ms.value_and_grad(network, None, parameters, has_aux=True)

    def construct(self, inputs: Any, targets: Any) -> Any:
        """Take the step; the loss is there only once the update is."""
        (loss, outputs), gradients = self.differentiate(inputs, targets)
        return ops.depend(loss, self.optimizer(gradients)), outputs


def _make(shape: Shape, *, mode: str, dispatch_threads: int, blocking: bool) -> Training:
    # Eager mode, which MindSpore calls PyNative, is not the usual one.
    ms.set_context(mode=ms.PYNATIVE_MODE if mode == "eager" else ms.GRAPH_MODE)
    if dispatch_threads:
        mindspore.set_dispatch_threads(dispatch_threads)
    if blocking:
        ms.runtime.launch_blocking()
    return set_up(shape)[0]


training = partial(small_network.training, _make)


def set_up(shape: Shape) -> tuple[Training, Network]:
    """Set up the training of that shape, and show the network that it trains."""
    start = initial_numbers(shape)
    network = Network(shape, start)
    step = Step(network).set_train()
    inputs, targets = (
        _tensor(values, shape.batch, shape.width) for values in (start.inputs, start.targets)
    )

    def advance() -> tuple[float, ms.Tensor]:
        loss, outputs = step(inputs, targets)
        # The loss waits for the update: nothing is left to do once it is here.
        return float(loss.asnumpy()), outputs

    parameters = network.trainable_params()
    return Training(shape=shape, advance=advance, parameters=parameters), network


def _tensor(values: array[float], *shape: int) -> ms.Tensor:
    return ms.Tensor(np.frombuffer(values, dtype=np.float32).reshape(shape).copy())


def _tuple(name: str, values: tuple[array[float], ...], *shape: int) -> ms.ParameterTuple:
    return ms.ParameterTuple(
        ms.Parameter(_tensor(layer_values, *shape), name=f"{name}{layer}")
        for layer, layer_values in enumerate(values)
    )
