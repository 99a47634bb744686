"""A small decoder in PyTorch that generates one word per step, with a key-value cache.

It has four layers of width 512 with eight heads, a vocabulary of 8,000 and random
weights: 21 million parameters, and 33 MFLOP per word besides attention. Like larger
decoders, it is limited by reading weights and the cache from memory.
"""

from __future__ import annotations

import torch
from torch import nn

from corebound.worker.workload import WorkloadError
from corebound.worker.workloads.inference_pytorch import MEND, require_sound

WORDS = 8_000
WIDTH = 512
HEADS = 8
LAYERS = 4


class Layer(nn.Module):
    """Attention to every word so far, then a perceptron; both added to what came in."""

    def __init__(self) -> None:
        super().__init__()
        self._norm = nn.LayerNorm(WIDTH)
        self._ask = nn.Linear(WIDTH, 3 * WIDTH)
        self._join = nn.Linear(WIDTH, WIDTH)
        self._within = nn.Sequential(
            nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)
        )

    def forward(self, numbers: torch.Tensor, cache: torch.Tensor, begin: int) -> torch.Tensor:
        """Put new words after the `begin` that the cache holds, and attend to all.

        Args:
            numbers: batch×new×512.
            cache: Keys and values, 2×batch×heads×context×64; written to.
            begin: How many words the cache holds.
        """
        batch, new, _ = numbers.shape
        asked = self._ask(self._norm(numbers)).view(batch, new, 3, HEADS, WIDTH // HEADS)
        query, key, value = asked.permute(2, 0, 3, 1, 4)
        end = begin + new
        cache[0, :, :, begin:end] = key
        cache[1, :, :, begin:end] = value
        seen = torch.ones(new, end, dtype=torch.bool).tril(begin) if new > 1 else None
        found = nn.functional.scaled_dot_product_attention(
            query, cache[0, :, :, :end], cache[1, :, :, :end], attn_mask=seen
        )
        numbers = numbers + self._join(found.transpose(1, 2).reshape(batch, new, WIDTH))
        result: torch.Tensor = numbers + self._within(numbers)
        return result


class Decoder(nn.Module):
    """Words in, logits of the next word out."""

    def __init__(self, context: int) -> None:
        super().__init__()
        self._words = nn.Embedding(WORDS, WIDTH)
        self._positions = nn.Embedding(context, WIDTH)
        self._layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self._norm = nn.LayerNorm(WIDTH)
        self._head = nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: torch.Tensor, cache: torch.Tensor, begin: int) -> torch.Tensor:
        """Of words batch×new, the first at place `begin`, make logits batch×8000 after the last."""
        places = torch.arange(begin, begin + words.shape[1])
        numbers = self._words(words) + self._positions(places)
        for layer, part in zip(self._layers, cache, strict=True):
            numbers = layer(numbers, part, begin)
        result: torch.Tensor = self._head(self._norm(numbers[:, -1]))
        return result


class Writing:
    """Each step generates one word for every text of the batch: the most likely one.

    When the cache is full, it is emptied, and the texts restart with the words just
    generated. A step's time therefore grows with its position in the text.
    """

    def __init__(self, model: Decoder, cache: torch.Tensor, words: torch.Tensor) -> None:
        """Begin with `words`, batch×1, and a cache layers×2×batch×heads×context×64."""
        self.model = model
        self._cache = cache
        self._first = words
        self._words = words
        self._held = 0

    def step(self) -> torch.Tensor:
        """Write one word; returns the logits it was chosen by, batch×8000."""
        if self._held == self._cache.shape[-2]:
            self._held = 0
        with torch.inference_mode():
            logits: torch.Tensor = self.model(self._words, self._cache, self._held)
            self._words = logits.argmax(dim=-1, keepdim=True)
        self._held += 1
        return logits

    def work(self) -> dict[str, float]:
        """What a step does: a token for every text."""
        return {"tokens": float(len(self._first))}

    def check(self, result: torch.Tensor) -> None:
        """Sound logits; and word by word gives what the whole text at once gives.

        Raises:
            WorkloadError: it does not.
        """
        require_sound(result, (len(self._first), WORDS), "the decoder")
        length = min(4, self._cache.shape[-2])
        text = torch.cat([self._first.roll(place, 0) for place in range(length)], dim=1)
        apart, whole = torch.zeros_like(self._cache), torch.zeros_like(self._cache)
        with torch.inference_mode():
            for place in range(length):
                one = self.model(text[:, place : place + 1], apart, place)
            other = self.model(text, whole, 0)
        # bfloat16 has 8 bits: rounding of one part in 256 a layer.
        tolerance = 1e-3 if one.dtype == torch.float32 else 0.1
        if not torch.allclose(one.float(), other.float(), rtol=0, atol=tolerance):
            raise WorkloadError(what="the decoder's cache changes what it writes.", fix=MEND)


def inference(*, batch: int = 1, context: int = 256, dtype: str = "float32") -> Writing:
    """Set up a batch of texts of one random word each, with a cache for `context` words."""
    kind = getattr(torch, dtype)
    return Writing(
        model=Decoder(context).eval().to(kind),
        cache=torch.zeros(LAYERS, 2, batch, HEADS, context, WIDTH // HEADS, dtype=kind),
        words=torch.randint(WORDS, (batch, 1)),
    )
