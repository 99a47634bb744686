"""Trained networks in OpenVINO: ResNet-50, an encoder, and model files of users."""

from __future__ import annotations

from functools import partial

from corebound.worker.adapters.openvino import CompiledModel
from corebound.worker.workloads.shared import inference_onnx
from corebound.worker.workloads.shared.inference import Inference, OnnxModel

_PRECISIONS = {"float32": "f32", "bfloat16": "bf16"}
_PINNED = {"pinned": True, "unpinned": False}


def _load(model: OnnxModel, *, mode: str, dtype: str) -> Inference:
    """Compile a model."""
    compiled = CompiledModel(
        model.graph,
        precision=_PRECISIONS[dtype],
        hint="THROUGHPUT" if mode == "throughput" else "LATENCY",
        pinned=_PINNED.get(mode),
    )
    return model.inference("OpenVINO", compiled.run, requests=compiled.request_count)


resnet50 = partial(inference_onnx.resnet50, _load)
encoder = partial(inference_onnx.encoder, _load)
from_file = partial(inference_onnx.from_file, _load)
