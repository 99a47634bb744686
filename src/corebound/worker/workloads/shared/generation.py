"""Generation with the decoder in any runtime: a step writes a word, or reads a prompt.

Words are whole numbers of batch×words, and logits batch×vocabulary, as the runtime's own arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from corebound.worker.workloads.shared.decoder import VOCABULARY
from corebound.worker.workloads.shared.inference import require_valid
from corebound.worker.workloads.shared.result_checks import wrong_result


class Generation:
    """Each step generates one word for every text of the batch: the most likely one.

    When the cache is full, it is emptied, and the texts restart with the words just
    generated. A step's time therefore grows with its position in the text.
    """

    def __init__(
        self,
        decode: Callable[[Any, int], Any],
        words: Any,
        *,
        context: int,
        tolerance: float,
        runtime: str,
        numbers: Callable[[Any], NDArray[Any]] = np.asarray,
        vocabulary: int = VOCABULARY,
        versions: Mapping[str, str] | None = None,
    ) -> None:
        """Begin with the first words.

        Args:
            decode: Puts words into the cache at a place of the text; returns the logits after
                them.
            words: batch×1.
            context: The words that the cache holds.
            tolerance: By how much logits may differ that are computed in another way.
            runtime: Its name in error messages.
            numbers: The logits as an array of NumPy.
            vocabulary: How many words the model knows.
            versions: Those of its model file, by `model_file.version`.
        """
        self.versions = versions or {}
        self._vocabulary = vocabulary
        self._decode = decode
        self._first = self._words = words
        self._context = context
        self._tolerance = tolerance
        self._runtime = runtime
        self._numbers = numbers
        self._cached = 0

    def step(self) -> Any:
        """Write one word; returns the logits it was chosen by."""
        if self._cached == self._context:
            self._cached = 0
        logits = self._decode(self._words, self._cached)
        self._words = logits.argmax(axis=-1, keepdims=True)
        self._cached += 1
        return logits

    def work(self) -> dict[str, float]:
        """What a step does: a token for every text."""
        return {"tokens": float(len(self._first))}

    def check(self, result: Any) -> None:
        """Sound logits; and word by word gives what the whole text at once gives.

        Raises:
            WorkloadError: it does not.
        """
        first, runtime = np.asarray(self._first), self._runtime
        shape = (len(first), self._vocabulary)
        require_valid(self._numbers(result), shape, name="the decoder", runtime=runtime)
        length = min(4, self._context)
        text = np.concatenate([np.roll(first, at, 0) for at in range(length)], axis=1)
        for position in range(length):
            by_step = self._decode(text[:, position : position + 1], position)
        at_once = self._decode(text, 0)
        # The next step continues after the word of the first one.
        self._decode(self._first, 0)
        both = (self._numbers(by_step), self._numbers(at_once))
        if not np.allclose(*both, rtol=0, atol=self._tolerance):
            raise wrong_result(
                "the decoder's output with its cache differs from that without.",
                check=f"the build of {runtime}",
            )


class FirstToken(Generation):
    """Each step reads the whole prompt of every text, and generates its first word."""

    def __init__(self, decode: Callable[[Any, int], Any], prompt: Any, **settings: Any) -> None:
        """Begin with prompts, batch×words."""
        super().__init__(decode, prompt[:, :1], **settings)
        self._prompt = prompt

    def step(self) -> Any:
        """Read the prompts; returns the logits of the first word after them."""
        logits = self._decode(self._prompt, 0)
        logits.argmax(axis=-1)
        return logits

    def work(self) -> dict[str, float]:
        """What a step does: the tokens of all prompts."""
        return {"tokens": float(len(self._prompt) * self._prompt.shape[1])}
