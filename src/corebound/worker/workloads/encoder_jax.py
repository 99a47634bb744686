"""The Transformer encoder in JAX, with the weights that every runtime has."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from corebound.worker.workloads.shared import encoder, inference_jax
from corebound.worker.workloads.shared.inference import Inference
from corebound.worker.workloads.shared.inference_jax import Weights


def inference(
    *,
    batch: int = 1,
    sequence: int = 128,
    layers: int = 12,
    dtype: str = "float32",
    mode: str = "usual",
) -> Inference:
    """Set up the forward pass of batch×sequence words; a sequence of at most 512."""
    del mode

    def forward(weights: Weights, words: Any) -> Any:
        hidden = weights["_tokens.weight"][words] + weights["_positions.weight"][:sequence]
        hidden = _norm(weights, "_norm", hidden)
        for layer in range(layers):
            hidden = _layer(weights, encoder.prefix_of(layer), hidden)
        return hidden

    return inference_jax.inference(
        forward,
        name="the encoder",
        weights=encoder.weights(layers),
        inputs=encoder.words(batch, sequence),
        types=(dtype, "int32"),
        shape=(batch, sequence, encoder.WIDTH),
        unit="sequences",
    )


def _layer(weights: Weights, prefix: str, hidden: Any) -> Any:
    attention = f"{prefix}self_attn."
    joined = _product(
        hidden, weights[f"{attention}in_proj_weight"], weights[f"{attention}in_proj_bias"]
    )
    by_head = (*hidden.shape[:2], encoder.HEADS, encoder.HEAD_WIDTH)
    query, key, value = (part.reshape(by_head) for part in jnp.split(joined, 3, axis=-1))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(encoder.HEAD_WIDTH)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), value)
    mixed = _product(
        mixed.reshape(hidden.shape),
        weights[f"{attention}out_proj.weight"],
        weights[f"{attention}out_proj.bias"],
    )
    hidden = _norm(weights, f"{prefix}norm1", hidden + mixed)
    inner = _product(hidden, weights[f"{prefix}linear1.weight"], weights[f"{prefix}linear1.bias"])
    inner = jax.nn.gelu(inner, approximate=False)
    outer = _product(inner, weights[f"{prefix}linear2.weight"], weights[f"{prefix}linear2.bias"])
    return _norm(weights, f"{prefix}norm2", hidden + outer)


def _product(numbers: Any, weight: Any, bias: Any) -> Any:
    return numbers @ weight.T + bias


def _norm(weights: Weights, name: str, numbers: Any) -> Any:
    centred = numbers - numbers.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    scaled = centred * jax.lax.rsqrt(variance + encoder.EPSILON)
    return scaled * weights[f"{name}.weight"] + weights[f"{name}.bias"]
