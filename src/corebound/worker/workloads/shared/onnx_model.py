"""A model in the ONNX format with its inputs and the check of its output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebound.worker.workloads.shared.result_checks import wrong_result


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxModel:
    """A model, one batch of inputs, and what is known of its output.

    Attributes:
        name: The model's name in error messages.
        graph: The serialised model, or the path of its file.
        inputs: One batch, by the name of the input.
        shape: The shape of its first output; None if it is not known.
        unit, count: What a step processes, and how many of it; without a unit, no work is
            reported.
    """

    name: str
    graph: bytes | str
    inputs: dict[str, NDArray[Any]]
    shape: tuple[int, ...] | None = None
    unit: str | None = None
    count: int = 0

    def work(self) -> dict[str, float]:
        """The work of a step by unit."""
        return {} if self.unit is None else {self.unit: float(self.count)}

    def check(self, result: NDArray[Any], *, runtime: str) -> None:
        """Check that the output has the right shape and is finite and varied.

        Raises:
            WorkloadError: it does not.
        """
        require_valid(result, self.shape, name=self.name, runtime=runtime)


def require_valid(
    result: NDArray[Any], shape: tuple[int, ...] | None, *, name: str, runtime: str
) -> None:
    """Reject an output that no model would produce.

    Args:
        result: The output.
        shape: Its expected shape; None if any is right, and equal numbers too.
        name: The model's name.
        runtime: The runtime's name.

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
