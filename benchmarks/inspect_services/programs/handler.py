"""A handler of TorchServe with a small network, which sets no number of threads."""

from typing import Any

import torch
from ts.torch_handler.base_handler import BaseHandler


class SmallNetwork(BaseHandler):  # type: ignore[misc]  # TorchServe is untyped
    """Answers each request with the sum of a batch's outputs."""

    def initialize(self, context: Any) -> None:
        """Make the network."""
        del context
        layers = [torch.nn.Linear(512, 512) for _ in range(8)]
        self.network = torch.nn.Sequential(*layers)
        self.batch = torch.randn(64, 512)
        self.initialized = True

    def handle(self, data: list[Any], context: Any) -> list[float]:
        """Answer a batch of requests."""
        del context
        with torch.inference_mode():
            return [float(self.network(self.batch).sum()) for _ in data]
