"""A model file in the ONNX format, with random inputs of its own types and shapes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import helper

from corebound.worker.workload import WorkloadError
from corebound.worker.workloads.shared import model_file
from corebound.worker.workloads.shared.inference import OnnxModel
from corebound.worker.workloads.shared.seeded_numbers import SeededNumbers


def read(path: str, *, shapes: str, below: int) -> OnnxModel:
    """Read which inputs a model file has, and draw them at random, the same in each launch.

    Args:
        path: The model's file; weights in other files may be beside it.
        shapes: The shapes of inputs, such as `1x3x224x224`, in the model's order, separated by
            spaces; empty if the model's own shapes are fixed.
        below: Whole numbers are drawn from 0 up to, but not including, this one. Other numbers
            are drawn from 0 to 1.

    Raises:
        WorkloadError: there is no such model, or `shapes` does not fit it.
    """
    # Any byte may be the first one of a message of protobuf.
    model_file.require(Path(path), begins=b"", kind="a model in the ONNX format (.onnx)")
    try:
        graph = onnx.load(path, load_external_data=False).graph
    except (DecodeError, OSError) as error:
        raise WorkloadError(
            what=f"{path} is not a model in the ONNX format: {error}.",
            fix="Export the model again, for example with torch.onnx.export.",
        ) from error
    constants = {constant.name for constant in graph.initializer}
    inputs = [value for value in graph.input if value.name not in constants]
    numbers = SeededNumbers()
    return OnnxModel(
        name=Path(path).name,
        graph=path,
        versions=model_file.version(Path(path)),
        inputs={
            value.name: _drawn(numbers, shape, value.type.tensor_type.elem_type, below)
            for value, shape in zip(inputs, _shapes(inputs, shapes), strict=True)
        },
    )


def _shapes(inputs: list[Any], written: str) -> list[tuple[int, ...]]:
    """The shape of each input: as written, or else the model's own."""
    own = [
        tuple(dimension.dim_value for dimension in value.type.tensor_type.shape.dim)
        for value in inputs
    ]
    names = " ".join(
        f"{value.name}:{'x'.join(str(size or '?') for size in shape) or 'scalar'}"
        for value, shape in zip(inputs, own, strict=True)
    )
    fix = f"Write one shape for each input in `shapes`, such as 1x3x224x224; it has {names}."
    try:
        given = [tuple(map(int, shape.split("x"))) for shape in written.split()]
    except ValueError:
        raise WorkloadError(what=f"`shapes: {written}` is not a list of shapes.", fix=fix) from None
    if not given and all(all(shape) for shape in own):
        return own
    fits = len(given) == len(own) and all(
        len(shape) == len(fixed)
        and all(size > 0 and limit in {0, size} for size, limit in zip(shape, fixed, strict=True))
        for shape, fixed in zip(given, own, strict=True)
    )
    if not fits:
        what = "`shapes` does not fit the model." if given else "the model's shapes are not fixed."
        raise WorkloadError(what=what, fix=fix)
    return given


def _drawn(
    numbers: SeededNumbers, shape: tuple[int, ...], element: int, below: int
) -> NDArray[Any]:
    kind = np.dtype(helper.tensor_dtype_to_np_dtype(element))
    if kind.kind == "f":
        return numbers.uniform(shape, 0.0, 1.0).astype(kind)
    if kind.kind not in "iub":
        raise WorkloadError(
            what=f"an input has the type {kind}, of which no numbers can be drawn.",
            fix="Write a function of your own that makes the inputs: `workload: module:function`.",
        )
    return numbers.below(below, shape).astype(kind)
