"""A forward pass in any runtime, and the checks of its output. Uses only NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebound.worker.workloads.shared.result_checks import LEAST_COSINE, wrong_result


@dataclass(frozen=True, kw_only=True)
class Inference:
    """The forward pass of one batch through a model.

    Attributes:
        name: The model's name in error messages.
        step: Runs the model once and returns its first output.
        shape: The shape of that; None if it is not known.
        unit, count: What a step processes, and how many of it; without a unit, no work is
            reported.
        reference: The output of float32 that a quantized model's is near to; None if it is not
            quantized.
        versions: Those of its model file, if the user named one.
    """

    name: str
    runtime: str
    step: Callable[[], Any]
    shape: tuple[int, ...] | None = None
    unit: str | None = None
    count: int = 0
    reference: NDArray[Any] | None = None
    versions: Mapping[str, str] = field(default_factory=dict)

    def work(self) -> dict[str, float]:
        """The work of a step by unit."""
        return {} if self.unit is None else {self.unit: float(self.count)}

    def check(self, result: Any) -> None:
        """Check that the output is finite and varied, of the right shape, and near the reference.

        Raises:
            WorkloadError: it is not.
        """
        numbers = np.asarray(result)
        if numbers.dtype.kind == "V":  # NumPy has no bfloat16 of its own
            numbers = numbers.astype(np.float32)
        require_valid(numbers, self.shape, name=self.name, runtime=self.runtime)
        if self.reference is None:
            return
        cosine = float(np.vdot(numbers, self.reference)) / float(
            np.linalg.norm(numbers) * np.linalg.norm(self.reference)
        )
        if cosine < LEAST_COSINE:
            raise wrong_result(
                f"int8 gave an output whose cosine with that of float32 is {cosine:.3f}.",
                check=f"the build of {self.runtime}",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxModel:
    """A model with one batch of inputs, and what Inference knows of it.

    Attributes:
        graph: The serialised model, or the path of its file.
        inputs: One batch, by the name of the input.
        fixed_ranges: For int8, the operators whose inputs are quantized by ranges found
            beforehand. Empty: products find the ranges of their inputs in each run.
        name, shape, unit, count, versions: As in Inference.
    """

    name: str
    graph: bytes | str
    inputs: dict[str, NDArray[Any]]
    fixed_ranges: tuple[str, ...] = ()
    shape: tuple[int, ...] | None = None
    unit: str | None = None
    count: int = 0
    versions: Mapping[str, str] = field(default_factory=dict)

    def inference(
        self,
        runtime: str,
        run: Callable[[dict[str, NDArray[Any]]], NDArray[Any]],
        *,
        requests: int = 1,
        reference: NDArray[Any] | None = None,
    ) -> Inference:
        """The forward pass by `run`, which maps inputs to the first output, of so many requests."""
        return Inference(
            name=self.name,
            runtime=runtime,
            step=lambda: run(self.inputs),
            shape=self.shape,
            unit=self.unit,
            count=self.count * requests,
            reference=reference,
            versions=self.versions,
        )


def require_valid(
    result: NDArray[Any], shape: tuple[int, ...] | None, *, name: str, runtime: str
) -> None:
    """Reject an output that no model would produce.

    Args:
        shape: Its expected shape; None if any is right, and equal numbers too.

    Raises:
        WorkloadError: its shape is wrong, a number is not finite, or all are the same.
    """
    fault = None
    if shape is not None and result.shape != shape:
        fault = f"{result.shape}, not {shape}"
    elif result.dtype.kind == "f" and not np.isfinite(result).all():
        fault = "numbers that are not finite"
    elif shape is not None and result.size > 1 and float(np.ptp(result)) == 0.0:
        fault = "the same number everywhere"
    if fault is not None:
        raise wrong_result(f"{name} gave {fault}.", check=f"the build of {runtime}")
