"""Inference with a model file of the user's in OpenVINO."""

from __future__ import annotations

from corebound.worker.workloads.shared import onnx_file
from corebound.worker.workloads.shared.inference_openvino import Inference
from corebound.worker.workloads.shared.inference_openvino import inference as _inference


def inference(
    *, model: str = "", shapes: str = "", below: int = 2, mode: str = "usual"
) -> Inference:
    """Set up one run of the model with random inputs; parameters are those of `onnx_file.read`."""
    return _inference(onnx_file.read(model, shapes=shapes, below=below), dtype="float32", mode=mode)
