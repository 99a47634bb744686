"""Training with checkpoints in MindSpore, written synchronously or in a background thread."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import mindspore as ms
import numpy as np
from mindspore import nn

from corebound.worker.workloads.shared.result_checks import wrong_result
from corebound.worker.workloads.shared.small_network import Shape, Training
from corebound.worker.workloads.small_network_mindspore import set_up

# The name that MindSpore gives the thread which writes for it.
WRITER = "asyn_save_ckpt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpointing:
    """A number of training steps, followed by a checkpoint."""

    training: Training
    network: nn.Cell
    steps: int
    asynchronous: bool
    folder: Path

    @property
    def file(self) -> Path:
        """Where the checkpoint is written, over the one before."""
        return self.folder / "network.ckpt"

    def step(self) -> None:
        """Train, then save; without steps, this times only how long the save blocks."""
        for _ in range(self.steps):
            self.training.step()
        ms.save_checkpoint(self.network, str(self.file), async_save=self.asynchronous)

    def cpu_ns(self) -> int:
        """CPU time so far, read once a save has ended that nothing else overlaps with.

        The wall clock has stopped by then. Between steps of training the save
        goes on: MindSpore itself lets one wait for the one before.
        """
        if self.steps == 0:
            _wait()
        return time.process_time_ns()

    def check(self, _result: object) -> None:
        """Read the checkpoint back.

        Raises:
            WorkloadError: a parameter is not in it, or not as it is in the network.
        """
        _wait()
        saved = ms.load_checkpoint(str(self.file))
        for parameter in self.network.trainable_params():
            saved_parameter = saved.get(parameter.name)
            if saved_parameter is None or not np.array_equal(
                saved_parameter.asnumpy(), parameter.asnumpy()
            ):
                raise wrong_result(
                    f"the checkpoint does not contain the trained `{parameter.name}`.",
                    check="the file system",
                )

    def teardown(self) -> None:
        """Let the last save end, take the file away, and judge the training.

        Raises:
            WorkloadError: the loss did not fall.
        """
        _wait()
        shutil.rmtree(self.folder)
        self.training.teardown()


def _wait() -> None:
    for thread in threading.enumerate():
        if thread.name == WRITER:
            thread.join()


def checkpointing(
    *, width: int = 512, layers: int = 9, steps: int = 0, asynchronous: bool = False
) -> Checkpointing:
    """Set up a small network, of about 10 MB by default, that is saved in every iteration.

    Args:
        width: The columns of each layer.
        steps: Training steps before each save; 0: only saves, timing how long they block.
        asynchronous: Whether a thread writes while the training continues.
    """
    ms.set_context(mode=ms.GRAPH_MODE)
    training, network = set_up(Shape(batch=64, width=width, layers=layers))
    return Checkpointing(
        training=training,
        network=network,
        steps=steps,
        asynchronous=asynchronous,
        folder=Path(tempfile.mkdtemp()),
    )
