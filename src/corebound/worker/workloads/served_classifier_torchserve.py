"""TorchServe's handler: packed into the model archive, imported by each of its workers."""

from __future__ import annotations

from typing import Any

import torch
from ts.torch_handler.base_handler import BaseHandler

from corebound.worker.workloads import served_classifier


class Handler(BaseHandler):
    """Decodes, classifies, names the likeliest classes; loading is TorchServe's own."""

    def initialize(self, context: Any) -> None:
        """Size the pool first, as the study does, then load the model and tell what came of it."""
        served_classifier.set_threads()
        super().initialize(context)
        served_classifier.report()

    def preprocess(self, data: list[dict[str, Any]]) -> torch.Tensor:
        """From requests, each with a JPEG as its body, to a batch."""
        bodies = (request.get("data") or request["body"] for request in data)
        return torch.cat([served_classifier.prepare(bytes(body)) for body in bodies])

    def postprocess(self, data: torch.Tensor) -> list[list[list[float]]]:
        """From a batch of logits to an answer for each request."""
        return [served_classifier.top(logits[None]) for logits in data]
