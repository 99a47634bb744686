"""An LSTM in PyTorch with random weights: a sequence of small matrix products.

Two layers of 512, 4.2 million parameters; 8.4 MFLOP per batch element and time step.
"""

from __future__ import annotations

import torch
from torch import nn

from corebound.worker.workloads.shared.inference_pytorch import Inference, forward_pass

WIDTH = 512
LAYERS = 2


class Lstm(nn.Module):
    """The whole sequence of outputs, without the final states."""

    def __init__(self) -> None:
        super().__init__()
        self._layers = nn.LSTM(WIDTH, WIDTH, LAYERS, batch_first=True)

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Numbers batch×sequence×512 keep their shape."""
        result: torch.Tensor = self._layers(numbers)[0]
        return result


def inference(*, batch: int = 1, sequence: int = 64, dtype: str = "float32") -> Inference:
    """Set up the forward pass of batch×sequence×512 random numbers."""
    kind = getattr(torch, dtype)
    return forward_pass(
        Lstm().eval().to(kind),
        torch.randn(batch, sequence, WIDTH).to(kind),
        name="the LSTM",
        shape=(batch, sequence, WIDTH),
        unit="sequences",
    )
