"""The decoder in PyTorch with a key-value cache: a step reads a prompt or generates a word."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from corebound.worker.workloads.shared import decoder
from corebound.worker.workloads.shared.decoder import (
    EPSILON,
    HEADS,
    INNER_WIDTH,
    LAYERS,
    VOCABULARY,
    WIDTH,
)
from corebound.worker.workloads.shared.generation import FirstToken, Generation
from corebound.worker.workloads.shared.inference_pytorch import load_weights


class Layer(nn.Module):
    """Attention to every word so far, then a perceptron; both added to what came in."""

    def __init__(self) -> None:
        super().__init__()
        self._norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self._projection = nn.Linear(WIDTH, 3 * WIDTH)
        self._output = nn.Linear(WIDTH, WIDTH)
        self._perceptron = nn.Sequential(
            nn.LayerNorm(WIDTH, eps=EPSILON),
            nn.Linear(WIDTH, INNER_WIDTH),
            nn.GELU(approximate="tanh"),
            nn.Linear(INNER_WIDTH, WIDTH),
        )

    def forward(self, numbers: torch.Tensor, cache: torch.Tensor, begin: int) -> torch.Tensor:
        """Put new words after the `begin` that the cache holds, and attend to all.

        Args:
            numbers: batch×new×512.
            cache: Keys and values, 2×batch×heads×context×64; written to.
            begin: How many words the cache holds.
        """
        batch, new_tokens, _ = numbers.shape
        projected = self._projection(self._norm(numbers)).view(
            batch, new_tokens, 3, HEADS, WIDTH // HEADS
        )
        query, key, value = projected.permute(2, 0, 3, 1, 4)
        end = begin + new_tokens
        cache[0, :, :, begin:end] = key
        cache[1, :, :, begin:end] = value
        mask = torch.ones(new_tokens, end, dtype=torch.bool).tril(begin) if new_tokens > 1 else None
        attended = nn.functional.scaled_dot_product_attention(
            query, cache[0, :, :, :end], cache[1, :, :, :end], attn_mask=mask
        )
        numbers = numbers + self._output(attended.transpose(1, 2).reshape(batch, new_tokens, WIDTH))
        result: torch.Tensor = numbers + self._perceptron(numbers)
        return result


class Decoder(nn.Module):
    """Words in, logits of the next word out."""

    def __init__(self, context: int) -> None:
        super().__init__()
        self._tokens = nn.Embedding(VOCABULARY, WIDTH)
        self._positions = nn.Embedding(context, WIDTH)
        self._layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self._norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self._head = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens: torch.Tensor, cache: torch.Tensor, begin: int) -> torch.Tensor:
        """Of words batch×new, the first at place `begin`, make logits batch×8000 after the last."""
        positions = torch.arange(begin, begin + tokens.shape[1])
        numbers = self._tokens(tokens) + self._positions(positions)
        for layer, layer_cache in zip(self._layers, cache, strict=True):
            numbers = layer(numbers, layer_cache, begin)
        result: torch.Tensor = self._head(self._norm(numbers[:, -1]))
        return result


def inference(
    *,
    batch: int = 1,
    context: int = 256,
    prompt: int = 0,
    dtype: str = "float32",
    mode: str = "usual",
) -> Generation:
    """Set up a batch of texts with a cache for `context` words.

    Args:
        batch: The number of texts.
        context: The words that the cache holds; a prompt is cut to them.
        prompt: The random words that each step reads before it generates one. With 0, each step
            generates one word of a text that begins with one random word.
        mode: Only `usual`; other runtimes have more.
    """
    del mode
    kind = getattr(torch, dtype)
    model = load(context).to(kind)
    cache = empty_cache(batch=batch, context=context).to(kind)

    def decode(words: torch.Tensor | NDArray[np.int64], begin: int) -> torch.Tensor:
        with torch.inference_mode():
            logits: torch.Tensor = model(torch.as_tensor(words), cache, begin)
        return logits

    return (FirstToken if prompt else Generation)(
        decode,
        torch.from_numpy(decoder.words(batch, min(prompt, context) or 1)),
        context=context,
        # bfloat16 has 8 bits: rounding of one part in 256 a layer.
        tolerance=1e-3 if dtype == "float32" else 0.1,
        runtime="torch",
        numbers=lambda logits: logits.float().numpy(),
    )


def load(context: int) -> Decoder:
    """The decoder of float32 with every runtime's weights, and `context` positions."""
    # Random weights take time to draw, and are replaced.
    with torch.device("meta"):
        model = Decoder(context)
    load_weights(model, decoder.weights(context))
    model.eval()
    return model


def empty_cache(*, batch: int, context: int) -> torch.Tensor:
    """A cache of float32 numbers, layers×2×batch×heads×context×64, that holds no words."""
    return torch.zeros(LAYERS, 2, batch, HEADS, context, WIDTH // HEADS)
