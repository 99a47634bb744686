"""A forward pass in JAX, compiled by XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from numpy.typing import NDArray

from corebound.worker.workloads.shared.inference import Inference

Weights = dict[str, Any]


def inference(
    forward: Callable[[Weights, Any], Any],
    *,
    name: str,
    weights: dict[str, NDArray[Any]],
    inputs: NDArray[Any],
    types: tuple[str, str],
    shape: tuple[int, ...],
    unit: str,
) -> Inference:
    """Set up the forward pass of one batch, which XLA compiles in the first step.

    Args:
        name: As in Inference.
        inputs: Its second argument; the batch is the first dimension.
        types: The types that weights and inputs are converted to.
        shape: As in Inference.
        unit: As in Inference.
    """
    compiled = jax.jit(forward)
    on_device = {key: jnp.asarray(values, types[0]) for key, values in weights.items()}
    batch = jnp.asarray(inputs, types[1])
    return Inference(
        name=name,
        runtime="JAX",
        step=lambda: compiled(on_device, batch).block_until_ready(),
        shape=shape,
        unit=unit,
        count=len(inputs),
    )
