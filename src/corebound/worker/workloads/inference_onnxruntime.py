"""Trained networks in ONNX Runtime: ResNet-50, an encoder, and model files; float32 or int8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebound.worker.adapters.onnxruntime import Session, quantized, run_once
from corebound.worker.workloads.shared import encoder_onnx, onnx_file, resnet50_onnx
from corebound.worker.workloads.shared.onnx_model import OnnxModel
from corebound.worker.workloads.shared.result_checks import LEAST_COSINE, wrong_result


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """The forward pass of one batch through a model.

    Attributes:
        model: The model of float32, with its inputs.
        session: The model that runs.
        reference: The output of float32; None if that is what runs.
    """

    model: OnnxModel
    session: Session
    reference: NDArray[Any] | None = None

    def step(self) -> NDArray[Any]:
        """Run the model once."""
        return self.session.run(self.model.inputs)

    def work(self) -> dict[str, float]:
        """The work of a step by unit."""
        return self.model.work()

    def check(self, result: NDArray[Any]) -> None:
        """Check that the output is finite and varied, of the right shape, and near the reference.

        Raises:
            WorkloadError: it is not.
        """
        self.model.check(result, runtime="ONNX Runtime")
        if self.reference is None:
            return
        cosine = float(np.vdot(result, self.reference)) / float(
            np.linalg.norm(result) * np.linalg.norm(self.reference)
        )
        if cosine < LEAST_COSINE:
            raise wrong_result(
                f"int8 gave an output whose cosine with that of float32 is {cosine:.3f}.",
                check="the build of ONNX Runtime",
            )


def resnet50(
    *, batch: int = 1, image: int = 224, dtype: str = "float32", mode: str = "usual"
) -> Inference:
    """Set up ResNet-50 for batch×3×image×image pixels, with the weights that every runtime has."""
    return _loaded(
        resnet50_onnx.model(batch=batch, image=image),
        mode=mode,
        dtype=dtype,
        activations=("Conv", "Gemm", "Add", "MaxPool", "GlobalAveragePool"),
    )


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
    return _loaded(model, mode=mode, dtype=dtype)


def from_file(
    *, model: str = "", shapes: str = "", below: int = 2, mode: str = "usual"
) -> Inference:
    """Set up a model file of the user's; the parameters are those of `onnx_file.read`."""
    return _loaded(onnx_file.read(model, shapes=shapes, below=below), mode=mode)


def _loaded(
    model: OnnxModel, *, mode: str, dtype: str = "float32", activations: Sequence[str] = ()
) -> Inference:
    """Load a model.

    Args:
        model: The model and its inputs.
        dtype: The type that it computes in: float32 or int8.
        activations: For int8, the operators whose inputs are quantized by ranges found
            beforehand. Empty: products find the ranges of their inputs in each run.
        mode: `usual`; `no-spinning`: idle threads sleep at once; `pinned`: each thread of the
            pool has a CPU of its own.
    """
    is_float = dtype == "float32"
    graph = model.graph if is_float else quantized(model.graph, model.inputs, activations)
    return Inference(
        model=model,
        session=Session(graph, spinning=mode != "no-spinning", pinned=mode == "pinned"),
        reference=None if is_float else run_once(model.graph, model.inputs),
    )
