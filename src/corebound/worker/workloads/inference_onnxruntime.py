"""Trained networks in ONNX Runtime: ResNet-50, an encoder, and model files; float32 or int8."""

from __future__ import annotations

from functools import partial

from corebound.worker.adapters.onnxruntime import Session, quantized, run_once
from corebound.worker.workloads.shared import inference_onnx
from corebound.worker.workloads.shared.inference import Inference, OnnxModel


def _load(model: OnnxModel, *, mode: str, dtype: str) -> Inference:
    """Load a model."""
    is_float = dtype == "float32"
    graph = model.graph if is_float else quantized(model.graph, model.inputs, model.fixed_ranges)
    session = Session(graph, spinning=mode != "no-spinning", pinned=mode == "pinned")
    return model.inference(
        "ONNX Runtime",
        session.run,
        reference=None if is_float else run_once(model.graph, model.inputs),
    )


resnet50 = partial(inference_onnx.resnet50, _load)
encoder = partial(inference_onnx.encoder, _load)
from_file = partial(inference_onnx.from_file, _load)
