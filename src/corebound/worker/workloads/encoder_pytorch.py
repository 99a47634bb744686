"""A Transformer encoder of BERT's size in PyTorch, with the weights that every runtime has.

With 12 layers it has 109 million parameters and, for a sequence of 128, needs 22 GFLOP.
"""

from __future__ import annotations

import torch
from torch import nn

from corebound.worker.workloads.shared import encoder, inference_pytorch
from corebound.worker.workloads.shared.encoder import (
    EPSILON,
    HEADS,
    INNER_WIDTH,
    POSITIONS,
    VOCABULARY,
    WIDTH,
)


class Encoder(nn.Module):
    """Words and their positions, embedded, then layers of attention."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self._tokens = nn.Embedding(VOCABULARY, WIDTH)
        self._positions = nn.Embedding(POSITIONS, WIDTH)
        self._norm = nn.LayerNorm(WIDTH, eps=EPSILON)
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
    *,
    batch: int = 1,
    sequence: int = 128,
    layers: int = 12,
    dtype: str = "float32",
    mode: str = "usual",
) -> inference_pytorch.Inference:
    """Set up the forward pass of batch×sequence words; a sequence of at most 512.

    In int8, the two products after attention find the ranges of their inputs in each run, and the
    rest stays in float32.
    """
    # Random weights take time to draw, and are replaced.
    with torch.device("meta"):
        model = Encoder(layers)
    inference_pytorch.load_weights(model, encoder.weights(layers))
    model.eval()
    words = torch.from_numpy(encoder.words(batch, sequence))
    reference = None
    if dtype == "int8":
        with torch.inference_mode():
            reference = model(words)
        model = inference_pytorch.quantized(model)
    else:
        model = model.to(getattr(torch, dtype))
    return inference_pytorch.forward_pass(
        model,
        words,
        name="the encoder",
        reference=reference,
        shape=(batch, sequence, WIDTH),
        unit="sequences",
        mode=mode,
    )
