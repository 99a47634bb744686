"""The decoder in llama.cpp, with the weights that every runtime has, or an own model file."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from corebound.worker.adapters.llama_cpp import Model
from corebound.worker.workloads.shared import decoder, decoder_gguf, model_file
from corebound.worker.workloads.shared.generation import FirstToken, Generation

# Sums of float32 in another order; Q8_0 quantizes the inputs of products too, in blocks of 32.
_TOLERANCE = {"float32": 2e-3, "int8": 0.2}


def inference(
    *,
    batch: int = 1,
    context: int = 256,
    prompt: int = 0,
    dtype: str = "float32",
    mode: str = "usual",
    model: str = "",
) -> Generation:
    """Set up a batch of texts; the parameters are those of the decoder in PyTorch.

    Args:
        batch: The number of texts.
        context: The words that the cache holds; a prompt is cut to them.
        prompt: The random words that each step reads before it generates one. With 0, each step
            generates one word of a text that begins with one random word.
        dtype: The type of matrices of the built-in decoder: float32 or int8.
        mode: `usual`, or `pinned`: each thread has a CPU of its own.
        model: The path of a GGUF file, which has its own type; empty: the built-in decoder.

    Raises:
        WorkloadError: the file is missing or llama.cpp cannot load it.
    """
    words = decoder.words(batch, min(prompt, context) or 1)
    pinned = mode == "pinned"
    if model:
        return _of_file(Path(model), words, context=context, prompt=prompt, pinned=pinned)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decoder.gguf"
        decoder_gguf.write(path, context=context, dtype=dtype)
        # llama.cpp maps the file, which therefore stays readable.
        opened = Model(path, context=context, batch=batch, pinned=pinned, float32_cache=True)
    return (FirstToken if prompt else Generation)(
        opened.decode,
        words,
        context=context,
        tolerance=_TOLERANCE[dtype],
        runtime="xllamacpp",
    )


def _of_file(
    path: Path, words: NDArray[np.int64], *, context: int, prompt: int, pinned: bool
) -> Generation:
    """Set up a model of the user's, whose output is only checked to be finite and varied."""
    model_file.require(path, begins=b"GGUF", kind="a model in GGUF (.gguf)")
    opened = Model(path, context=context, batch=len(words), pinned=pinned)
    return (FirstToken if prompt else Generation)(
        opened.decode,
        words % opened.vocabulary,
        context=context,
        tolerance=math.inf,
        runtime="xllamacpp",
        vocabulary=opened.vocabulary,
        versions=model_file.version(path),
    )
