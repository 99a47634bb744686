"""Training of an image classifier's last layer in MindSpore, to study the effect of its width."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import nn, ops

from corebound.worker.workload import WorkloadError
from corebound.worker.workloads.shared.result_checks import training_fault, wrong_result

LEARNING_RATE = 0.1


class Step(nn.Cell):
    """Forward, backward and update of one dense layer under cross entropy."""

    def __init__(self, features: int, classes: int) -> None:
        super().__init__(auto_prefix=False)
        self.dense = nn.Dense(features, classes)
        self.entropy = nn.CrossEntropyLoss()
        parameters = self.dense.trainable_params()
        self.optimizer = nn.SGD(parameters, learning_rate=LEARNING_RATE)
        self.differentiate = ms.value_and_grad(self.forward, None, parameters)

    def forward(self, images: Any, labels: Any) -> Any:
        """Images of batch×features to the loss."""
        return self.entropy(self.dense(images), labels)

    def construct(self, images: Any, labels: Any) -> Any:
        """Take the step; the loss is there only once the update is."""
        loss, gradients = self.differentiate(images, labels)
        return ops.depend(loss, self.optimizer(gradients))


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """The same batch again and again; `losses` holds the loss before each step so far."""

    train: Step
    images: ms.Tensor
    labels: ms.Tensor
    losses: list[float] = field(default_factory=list)

    def step(self) -> float:
        """Train once; returns the loss."""
        self.losses.append(float(self.train(self.images, self.labels).asnumpy()))
        return self.losses[-1]

    def work(self) -> dict[str, float]:
        """What a step does: a batch of images."""
        return {"images": float(len(self.labels))}

    def check(self, loss: float) -> None:
        """Nothing is learnt yet: the loss is near that of a guess.

        Raises:
            WorkloadError: it is not.
        """
        guess_loss = math.log(self.train.dense.out_channels)
        if not abs(loss - guess_loss) < 1:
            raise _wrong(f"its first loss is {loss}; random weights give {guess_loss:.2f}")

    def teardown(self) -> None:
        """Judge the first steps, now that none is timed any more.

        Raises:
            WorkloadError: they did not lower the loss.
        """
        if (fault := training_fault(self.losses)) is not None:
            raise _wrong(fault)


def _wrong(what: str) -> WorkloadError:
    return wrong_result(
        f"the classifier does not train correctly: {what}.", check="the build of MindSpore"
    )


def training(*, batch: int = 64, features: int = 512, classes: int = 1000) -> Training:
    """Set up a random batch of batch×features with labels, in graph mode."""
    ms.set_context(mode=ms.GRAPH_MODE)
    images = np.random.standard_normal((batch, features)).astype(np.float32)
    labels = np.random.randint(classes, size=batch).astype(np.int32)
    step = Step(features, classes).set_train()
    return Training(train=step, images=ms.Tensor(images), labels=ms.Tensor(labels))
