"""Data-parallel training in PyTorch: processes share a batch and add up their gradients.

The worker is rank 0. It starts the others itself, as this module's command, and
tells each by one byte on its standard input what to do next; they end when it
closes. Gradients meet through gloo on the loopback interface, and the processes
find one another through a file in the launch's folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from corebound.worker.workload import WorkloadError
from corebound.workloads import cpu_time, image_training_pytorch
from corebound.workloads.training_pytorch import Training, training

# What rank 0 tells the others.
STEP = b"s"
COMPARE = b"c"

LEAVE_S = 10.0


class Rank:
    """One process's part: its share of the batch, and the model that all have."""

    def __init__(
        self, *, rank: int, processes: int, meeting: str, model: str, batch: int, seed: int
    ) -> None:
        """Join the others, and draw the same weights and batch as they do."""
        os.environ["GLOO_SOCKET_IFNAME"] = "lo"
        store = distributed.FileStore(meeting, processes)
        distributed.init_process_group("gloo", store=store, rank=rank, world_size=processes)
        torch.manual_seed(seed)
        whole = image_training_pytorch.step(model=model, batch=batch)
        share = slice(rank * batch // processes, (rank + 1) * batch // processes)
        self.training: Training = training(
            DistributedDataParallel(whole.model),
            loss=whole.loss,
            inputs=whole.inputs[share],
            targets=whole.targets[share],
        )

    def alike(self) -> bool:
        """Whether all have the same weights: each takes part in telling."""
        parts = [one.detach().flatten() for one in self.training.model.parameters()]
        own = torch.cat(parts)
        others = [torch.empty_like(own) for _ in range(distributed.get_world_size())]
        distributed.all_gather(others, own)
        return all(torch.equal(own, other) for other in others)


class Distributed:
    """A training step of several processes, timed in the first of them."""

    def __init__(self, rank: Rank, others: list[subprocess.Popen[bytes]], batch: int) -> None:
        self._rank = rank
        self._others = others
        self._batch = batch

    def step(self) -> torch.Tensor:
        """All train once on their shares; returns the loss of rank 0's."""
        self._tell(STEP)
        return self._rank.training.step()

    def work(self) -> dict[str, float]:
        """What a step does: one batch of images, over all processes."""
        return {"images": float(self._batch)}

    def cpu_ns(self) -> int:
        """CPU time of all processes."""
        return cpu_time.with_children_ns(other.pid for other in self._others)

    def check(self, result: torch.Tensor) -> None:
        """The loss falls, and after the update all processes have the same weights.

        Raises:
            WorkloadError: it is not so.
        """
        # Without the wrapper: in training mode its forward pass would wait for the others.
        found = self._rank.training
        module = found.model.module
        Training(
            model=module,
            loss=found.loss,
            optimizer=found.optimizer,
            inputs=found.inputs,
            targets=found.targets,
            random_state=found.random_state,
        ).check(result)
        self._tell(COMPARE)
        if not self._rank.alike():
            raise WorkloadError(
                what="after a step the processes have different weights.",
                mend="Timings of a wrong result mean nothing: check the build of torch.",
            )

    def teardown(self) -> None:
        """Send the others away, and wait until they have gone."""
        for other in self._others:
            if other.stdin is not None:
                other.stdin.close()
        for other in self._others:
            other.wait(LEAVE_S)
        distributed.destroy_process_group()

    def _tell(self, what: bytes) -> None:
        for other in self._others:
            if other.stdin is not None:
                other.stdin.write(what)


def step(*, processes: int = 2, model: str = "large", batch: int = 16) -> Distributed | Training:
    """Set up a step on one batch of batch×3×64×64 random pixels.

    Args:
        processes: Among which the batch is shared; 1: plain training, without gloo.
        model: `small` or `large`, as `image_training_pytorch.classifier` has them.
        batch: Images a step, over all processes; a multiple of their number, and
            two for each at least, for batches are normalised.

    Raises:
        WorkloadError: the batch cannot be shared evenly.
    """
    if processes == 1:
        return image_training_pytorch.step(model=model, batch=batch)
    if batch % processes or batch < 2 * processes:
        raise WorkloadError(
            what=f"a batch of {batch} cannot be shared evenly by {processes} processes.",
            mend="Make `batch` a multiple of `processes`, two for each at least.",
        )
    meeting = str(Path(tempfile.mkdtemp(prefix="meeting-")) / "file")
    seed = torch.initial_seed()
    arguments = [str(each) for each in (processes, meeting, model, batch, seed)]
    others = [
        subprocess.Popen(
            (sys.executable, "-m", __name__, str(rank), str(torch.get_num_threads()), *arguments),
            stdin=subprocess.PIPE,
            bufsize=0,
        )
        for rank in range(1, processes)
    ]
    first = Rank(rank=0, processes=processes, meeting=meeting, model=model, batch=batch, seed=seed)
    return Distributed(first, others, batch)


def follow(arguments: list[str]) -> None:
    """Do what rank 0 says, until it says no more."""
    rank, threads, processes, meeting, model, batch, seed = arguments
    torch.set_num_threads(int(threads))
    one = Rank(
        rank=int(rank),
        processes=int(processes),
        meeting=meeting,
        model=model,
        batch=int(batch),
        seed=int(seed),
    )
    while told := os.read(0, 1):
        if told == STEP:
            one.training.step()
        else:
            one.alike()
    distributed.destroy_process_group()


if __name__ == "__main__":
    follow(sys.argv[1:])
