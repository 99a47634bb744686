"""A forward pass in OpenVINO, and the check of its output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from corebound.worker.adapters.openvino import CompiledModel
from corebound.worker.workloads.shared.onnx_model import OnnxModel

_PRECISIONS = {"float32": "f32", "bfloat16": "bf16"}
_PINNED = {"pinned": True, "unpinned": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """The forward pass of one batch, or of several at once."""

    model: OnnxModel
    compiled: CompiledModel

    def step(self) -> NDArray[Any]:
        """Run the model once, or once per request that runs at the same time."""
        return self.compiled.run(self.model.inputs)

    def work(self) -> dict[str, float]:
        """The work of a step by unit."""
        return {
            unit: count * self.compiled.request_count for unit, count in self.model.work().items()
        }

    def check(self, result: NDArray[Any]) -> None:
        """Check that the output has the right shape and is finite and varied.

        Raises:
            WorkloadError: it does not.
        """
        self.model.check(result, runtime="OpenVINO")


def inference(model: OnnxModel, *, dtype: str, mode: str) -> Inference:
    """Compile a model.

    Args:
        model: The model and its inputs.
        dtype: The type that it computes in.
        mode: `usual`; `pinned` and `unpinned`: whether threads are bound to CPUs;
            `throughput`: several requests at once, in streams that divide the threads.
    """
    compiled = CompiledModel(
        model.graph,
        precision=_PRECISIONS[dtype],
        hint="THROUGHPUT" if mode == "throughput" else "LATENCY",
        pinned=_PINNED.get(mode),
    )
    return Inference(model=model, compiled=compiled)
