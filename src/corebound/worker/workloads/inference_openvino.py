"""Trained networks in OpenVINO: ResNet-50, an encoder, and model files of users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from corebound.worker.adapters.openvino import CompiledModel
from corebound.worker.workloads.shared import encoder_onnx, onnx_file, resnet50_onnx
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


def resnet50(
    *, batch: int = 1, image: int = 224, dtype: str = "float32", mode: str = "usual"
) -> Inference:
    """Set up ResNet-50 for batch×3×image×image pixels, with the weights that every runtime has."""
    return _compiled(resnet50_onnx.model(batch=batch, image=image), mode=mode, dtype=dtype)


def encoder(
    *,
    batch: int = 1,
    sequence: int = 128,
    layers: int = 12,
    dtype: str = "float32",
    mode: str = "usual",
) -> Inference:
    """Set up the Transformer encoder for batch×sequence words, with every runtime's weights.

    A sequence has at most 512 words.
    """
    model = encoder_onnx.model(batch=batch, sequence=sequence, layers=layers)
    return _compiled(model, mode=mode, dtype=dtype)


def from_file(
    *, model: str = "", shapes: str = "", below: int = 2, mode: str = "usual"
) -> Inference:
    """Set up a model file of the user's; the parameters are those of `onnx_file.read`."""
    return _compiled(onnx_file.read(model, shapes=shapes, below=below), mode=mode)


def _compiled(model: OnnxModel, *, mode: str, dtype: str = "float32") -> Inference:
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
