"""The Transformer encoder in ONNX Runtime, with the weights that every runtime has."""

from __future__ import annotations

from corebound.worker.workloads.shared import encoder_onnx
from corebound.worker.workloads.shared.inference_onnxruntime import Inference
from corebound.worker.workloads.shared.inference_onnxruntime import inference as _inference


def inference(
    *,
    batch: int = 1,
    sequence: int = 128,
    layers: int = 12,
    dtype: str = "float32",
    mode: str = "usual",
) -> Inference:
    """Set up the forward pass of batch×sequence words; a sequence of at most 512."""
    model = encoder_onnx.model(batch=batch, sequence=sequence, layers=layers)
    return _inference(model, mode=mode, dtype=dtype)
