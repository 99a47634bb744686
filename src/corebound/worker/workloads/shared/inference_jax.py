"""A forward pass in JAX, compiled by XLA, and the check of its output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from corebound.worker.workloads.shared.onnx_model import require_valid

Weights = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """The forward pass of one batch through a model.

    Attributes:
        name: The model's name in error messages.
        forward: The compiled function of weights and inputs.
        weights, inputs: Its arguments.
        shape: The shape of its output.
        unit, count: What a step processes, and how many of it.
    """

    name: str
    forward: Callable[[Weights, Any], Any]
    weights: Weights
    inputs: Any
    shape: tuple[int, ...]
    unit: str
    count: int

    def step(self) -> Any:
        """Run the model once, and wait for the result."""
        return self.forward(self.weights, self.inputs).block_until_ready()

    def work(self) -> dict[str, float]:
        """The work of a step by unit."""
        return {self.unit: float(self.count)}

    def check(self, result: Any) -> None:
        """Check that the output has the right shape and is finite and varied.

        Raises:
            WorkloadError: it does not.
        """
        numbers = np.asarray(result, dtype=np.float32)
        require_valid(numbers, self.shape, name=self.name, runtime="JAX")


def compiled(forward: Callable[[Weights, Any], Any]) -> Callable[[Weights, Any], Any]:
    """Have XLA compile a function when it is first called."""
    result: Callable[[Weights, Any], Any] = jax.jit(forward)
    return result


def on_device(weights: dict[str, NDArray[Any]], dtype: str) -> Weights:
    """Convert weights to JAX's arrays of a type."""
    return {name: jnp.asarray(values, dtype) for name, values in weights.items()}
