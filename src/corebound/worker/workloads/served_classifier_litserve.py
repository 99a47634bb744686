"""The same classifier behind LitServe: run as a program in the server's environment.

Annotations are not postponed here: LitServe passes them to FastAPI, which would treat a
name in quotes as a query parameter.
"""

import base64
from pathlib import Path
from typing import Any

import litserve
import torch

from corebound.worker.adapters import pytorch
from corebound.worker.workloads import served_classifier
from corebound.worker.workloads.shared import served_worker


class Classifier(litserve.LitAPI):
    """Accepts JSON with an image in base64, because LitServe accepts no binary body."""

    def __init__(self, model: Path) -> None:
        super().__init__()
        self._file = model

    def setup(self, device: str) -> None:
        """Set the pool size, load the model, then report."""
        served_worker.prepare(pytorch)
        self._network = torch.jit.load(str(self._file), map_location=device).eval()
        served_classifier.report(pytorch.describe())

    def decode_request(self, request: dict[str, Any]) -> torch.Tensor:
        """Convert the request's JSON to 1×3×side×side numbers."""
        return torch.from_numpy(served_classifier.prepare(base64.b64decode(request["image"])))

    def predict(self, x: torch.Tensor) -> torch.Tensor:
        """The forward pass, without gradients."""
        with torch.inference_mode():
            logits: torch.Tensor = self._network(x)
        return logits

    def encode_response(self, output: torch.Tensor) -> list[list[float]]:
        """The most likely classes."""
        return served_classifier.top(output.numpy())


def main() -> None:
    """Serve on the loopback interface until terminated."""
    model, port, workers = served_worker.options(main.__doc__)
    server = litserve.LitServer(
        Classifier(model),
        accelerator="cpu",
        workers_per_device=workers,
        # Waiting is part of the latency, so the server must not abandon requests.
        timeout=False,
    )
    server.run(host="127.0.0.1", port=port, generate_client_file=False, log_level="warning")


if __name__ == "__main__":
    main()
