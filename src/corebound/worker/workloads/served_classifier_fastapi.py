"""The same classifier behind FastAPI: the application that each worker of uvicorn creates.

Annotations are not postponed here: FastAPI evaluates them, and would not find local names.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import torch
from fastapi import FastAPI, Request

from corebound.worker import protocol
from corebound.worker.workloads import served_classifier


class Classifier:
    """Answers one image at a time, as the workers of the other servers do."""

    def __init__(self) -> None:
        """Set the pool size, load the model, then report."""
        served_classifier.set_threads()
        self._network = torch.jit.load(os.environ[protocol.SERVED_MODEL]).eval()
        served_classifier.report("uvicorn", "httptools")

    def __call__(self, jpeg: bytes) -> list[list[float]]:
        """The most likely classes of one image."""
        with torch.inference_mode():
            logits: torch.Tensor = self._network(served_classifier.prepare(jpeg))
        return served_classifier.top(logits)


def application() -> FastAPI:
    """Create the application of one worker.

    One thread computes, so that the event loop stays free to receive requests, and so that a
    worker has one pool of OpenMP threads.
    """
    computing = ThreadPoolExecutor(max_workers=1)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        app.state.classify = await loop.run_in_executor(computing, Classifier)
        yield
        computing.shutdown()

    async def predict(request: Request) -> list[list[float]]:
        jpeg = await request.body()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(computing, request.app.state.classify, jpeg)

    app = FastAPI(lifespan=lifespan)
    app.add_api_route("/predict", predict, methods=["POST"])
    return app
