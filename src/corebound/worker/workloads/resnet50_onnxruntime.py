"""Inference with ResNet-50 in ONNX Runtime, with the weights that every runtime has."""

from __future__ import annotations

from corebound.worker.workloads.shared import resnet50_onnx
from corebound.worker.workloads.shared.inference_onnxruntime import Inference
from corebound.worker.workloads.shared.inference_onnxruntime import inference as _inference


def inference(
    *, batch: int = 1, image: int = 224, dtype: str = "float32", mode: str = "usual"
) -> Inference:
    """Set up the forward pass of batch×3×image×image pixels to batch×1000 logits."""
    return _inference(
        resnet50_onnx.model(batch=batch, image=image),
        mode=mode,
        dtype=dtype,
        activations=("Conv", "Gemm", "Add", "MaxPool", "GlobalAveragePool"),
    )
