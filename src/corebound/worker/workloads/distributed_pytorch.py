"""Data-parallel training in PyTorch: processes or threads share a batch and add up their gradients.

`ddp` is DistributedDataParallel. The worker is rank 0. It starts the other processes itself,
with this module as their program, and sends each one byte on its standard input for each
action. They end when that input closes. Gradients are exchanged through gloo, or through NCCL
if each process has a GPU, on the loopback interface. The processes find one another through a
file in the launch's folder.

`dp` is DataParallel, the predecessor of `ddp`: one process with a thread for each GPU. Without
GPUs it does nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import distributed
from torch.nn.parallel import DataParallel, DistributedDataParallel

from corebound.worker.workload import WorkloadError
from corebound.worker.workloads import image_training_pytorch
from corebound.worker.workloads.shared import cpu_time, cuda_pytorch
from corebound.worker.workloads.shared.result_checks import wrong_result
from corebound.worker.workloads.shared.training_pytorch import Training, training

# What rank 0 tells the others.
STEP = b"s"
COMPARE = b"c"

LEAVE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What all processes of a step have to agree on.

    Attributes:
        processes: How many there are.
        meeting: A file that is not there yet, through which they find one another.
        model, batch: What is trained, and images a step over all processes.
        seed: For the same weights and the same batch in each.
        gpus: As many as there are processes, or 0.
    """

    processes: int
    meeting: str
    model: str
    batch: int
    seed: int
    gpus: int


class Rank:
    """One process's part: its share of the batch, and the model that all have."""

    def __init__(self, rank: int, group: Group) -> None:
        """Join the others, and draw the same weights and batch as they do."""
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = "lo"
        store = distributed.FileStore(group.meeting, group.processes)
        if group.gpus:
            torch.cuda.set_device(rank)
        distributed.init_process_group(
            "nccl" if group.gpus else "gloo", store=store, rank=rank, world_size=group.processes
        )
        torch.manual_seed(group.seed)
        full = image_training_pytorch.step(model=group.model, batch=group.batch)
        share = slice(
            rank * group.batch // group.processes, (rank + 1) * group.batch // group.processes
        )
        device = f"cuda:{rank}" if group.gpus else "cpu"
        self.training: Training = training(
            DistributedDataParallel(
                full.model.to(device), device_ids=[rank] if group.gpus else None
            ),
            loss=full.loss,
            inputs=full.inputs[share].to(device),
            targets=full.targets[share].to(device),
        )

    def has_equal_weights(self) -> bool:
        """Whether all have the same weights: each takes part in telling."""
        parts = [parameter.detach().flatten() for parameter in self.training.model.parameters()]
        weights = torch.cat(parts)
        others = [torch.empty_like(weights) for _ in range(distributed.get_world_size())]
        distributed.all_gather(others, weights)
        return all(torch.equal(weights, weights_of_other) for weights_of_other in others)


class Distributed:
    """A training step of several processes, timed in the first of them."""

    def __init__(self, rank: Rank, others: list[subprocess.Popen[bytes]], group: Group) -> None:
        self._rank = rank
        self._others = others
        self._group = group

    def step(self) -> torch.Tensor:
        """All train once on their shares; returns the loss of rank 0's."""
        self._send(STEP)
        return self._rank.training.step()

    def work(self) -> dict[str, float]:
        """What a step does: one batch of images, over all processes."""
        return {"images": float(self._group.batch)}

    def cpu_ns(self) -> int:
        """CPU time of all processes."""
        return cpu_time.cpu_time_with_children_ns(other.pid for other in self._others)

    def check(self, result: torch.Tensor) -> None:
        """The loss falls, and after the update all processes have the same weights.

        Raises:
            WorkloadError: it is not so.
        """
        # Without the wrapper: in training mode its forward pass would wait for the others.
        training_of_rank = self._rank.training
        module = training_of_rank.model.module
        Training(
            model=module,
            loss=training_of_rank.loss,
            optimizer=training_of_rank.optimizer,
            inputs=training_of_rank.inputs,
            targets=training_of_rank.targets,
            random_state=training_of_rank.random_state,
        ).check(result)
        self._send(COMPARE)
        if not self._rank.has_equal_weights():
            raise wrong_result(
                "after a step the processes have different weights.", check="the build of torch"
            )

    def teardown(self) -> None:
        """Send the others away, and wait until they have gone."""
        for other in self._others:
            if other.stdin is not None:
                other.stdin.close()
        for other in self._others:
            other.wait(LEAVE_S)
        distributed.destroy_process_group()

    def _send(self, action: bytes) -> None:
        for other in self._others:
            if other.stdin is not None:
                other.stdin.write(action)


def step(
    *, method: str = "ddp", processes: int = 2, model: str = "large", batch: int = 16, gpus: int = 0
) -> Distributed | Training:
    """Set up a step on one batch of batch×3×64×64 random pixels.

    Args:
        method: `ddp`, or `dp`: one process that has two GPUs or more.
        processes: The number of processes that share the batch; 1: plain training, or `dp`.
        model: `small` or `large`, as `image_training_pytorch.classifier` has them.
        batch: Images per step, over all processes or GPUs. It must be a multiple of their
            number, with at least two images for each, because of batch normalization.
        gpus: 0: on the CPU. Otherwise each process of `ddp` has one.

    Raises:
        WorkloadError: the batch cannot be shared evenly, or the GPUs do not suit the method.
    """
    _require_compatible(method, processes=processes, gpus=gpus)
    _require_even(batch, parts=gpus if method == "dp" else processes)
    if gpus:
        cuda_pytorch.require(gpus)
    if processes > 1:
        return _start(
            Group(
                processes=processes,
                meeting=str(Path(tempfile.mkdtemp(prefix="meeting-")) / "file"),
                model=model,
                batch=batch,
                seed=torch.initial_seed(),
                gpus=gpus,
            )
        )
    full = image_training_pytorch.step(model=model, batch=batch, gpus=min(gpus, 1))
    if method == "ddp":
        return full
    return training(
        DataParallel(full.model, device_ids=list(range(gpus))),
        loss=full.loss,
        inputs=full.inputs,
        targets=full.targets,
    )


def _require_compatible(method: str, *, processes: int, gpus: int) -> None:
    if method == "dp" and gpus < 2:
        raise WorkloadError(
            what=f"DataParallel has no effect with fewer than two GPUs, and the cell has {gpus}.",
            fix="Write `gpus: 2` or more for `method: dp`.",
        )
    if method == "dp" and processes != 1:
        raise WorkloadError(
            what=f"DataParallel runs in one process, but the cell requests {processes}.",
            fix="Write `processes: 1` for `method: dp`.",
        )
    if method == "ddp" and gpus not in {0, processes}:
        raise WorkloadError(
            what=f"{processes} processes cannot share {gpus} GPUs: each process needs its own.",
            fix="Write as many `processes` as `gpus` for `method: ddp`.",
        )


def _require_even(batch: int, *, parts: int) -> None:
    if parts > 1 and (batch % parts or batch < 2 * parts):
        raise WorkloadError(
            what=f"a batch of {batch} cannot be shared evenly by {parts}.",
            fix="Make `batch` a multiple of `processes` (or of `gpus`), at least two for each.",
        )


def _start(group: Group) -> Distributed:
    """Start the other processes, and join them as rank 0."""
    arguments = [str(value) for value in asdict(group).values()]
    others = [
        subprocess.Popen(
            (sys.executable, "-m", __name__, str(rank), str(torch.get_num_threads()), *arguments),
            stdin=subprocess.PIPE,
            bufsize=0,
        )
        for rank in range(1, group.processes)
    ]
    return Distributed(Rank(0, group), others, group)


def run_rank(arguments: list[str]) -> None:
    """Do what rank 0 says, until it says no more."""
    rank, threads, processes, meeting, model, batch, seed, gpus = arguments
    torch.set_num_threads(int(threads))
    group = Group(
        processes=int(processes),
        meeting=meeting,
        model=model,
        batch=int(batch),
        seed=int(seed),
        gpus=int(gpus),
    )
    own = Rank(int(rank), group)
    while action := os.read(0, 1):
        if action == STEP:
            own.training.step()
        else:
            own.has_equal_weights()
    distributed.destroy_process_group()


if __name__ == "__main__":
    run_rank(sys.argv[1:])
