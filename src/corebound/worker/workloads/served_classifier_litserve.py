"""The same classifier behind LitServe: run as a program in the server's environment.

Annotations are not postponed here: LitServe hands them to FastAPI, which would take
a name in quotes for a parameter of the query.
"""

import argparse
import base64
from pathlib import Path
from typing import Any

import litserve
import torch

from corebound.worker.workloads import served_classifier


class Classifier(litserve.LitAPI):
    """Takes JSON with an image in base64, for LitServe has no way to take it as it is."""

    def __init__(self, model: Path) -> None:
        super().__init__()
        self._file = model

    def setup(self, device: str) -> None:
        """Size the pool first, then load the model and tell what came of it."""
        served_classifier.set_threads()
        self._network = torch.jit.load(str(self._file), map_location=device).eval()
        served_classifier.report()

    def decode_request(self, request: dict[str, Any]) -> torch.Tensor:
        """From the request's JSON to 1×3×side×side numbers."""
        return served_classifier.prepare(base64.b64decode(request["image"]))

    def predict(self, x: torch.Tensor) -> torch.Tensor:
        """The forward pass, without gradients."""
        with torch.inference_mode():
            logits: torch.Tensor = self._network(x)
        return logits

    def encode_response(self, output: torch.Tensor) -> list[list[float]]:
        """The likeliest classes."""
        return served_classifier.top(output)


def main() -> None:
    """Serve on the loopback interface until told to end."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--port-file", type=Path, required=True)
    parser.add_argument("--workers", type=int, required=True)
    asked = parser.parse_args()
    port = int(asked.port_file.read_text(encoding="ascii"))
    server = litserve.LitServer(
        Classifier(asked.model),
        accelerator="cpu",
        workers_per_device=asked.workers,
        # Waiting is part of a latency: no request is given up by the server.
        timeout=False,
    )
    server.run(host="127.0.0.1", port=port, generate_client_file=False, log_level="warning")


if __name__ == "__main__":
    main()
