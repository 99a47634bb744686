"""The decoder in PyTorch behind FastAPI: the application that each worker of uvicorn creates.

It streams words as OpenAI's completions API does. Annotations are not postponed here: FastAPI
evaluates them, and would not find local names.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import torch
from annotated_types import Len
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, NonNegativeInt, PositiveInt

from corebound.worker import protocol
from corebound.worker.adapters import pytorch
from corebound.worker.workloads import decoder_pytorch
from corebound.worker.workloads.shared import decoder, served_worker


class Completion(BaseModel):
    """A request: the words of a text, and how many to write after them."""

    prompt: Annotated[list[NonNegativeInt], Len(min_length=1)]
    max_tokens: PositiveInt


class Text:
    """A text that is being written, with a cache of its own."""

    def __init__(self, model: decoder_pytorch.Decoder, context: int, prompt: list[int]) -> None:
        """Begin with a prompt."""
        self._model = model
        self._cache = decoder_pytorch.empty_cache(batch=1, context=context)
        self._words = torch.tensor([prompt])
        self._cached = 0

    def next_word(self) -> int:
        """Read what is new, and return the most likely word after it."""
        with torch.inference_mode():
            logits = self._model(self._words, self._cache, self._cached)
        self._cached += self._words.shape[1]
        self._words = logits.argmax(dim=-1, keepdim=True)
        return int(self._words)


def application() -> FastAPI:
    """Create the application of one worker.

    One thread computes, so that the event loop stays free to receive requests, and so that a
    worker has one pool of OpenMP threads. Texts take turns, one word each; no more than
    `slots` are written at once, and others wait.
    """
    context = int(os.environ[protocol.SERVED_CONTEXT])
    slots = asyncio.Semaphore(int(os.environ[protocol.SERVED_SLOTS]))
    computing = ThreadPoolExecutor(max_workers=1)
    model = computing.submit(_ready_model, context).result()

    async def write(request: Completion) -> AsyncIterator[str]:
        loop = asyncio.get_running_loop()
        async with slots:
            text = Text(model, context, request.prompt)
            for _ in range(request.max_tokens):
                word = await loop.run_in_executor(computing, text.next_word)
                yield event({"choices": [{"text": decoder.text_of(word), "finish_reason": None}]})
        yield event(
            {
                "choices": [{"text": "", "finish_reason": "length"}],
                "usage": {"completion_tokens": request.max_tokens},
            }
        )
        yield "data: [DONE]\n\n"

    async def complete(request: Completion) -> StreamingResponse:
        if len(request.prompt) + request.max_tokens > context:
            raise HTTPException(400, f"a text and its answer have at most {context} words")
        if max(request.prompt) >= decoder.VOCABULARY:
            raise HTTPException(400, f"there are {decoder.VOCABULARY} words")
        return StreamingResponse(write(request), media_type="text/event-stream")

    app = FastAPI()
    app.add_api_route("/v1/completions", complete, methods=["POST"], response_model=None)
    return app


def event(document: dict[str, Any]) -> str:
    """A server-sent event."""
    return f"data: {json.dumps(document, separators=(',', ':'))}\n\n"


def _ready_model(context: int) -> decoder_pytorch.Decoder:
    """Set the pool size, load the model, write a word, then report."""
    served_worker.prepare(pytorch)
    model = decoder_pytorch.load(context)
    Text(model, context, [0]).next_word()
    served_worker.report(pytorch.describe(), work={"texts": 1.0}, packages=("uvicorn", "httptools"))
    return model
