"""Training of the small network in PyTorch, in eager mode."""

from __future__ import annotations

from array import array
from functools import partial

import torch

from corebound.worker.workloads.shared import small_network
from corebound.worker.workloads.shared.small_network import (
    LEARNING_RATE,
    Shape,
    Training,
    initial_numbers,
    refuse_parameters,
)


def _make(shape: Shape, *, mode: str, **of_mindspore: object) -> Training:
    refuse_parameters(
        framework="PyTorch", mode="" if mode in {"usual", "eager"} else mode, **of_mindspore
    )
    batch, width = shape.batch, shape.width
    start = initial_numbers(shape)
    weights = [_tensor(values, width, width).requires_grad_() for values in start.weights]
    biases = [_tensor(values, width).requires_grad_() for values in start.biases]
    scales = [_tensor(values, width).requires_grad_() for values in start.scales]
    head = _tensor(start.head, width, width).requires_grad_()
    inputs, targets = _tensor(start.inputs, batch, width), _tensor(start.targets, batch, width)
    parameters = [*weights, *biases, *scales, head]
    optimizer = torch.optim.SGD(parameters, lr=LEARNING_RATE)

    def advance() -> tuple[float, torch.Tensor]:
        hidden = inputs
        for weight, bias, scale in zip(weights, biases, scales, strict=True):
            dense = torch.addmm(bias, hidden, weight)
            hidden = torch.add(torch.mul(torch.relu(dense), scale), hidden)
        outputs = torch.abs(torch.mm(hidden, head))
        loss = torch.mean(torch.square(outputs - targets))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item(), outputs.detach()

    return Training(shape=shape, advance=advance, parameters=parameters)


def _tensor(values: array[float], *shape: int) -> torch.Tensor:
    return torch.frombuffer(values, dtype=torch.float32).reshape(shape).clone()


training = partial(small_network.training, _make)
