"""The models that a runtime reads in the ONNX format: what every such runtime offers.

A runtime binds `load` to a function that loads a model: it gets the OnnxModel, `dtype` and `mode`.
"""

from __future__ import annotations

from collections.abc import Callable

from corebound.worker.workloads.shared import encoder_onnx, onnx_file, resnet50_onnx
from corebound.worker.workloads.shared.inference import Inference

Load = Callable[..., Inference]


def resnet50(
    load: Load, *, batch: int = 1, image: int = 224, dtype: str = "float32", mode: str = "usual"
) -> Inference:
    """Set up ResNet-50 for batch×3×image×image pixels, with the weights that every runtime has."""
    return load(resnet50_onnx.model(batch=batch, image=image), mode=mode, dtype=dtype)


def encoder(
    load: Load,
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
    return load(model, mode=mode, dtype=dtype)


def from_file(
    load: Load, *, model: str = "", shapes: str = "", below: int = 2, mode: str = "usual"
) -> Inference:
    """Set up a model file of the user's; the parameters are those of `onnx_file.read`."""
    return load(onnx_file.read(model, shapes=shapes, below=below), mode=mode, dtype="float32")
