"""The same classifier behind FastAPI: the application that each worker of uvicorn creates.

Annotations are not postponed here: FastAPI evaluates them, and would not find local names.
"""

import asyncio
import importlib
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from fastapi import FastAPI, Request
from numpy.typing import NDArray

from corebound.worker import protocol
from corebound.worker.workloads import served_classifier
from corebound.worker.workloads.shared import served_worker

# Of 1×3×side×side numbers, the logits of each class.
Network = Callable[[NDArray[np.float32]], NDArray[np.float32]]


class Classifier:
    """Answers one image at a time, as the workers of the other servers do."""

    def __init__(self) -> None:
        """Set the pool size, load the model, run it once, then report."""
        runtime = os.environ.get(protocol.SERVED_RUNTIME, "pytorch")
        # Only one of them, because each has a pool of threads.
        adapter = importlib.import_module(f"corebound.worker.adapters.{runtime}")
        served_worker.prepare(adapter)
        load = _in_onnxruntime if runtime == "onnxruntime" else _in_pytorch
        self._network = load(os.environ[protocol.SERVED_MODEL])
        side = int(os.environ[protocol.SERVED_IMAGE])
        self._network(np.zeros((1, 3, side, side), np.float32))
        served_classifier.report(adapter.describe(), "uvicorn", "httptools")

    def __call__(self, jpeg: bytes) -> list[list[float]]:
        """The most likely classes of one image."""
        return served_classifier.top(self._network(served_classifier.prepare(jpeg)))


def _in_pytorch(file: str) -> Network:
    torch = importlib.import_module("torch")
    network = torch.jit.load(file).eval()

    def logits(image: NDArray[np.float32]) -> NDArray[np.float32]:
        with torch.inference_mode():
            result: NDArray[np.float32] = network(torch.from_numpy(image)).numpy()
        return result

    return logits


def _in_onnxruntime(file: str) -> Network:
    session = importlib.import_module("corebound.worker.adapters.onnxruntime").Session(file)
    (model_input,) = session.inputs

    def logits(image: NDArray[np.float32]) -> NDArray[np.float32]:
        result: NDArray[np.float32] = session.run({model_input.name: image})
        return result

    return logits


def application() -> FastAPI:
    """Create the application of one worker.

    One thread computes, so that the event loop stays free to receive requests, and so that a
    worker has one pool of OpenMP threads.
    """
    computing = ThreadPoolExecutor(max_workers=1)
    classify = computing.submit(Classifier).result()

    async def predict(request: Request) -> list[list[float]]:
        jpeg = await request.body()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(computing, classify, jpeg)

    app = FastAPI()
    app.add_api_route("/predict", predict, methods=["POST"])
    return app
