"""TorchServe's handler: packed into the model archive, imported by each of its workers."""

from __future__ import annotations

from typing import Any

import torch
from ts.torch_handler.base_handler import BaseHandler

from corebound.worker.workloads import served_classifier


class Handler(BaseHandler):
    """Decodes images and returns the most likely classes; TorchServe loads the model."""

    def initialize(self, context: Any) -> None:
        """Set the pool size, as the study does, load the model, then report."""
        served_classifier.set_threads()
        super().initialize(context)
        served_classifier.report()

    def preprocess(self, data: list[dict[str, Any]]) -> torch.Tensor:
        """Convert requests, each with a JPEG as its body, to a batch."""
        bodies = (request.get("data") or request["body"] for request in data)
        return torch.cat([served_classifier.prepare(bytes(body)) for body in bodies])

    def postprocess(self, data: torch.Tensor) -> list[list[list[float]]]:
        """Convert a batch of logits to one answer per request."""
        return [served_classifier.top(logits[None]) for logits in data]
