"""Training from image files in PyTorch: decodes and prepares a batch, then trains one step on it.

Combines a small or large network with light or heavy preprocessing, which gives four
classes of bottleneck, and any number of loader processes.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader

from corebound.worker.workloads.image_training_pytorch import CLASSES, classifier
from corebound.worker.workloads.shared import cpu_time, cuda_pytorch
from corebound.worker.workloads.shared.image_files_pytorch import photographs
from corebound.worker.workloads.shared.inference_pytorch import require_valid
from corebound.worker.workloads.shared.result_checks import require_learning
from corebound.worker.workloads.shared.training_pytorch import train

FILES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class EndlessSampler:
    """The places of a set in order, over and over, so that loaders never stop."""

    count: int

    def __iter__(self) -> Iterator[int]:
        while True:
            yield from range(self.count)

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """What a step saw and made of it."""

    images: torch.Tensor
    labels: torch.Tensor
    loss: torch.Tensor


class Pipeline:
    """Each step waits for the next batch and trains on it."""

    def __init__(
        self,
        model: nn.Module,
        batches: Iterator[list[torch.Tensor]],
        shape: tuple[int, ...],
        device: str,
    ) -> None:
        self.model = model.to(device).train()
        self._batches = batches
        self._shape = shape
        self._device = device
        self._optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def step(self) -> StepResult:
        """Take a batch, and train on it once."""
        images, labels = (part.to(self._device) for part in next(self._batches))
        loss = train(self.model, nn.functional.cross_entropy, self._optimizer, images, labels)
        return StepResult(images=images, labels=labels, loss=loss)

    def work(self) -> dict[str, float]:
        """What a step does: one batch of images."""
        return {"images": float(self._shape[0])}

    def check(self, result: StepResult) -> None:
        """Sound images, and an update that lowered their loss.

        Raises:
            WorkloadError: it is not so.
        """
        require_valid(result.images, self._shape, "the preprocessing")
        with torch.no_grad():
            after = nn.functional.cross_entropy(self.model(result.images), result.labels)
        require_learning(float(result.loss), float(after))

    def cpu_ns(self) -> int:
        """CPU time of this process and of its loaders."""
        children = (child.pid for child in multiprocessing.active_children())
        return cpu_time.cpu_time_with_children_ns(pid for pid in children if pid is not None)

    def teardown(self) -> None:
        """End the loaders: they do so when nobody holds their batches any more."""
        self._batches = iter(())


def step(
    *,
    model: str = "small",
    preprocessing: str = "light",
    loaders: int = 0,
    batch: int = 16,
    image: int = 64,
    gpus: int = 0,
) -> Pipeline:
    """Set up training from 64 image files that are held in memory.

    Args:
        model: `small` or `large`, as `image_training_pytorch.classifier` has them.
        preprocessing: `light` or `heavy`, as `image_files_pytorch.photographs` has them.
        loaders: Processes that prepare batches ahead; 0: the step does it itself.
        image: Their side once they are prepared.
        gpus: 0: trains on the CPU; 1: on the first GPU. Batches are prepared on CPUs.

    Raises:
        WorkloadError: A GPU is asked for that torch does not find.
    """
    device = cuda_pytorch.device(gpus)
    dataset = photographs(count=FILES, classes=CLASSES, preprocessing=preprocessing, side=image)
    batches = DataLoader(
        dataset,
        batch_size=batch,
        sampler=EndlessSampler(count=FILES),
        num_workers=loaders,
        multiprocessing_context="fork" if loaders else None,
        pin_memory=bool(gpus),
    )
    # Loaders are forked before this process has anything on a GPU.
    prepared = iter(batches)
    return Pipeline(classifier(model), prepared, (batch, 3, image, image), device)
