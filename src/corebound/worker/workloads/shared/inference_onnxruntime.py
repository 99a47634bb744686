"""A forward pass in ONNX Runtime, and the check of its output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from corebound.worker.adapters.onnxruntime import Session
from corebound.worker.workloads.shared.onnx_model import OnnxModel


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """The forward pass of one batch through a model."""

    model: OnnxModel
    session: Session

    def step(self) -> NDArray[Any]:
        """Run the model once."""
        return self.session.run(self.model.inputs)

    def work(self) -> dict[str, float]:
        """The work of a step by unit."""
        return self.model.work()

    def check(self, result: NDArray[Any]) -> None:
        """Check that the output has the right shape and is finite and varied.

        Raises:
            WorkloadError: it does not.
        """
        self.model.check(result, runtime="ONNX Runtime")


def inference(model: OnnxModel, *, mode: str) -> Inference:
    """Load a model.

    Args:
        model: The model and its inputs.
        mode: `usual`; `no-spinning`: idle threads sleep at once; `pinned`: each thread of the
            pool has a CPU of its own.
    """
    session = Session(model.graph, spinning=mode != "no-spinning", pinned=mode == "pinned")
    return Inference(model=model, session=session)
