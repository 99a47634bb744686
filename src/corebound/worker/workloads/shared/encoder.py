"""A Transformer encoder of BERT's size for every runtime: its sizes and equal weights.

Uses only NumPy. Width 768, 12 heads, inner width 3072; words and positions are embedded and
normalised, then layers follow. Each is attention and a network of two products with GELU
between them; both are added to their input and then normalised. Names and layouts of weights
are those of PyTorch's nn.TransformerEncoder.

Source: Devlin et al., BERT (2018), the base model without its pooler.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from corebound.worker.workloads.shared.seeded_numbers import SeededNumbers

VOCABULARY = 30_522
POSITIONS = 512
WIDTH = 768
HEADS = 12
HEAD_WIDTH = WIDTH // HEADS
INNER_WIDTH = 3_072
EPSILON = 1e-5

Weights = dict[str, NDArray[np.float32]]


def prefix_of(layer: int) -> str:
    """What the names of a layer's weights start with."""
    return f"_layers.layers.{layer}."


def weights(layers: int) -> Weights:
    """All weights by name; products have the shape outputs×inputs, as PyTorch stores them.

    A product's variance is 1/inputs, which keeps the magnitude (LeCun).
    """
    numbers = SeededNumbers()
    result: Weights = {
        "_tokens.weight": numbers.uniform((VOCABULARY, WIDTH), -1.0, 1.0),
        "_positions.weight": numbers.uniform((POSITIONS, WIDTH), -1.0, 1.0),
    }

    def add_norm(name: str) -> None:
        result[f"{name}.weight"] = numbers.uniform((WIDTH,), 0.8, 1.2)
        result[f"{name}.bias"] = numbers.uniform((WIDTH,), -0.1, 0.1)

    def add_product(weight: str, bias: str, outputs: int, inputs: int) -> None:
        limit = math.sqrt(3 / inputs)
        result[weight] = numbers.uniform((outputs, inputs), -limit, limit)
        result[bias] = numbers.uniform((outputs,), -0.1, 0.1)

    add_norm("_norm")
    for layer in range(layers):
        prefix = prefix_of(layer)
        attention = f"{prefix}self_attn."
        add_product(f"{attention}in_proj_weight", f"{attention}in_proj_bias", 3 * WIDTH, WIDTH)
        add_product(f"{attention}out_proj.weight", f"{attention}out_proj.bias", WIDTH, WIDTH)
        add_product(f"{prefix}linear1.weight", f"{prefix}linear1.bias", INNER_WIDTH, WIDTH)
        add_product(f"{prefix}linear2.weight", f"{prefix}linear2.bias", WIDTH, INNER_WIDTH)
        add_norm(f"{prefix}norm1")
        add_norm(f"{prefix}norm2")
    return result


def words(batch: int, sequence: int) -> NDArray[np.int64]:
    """Random words, batch×sequence: the same in every environment."""
    return SeededNumbers(batch * 10_000 + sequence).below(VOCABULARY, (batch, sequence))
