"""Training with periodic checkpoints in PyTorch; the launch discards the files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from corebound.worker.workload import WorkloadError
from corebound.worker.workloads import image_training_pytorch
from corebound.worker.workloads.shared.training_pytorch import Training


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """A few training steps with a checkpoint after each `every` of them."""

    training: Training
    steps: int
    every: int
    file: Path

    def step(self) -> torch.Tensor:
        """Train `steps` times and save; returns the loss of each step."""
        losses = []
        for number in range(1, self.steps + 1):
            losses.append(self.training.step())
            if self.every and number % self.every == 0:
                torch.save(self._state(), self.file)
        return torch.stack(losses)

    def work(self) -> dict[str, float]:
        """What an iteration does: a few batches of images."""
        return {"images": float(self.steps * len(self.training.inputs))}

    def check(self, result: torch.Tensor) -> None:
        """The losses fall, and what was saved is what is trained.

        Raises:
            WorkloadError: it is not so.
        """
        self.training.check(result[0])
        if not self.every:
            return
        saved = torch.load(self.file, weights_only=True)["model"]
        trained = self.training.model.state_dict()
        # The check of the training ran the network once more, which moves batch statistics.
        weights = [name for name, _ in self.training.model.named_parameters()]
        if not all(torch.equal(saved[name], trained[name]) for name in weights):
            raise WorkloadError(
                what="the checkpoint does not contain the trained weights.",
                fix="Check whether another program writes to the launch's folder, or the disk is"
                " full.",
            )

    def teardown(self) -> None:
        """Delete the last checkpoint."""
        self.file.unlink(missing_ok=True)

    def _state(self) -> dict[str, object]:
        return {
            "model": self.training.model.state_dict(),
            "optimizer": self.training.optimizer.state_dict(),
        }


def epoch(*, model: str = "large", steps: int = 10, every: int = 1, batch: int = 4) -> Epoch:
    """Set up `steps` training steps on a batch of batch×3×64×64 random pixels.

    Args:
        model: `small` writes 0.3 MB a checkpoint, `large` 90 MB: weights and momenta.
        steps: Training steps per iteration; all iterations do the same work.
        every: The number of steps between checkpoints; 0: no checkpoints.
        batch: Images per step.

    Raises:
        WorkloadError: `every` does not divide `steps`.
    """
    if every and steps % every:
        raise WorkloadError(
            what=f"{steps} steps with a checkpoint every {every} do not save equally often each"
            " time.",
            fix="Make `steps` a multiple of `every`, or `every` 0.",
        )
    return Epoch(
        training=image_training_pytorch.step(model=model, batch=batch),
        steps=steps,
        every=every,
        file=Path("checkpoint.pt"),
    )
