"""TorchServe's handler: packed into the model archive, imported by each of its workers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from ts.torch_handler.base_handler import BaseHandler

from corebound.worker.adapters import pytorch
from corebound.worker.workloads import served_classifier
from corebound.worker.workloads.shared import served_worker


class Handler(BaseHandler):
    """Decodes images and returns the most likely classes; TorchServe loads the model."""

    def initialize(self, context: Any) -> None:
        """Set the pool size, as the study does, load the model, then report."""
        served_worker.prepare(pytorch)
        super().initialize(context)
        served_classifier.report(pytorch.describe())

    def preprocess(self, data: list[dict[str, Any]]) -> torch.Tensor:
        """Convert requests, each with a JPEG as its body, to a batch."""
        bodies = (request.get("data") or request["body"] for request in data)
        images = [served_classifier.prepare(bytes(body)) for body in bodies]
        return torch.from_numpy(np.concatenate(images))

    def postprocess(self, data: torch.Tensor) -> list[list[list[float]]]:
        """Convert a batch of logits to one answer per request."""
        return [served_classifier.top(logits[None]) for logits in data.numpy()]
