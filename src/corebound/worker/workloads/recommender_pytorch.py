"""A recommender in PyTorch with random weights: bound by memory rather than arithmetic.

It has eight tables of 100,000 rows of 64 numbers (205 MB in float32). For each sample it
sums 32 random rows of each table and maps 13 dense features to 64 numbers. It multiplies
every pair of these vectors and returns one probability. Every step uses the next of 16
batches, so rows are read from memory rather than from a cache filled by the last step.

Source: Naumov et al., Deep learning recommendation model (2019), the architecture.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import nn

from corebound.worker.workloads.shared.inference_pytorch import require_valid
from corebound.worker.workloads.shared.result_checks import wrong_result

TABLES = 8
ROWS = 100_000
WIDTH = 64
LOOKUPS = 32
DENSE = 13
BATCHES = 16

Batch = tuple[torch.Tensor, torch.Tensor]


class Recommender(nn.Module):
    """Embedding bags and dense features, their pairwise products, a perceptron."""

    def __init__(self) -> None:
        super().__init__()
        self._tables = nn.ModuleList(
            nn.EmbeddingBag(ROWS, WIDTH, mode="sum") for _ in range(TABLES)
        )
        self._dense = nn.Sequential(
            nn.Linear(DENSE, 256), nn.ReLU(), nn.Linear(256, WIDTH), nn.ReLU()
        )
        pairs = (TABLES + 1) * TABLES // 2
        self._top = nn.Sequential(
            nn.Linear(WIDTH + pairs, 256), nn.ReLU(), nn.Linear(256, 1), nn.Sigmoid()
        )
        below = torch.tril_indices(TABLES + 1, TABLES + 1, offset=-1)
        self.register_buffer("_below", below, persistent=False)

    def forward(self, dense: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        """Of features batch×13 and rows tables×batch×32 make probabilities batch×1."""
        dense_vector = self._dense(dense)
        bags = [table(lookups) for table, lookups in zip(self._tables, rows, strict=True)]
        vectors = torch.stack((dense_vector, *bags), dim=1)
        products = vectors @ vectors.transpose(1, 2)
        pairs = products[:, self._below[0], self._below[1]]
        result: torch.Tensor = self._top(torch.cat((dense_vector, pairs), dim=1))
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The forward pass of the next batch.

    Attributes:
        model: In evaluation mode.
        turns: The same, over and over.
    """

    model: nn.Module
    batches: tuple[Batch, ...]
    turns: Iterator[Batch]

    def step(self) -> torch.Tensor:
        """Give the next batch its probabilities."""
        with torch.inference_mode():
            result: torch.Tensor = self.model(*next(self.turns))
        return result

    def work(self) -> dict[str, float]:
        """What a step does: one batch of samples."""
        return {"samples": float(len(self.batches[0][0]))}

    def check(self, result: torch.Tensor) -> None:
        """Probabilities, not all the same, and the same for a sample alone.

        Raises:
            WorkloadError: they are not.
        """
        dense, rows = self.batches[0]
        require_valid(result, (len(dense), 1), "the recommender")
        with torch.inference_mode():
            single = self.model(dense[:1], rows[:, :1])
        is_probability = bool(((result >= 0) & (result <= 1)).all())
        if not (is_probability and torch.allclose(single.float(), result[:1].float(), atol=2e-2)):
            raise wrong_result(
                "the recommender returned wrong probabilities.", check="the build of torch"
            )


def inference(*, batch: int = 128, dtype: str = "float32") -> Ranking:
    """Set up the forward passes of 16 batches of `batch` samples."""
    kind = getattr(torch, dtype)
    batches = tuple(
        (
            torch.rand(batch, DENSE).to(kind),
            torch.randint(ROWS, (TABLES, batch, LOOKUPS)),
        )
        for _ in range(BATCHES)
    )
    return Ranking(
        model=Recommender().eval().to(kind), batches=batches, turns=itertools.cycle(batches)
    )
