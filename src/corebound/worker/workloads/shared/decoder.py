"""A small decoder for every runtime: its sizes, equal weights and equal texts. Uses only NumPy.

It has GPT-2's layout: words and positions are embedded, then layers follow, each of which adds
attention and two products with GELU (the tanh approximation) between them to its normalised input.
Four layers of width 512 with eight heads and a vocabulary of 8,000 are 21 million parameters, and
33 MFLOP a word besides attention. Like larger decoders, it is limited by reading weights and the
cache from memory. Names and layouts of weights are those of `decoder_pytorch.Decoder`.

Source: Radford et al., Language Models are Unsupervised Multitask Learners (2019).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from corebound.worker.workloads.shared.seeded_numbers import SeededNumbers

VOCABULARY = 8_000
WIDTH = 512
HEADS = 8
LAYERS = 4
INNER_WIDTH = 4 * WIDTH
EPSILON = 1e-5

# The first tokens of the vocabulary are special, and one for each byte; the others are words.
SPECIAL_TOKENS = ("<unk>", "<s>", "</s>")
FIRST_WORD = len(SPECIAL_TOKENS) + 256

Weights = dict[str, NDArray[np.float32]]


def prefix_of(layer: int) -> str:
    """What the names of a layer's weights start with."""
    return f"_layers.{layer}."


def weights(context: int) -> Weights:
    """All weights by name; products have the shape outputs×inputs, as PyTorch stores them.

    A product's variance is 1/inputs, which keeps the magnitude (LeCun).

    Args:
        context: The number of positions.
    """
    numbers = SeededNumbers()
    result: Weights = {"_tokens.weight": numbers.uniform((VOCABULARY, WIDTH), -1.0, 1.0)}

    def add_norm(name: str) -> None:
        result[f"{name}.weight"] = numbers.uniform((WIDTH,), 0.8, 1.2)
        result[f"{name}.bias"] = numbers.uniform((WIDTH,), -0.1, 0.1)

    def add_product(name: str, outputs: int, inputs: int) -> None:
        limit = math.sqrt(3 / inputs)
        result[f"{name}.weight"] = numbers.uniform((outputs, inputs), -limit, limit)
        result[f"{name}.bias"] = numbers.uniform((outputs,), -0.1, 0.1)

    for layer in range(LAYERS):
        prefix = prefix_of(layer)
        add_norm(f"{prefix}_norm")
        add_product(f"{prefix}_projection", 3 * WIDTH, WIDTH)
        add_product(f"{prefix}_output", WIDTH, WIDTH)
        add_norm(f"{prefix}_perceptron.0")
        add_product(f"{prefix}_perceptron.1", INNER_WIDTH, WIDTH)
        add_product(f"{prefix}_perceptron.3", WIDTH, INNER_WIDTH)
    add_norm("_norm")
    add_product("_head", VOCABULARY, WIDTH)
    del result["_head.bias"]
    # The last ones, so that the others do not depend on the number of positions.
    result["_positions.weight"] = numbers.uniform((context, WIDTH), -1.0, 1.0)
    return result


def words(batch: int, length: int) -> NDArray[np.int64]:
    """Random words, batch×length: the same in every environment."""
    return SeededNumbers(batch * 10_000 + length).below(VOCABULARY, (batch, length))


def text_of(word: int) -> str:
    """What a token looks like in a text; empty for a special one or a byte.

    >>> text_of(300), text_of(2)
    (' w300', '')
    """
    return f" w{word}" if word >= FIRST_WORD else ""
