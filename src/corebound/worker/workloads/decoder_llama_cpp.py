"""The decoder in llama.cpp, with the weights that every runtime has; float32 or int8."""

from __future__ import annotations

import tempfile
from pathlib import Path

from corebound.worker.adapters.llama_cpp import Model
from corebound.worker.workloads.shared import decoder, decoder_gguf
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
    return (FirstToken if prompt else Generation)(
        model.decode,
        decoder.words(batch, min(prompt, context) or 1),
        context=context,
        tolerance=_TOLERANCE[dtype],
        runtime="xllamacpp",
    )
