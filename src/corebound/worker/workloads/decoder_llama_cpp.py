"""The decoder in llama.cpp, with the weights that every runtime has; float32 or int8."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corebound.worker.adapters.llama_cpp import Model
from corebound.worker.workloads.shared import decoder, decoder_gguf
from corebound.worker.workloads.shared.result_checks import wrong_result

# Sums of float32 in another order; Q8_0 quantizes the inputs of products too, in blocks of 32.
_TOLERANCE = {"float32": 2e-3, "int8": 0.2}


class Generation:
    """Each step generates one word for every text of the batch: the most likely one.

    When the cache is full, the texts restart with the words just generated.
    """

    def __init__(
        self, model: Model, tokens: NDArray[np.int64], *, context: int, dtype: str
    ) -> None:
        """Begin with `tokens`, batch×1, and a cache of `context` words."""
        self.model = model
        self.tolerance = _TOLERANCE[dtype]
        self._context = context
        self._first = tokens
        self._tokens = tokens
        self._cached = 0

    def step(self) -> NDArray[np.float32]:
        """Write one word; returns the logits it was chosen by, batch×8000."""
        if self._cached == self._context:
            self._cached = 0
        logits = self.model.decode(self._tokens, self._cached)
        self._tokens = logits.argmax(axis=-1, keepdims=True)
        self._cached += 1
        return logits

    def work(self) -> dict[str, float]:
        """What a step does: a token for every text."""
        return {"tokens": float(len(self._first))}

    def check(self, result: NDArray[np.float32]) -> None:
        """Sound logits; and word by word gives what the whole text at once gives.

        Raises:
            WorkloadError: it does not.
        """
        if not np.isfinite(result).all() or result.std() == 0:
            raise wrong_result("the decoder gave no varied, finite numbers.", check="xllamacpp")
        length = min(4, self._context)
        text = np.concatenate([np.roll(self._first, at, 0) for at in range(length)], axis=1)
        for position in range(length):
            by_step = self.model.decode(text[:, position : position + 1], position)
        at_once = self.model.decode(text, 0)
        # The next step continues after the word of the first one.
        self.model.decode(self._first, 0)
        if not np.allclose(by_step, at_once, rtol=0, atol=self.tolerance):
            raise wrong_result(
                "the decoder's output with its cache differs from that without.", check="xllamacpp"
            )


class FirstToken(Generation):
    """Each step reads the whole prompt of every text, and generates its first word."""

    def __init__(
        self, model: Model, prompt: NDArray[np.int64], *, context: int, dtype: str
    ) -> None:
        """Begin with prompts, batch×words."""
        super().__init__(model, prompt[:, :1], context=context, dtype=dtype)
        self._prompt = prompt

    def step(self) -> NDArray[np.float32]:
        """Read the prompts; returns the logits of the first word after them, batch×8000."""
        logits = self.model.decode(self._prompt, 0)
        logits.argmax(axis=-1)
        return logits

    def work(self) -> dict[str, float]:
        """What a step does: the tokens of all prompts."""
        return {"tokens": float(self._prompt.size)}


def inference(
    *,
    batch: int = 1,
    context: int = 256,
    prompt: int = 0,
    dtype: str = "float32",
    mode: str = "usual",
) -> Generation:
    """Set up a batch of texts; the parameters are those of the decoder in PyTorch.

    Args:
        batch: The number of texts.
        context: The words that the cache holds; a prompt is cut to them.
        prompt: The random words that each step reads before it generates one. With 0, each step
            generates one word of a text that begins with one random word.
        dtype: The type of matrices: float32 or int8.
        mode: `usual`, or `pinned`: each thread has a CPU of its own.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decoder.gguf"
        decoder_gguf.write(path, context=context, dtype=dtype)
        # llama.cpp maps the file, which therefore stays readable.
        model = Model(path, context=context, batch=batch, pinned=mode == "pinned")
    make = FirstToken if prompt else Generation
    words = decoder.words(batch, min(prompt, context) or 1)
    return make(model, words, context=context, dtype=dtype)
