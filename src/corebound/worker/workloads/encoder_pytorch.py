"""A Transformer encoder of BERT's size in PyTorch, with random weights.

Width 768, 12 heads, inner width 3072. With 12 layers it has 109 million parameters and,
for a sequence of 128, needs 22 GFLOP.

Source: Devlin et al., BERT (2018), the base model without its pooler.
"""

from __future__ import annotations

import torch
from torch import nn

from corebound.worker.workloads.shared.inference_pytorch import Inference

VOCABULARY = 30_522
POSITIONS = 512
WIDTH = 768
HEADS = 12
INNER_WIDTH = 3_072


class Encoder(nn.Module):
    """Words and their positions, embedded, then layers of attention."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self._tokens = nn.Embedding(VOCABULARY, WIDTH)
        self._positions = nn.Embedding(POSITIONS, WIDTH)
        self._norm = nn.LayerNorm(WIDTH)
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, dim_feedforward=INNER_WIDTH, activation="gelu", batch_first=True
        )
        self._layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Of words batch×sequence make numbers batch×sequence×768."""
        positions = torch.arange(tokens.shape[1])
        result: torch.Tensor = self._layers(
            self._norm(self._tokens(tokens) + self._positions(positions))
        )
        return result


def inference(
    *, batch: int = 1, sequence: int = 128, layers: int = 12, dtype: str = "float32"
) -> Inference:
    """Set up the forward pass of batch×sequence random words; a sequence of at most 512."""
    return Inference(
        name="the encoder",
        model=Encoder(layers).eval().to(getattr(torch, dtype)),
        inputs=(torch.randint(VOCABULARY, (batch, sequence)),),
        shape=(batch, sequence, WIDTH),
        unit="sequences",
        count=batch,
    )
