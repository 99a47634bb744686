"""One training step in PyTorch: forward, backward and update, always on the same batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from corebound.worker.workloads.shared.result_checks import require_learning

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A model in training mode, and everything that a step needs.

    Attributes:
        inputs, targets: The batch; `loss` compares the model's output with `targets`.
        random_state: State of torch's generator before the first step, so that the check
            can draw the same dropout masks.
    """

    model: torch.nn.Module
    loss: Loss
    optimizer: torch.optim.Optimizer
    inputs: torch.Tensor
    targets: torch.Tensor
    random_state: torch.Tensor

    def step(self) -> torch.Tensor:
        """Forward, backward and update once; returns the loss before the update."""
        return train(self.model, self.loss, self.optimizer, self.inputs, self.targets)

    def work(self) -> dict[str, float]:
        """The work of a step: one batch of images."""
        return {"images": float(len(self.inputs))}

    def check(self, result: torch.Tensor) -> None:
        """Check that the first update lowered the loss of its batch.

        Raises:
            WorkloadError: it did not.
        """
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.set_rng_state(self.random_state)
            after = self.loss(self.model(self.inputs), self.targets)
        require_learning(float(result), float(after))


def training(
    model: torch.nn.Module,
    *,
    loss: Loss,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    rate: float = 0.01,
) -> Training:
    """Make a step of stochastic gradient descent with momentum 0.9."""
    return Training(
        model=model.train(),
        loss=loss,
        optimizer=torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9),
        inputs=inputs,
        targets=targets,
        random_state=torch.get_rng_state(),
    )


def train(
    model: torch.nn.Module,
    loss: Loss,
    optimizer: torch.optim.Optimizer,
    inputs: torch.Tensor,
    targets: torch.Tensor,
) -> torch.Tensor:
    """Take one step; the loss before the update, a scalar without gradient."""
    optimizer.zero_grad(set_to_none=True)
    value = loss(model(inputs), targets)
    value.backward()
    optimizer.step()
    if value.is_cuda:
        # A GPU computes asynchronously, so wait until it has finished. Of several, others have
        # then done their part, as the update needs their gradients.
        torch.cuda.synchronize(value.device)
    return value.detach()
