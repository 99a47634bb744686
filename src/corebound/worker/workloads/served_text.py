"""Makes the files for a server of the decoder: its GGUF, a request and the expected answer.

Run as a program in the server's environment. The answer is computed without a server, in the
framework of that environment.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path

from corebound.worker.workloads.shared import decoder

PROMPT_WORDS = 8
ANSWER_WORDS = 4


def main() -> None:
    """Write a request and the expected answer into a folder, and for llama.cpp the model."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--context", type=int, required=True)
    parser.add_argument("--dtype", required=True)
    parser.add_argument("--framework", choices=["fastapi", "llama-server"], required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    prompt = decoder.words(1, PROMPT_WORDS)[0].tolist()
    write = _by_llama_cpp if options.framework == "llama-server" else _by_pytorch
    answer = write(prompt, context=options.context, dtype=options.dtype, folder=options.out)
    request = {"prompt": prompt, "max_tokens": ANSWER_WORDS, "temperature": 0, "stream": True}
    (options.out / "request.json").write_text(json.dumps(request), encoding="ascii")
    text = "".join(map(decoder.text_of, answer))
    (options.out / "expected.json").write_text(json.dumps(text), encoding="utf-8")


def _by_pytorch(prompt: list[int], *, context: int, dtype: str, folder: Path) -> list[int]:
    del dtype, folder
    module = importlib.import_module("corebound.worker.workloads.served_decoder_fastapi")
    model = importlib.import_module("corebound.worker.workloads.decoder_pytorch").load(context)
    text = module.Text(model, context, prompt)
    return [text.next_word() for _ in range(ANSWER_WORDS)]


def _by_llama_cpp(prompt: list[int], *, context: int, dtype: str, folder: Path) -> list[int]:
    gguf = importlib.import_module("corebound.worker.workloads.shared.decoder_gguf")
    adapter = importlib.import_module("corebound.worker.adapters.llama_cpp")
    numpy = importlib.import_module("numpy")
    gguf.write(folder / "model.gguf", context=context, dtype=dtype)
    model = adapter.Model(folder / "model.gguf", context=context, batch=1)
    words, written = prompt, 0
    answer = []
    for _ in range(ANSWER_WORDS):
        logits = model.decode(numpy.array([words]), written)
        written += len(words)
        words = [int(logits.argmax())]
        answer += words
    return answer


if __name__ == "__main__":
    main()
