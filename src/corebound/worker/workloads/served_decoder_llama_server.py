"""The decoder behind llama.cpp's own server: run as a program in the server's environment."""

from __future__ import annotations

import os
import signal
from importlib import metadata
from pathlib import Path

import xllamacpp

from corebound.worker import protocol
from corebound.worker.native_threads import computing_threads
from corebound.worker.workloads.shared import served_worker

# GGML_TYPE_F32 of ggml.h.
_FLOAT32 = xllamacpp.ggml_type.GGML_TYPE_F32
# A text that is long enough to see which threads compute.
_TEXT = {"prompt": [3], "max_tokens": 64, "ignore_eos": True}


def main() -> None:
    """Serve on the loopback interface until terminated."""
    model, port, _ = served_worker.options(main.__doc__)
    # Blocked before there are other threads, which inherit this, so that `sigwait` gets it.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    server = xllamacpp.Server(parameters(model, port))
    described = {
        # The server has threads for requests, too.
        "threads_used": computing_threads(lambda: server.handle_completions(_TEXT)),
        "versions": {"xllamacpp": metadata.version("xllamacpp")},
    }
    served_worker.report(described, work={"texts": 1.0})
    signal.sigwait({signal.SIGTERM})


def parameters(model: Path, port: int) -> xllamacpp.CommonParams:
    """The options of llama-server (`--ctx-size`, `--parallel`, `--threads` and others)."""
    result = xllamacpp.CommonParams()
    slots = int(os.environ[protocol.SERVED_SLOTS])
    result.model.path = str(model)
    result.hostnames = ["127.0.0.1"]
    result.port = port
    result.n_parallel = slots
    result.n_ctx = int(os.environ[protocol.SERVED_CONTEXT]) * slots
    # The type of PyTorch's cache; llama.cpp's own default has 16 bits.
    result.cache_type_k = result.cache_type_v = _FLOAT32
    # Every prompt is computed in full, so nothing is gained by keeping texts.
    result.cache_ram_mib = 0
    result.cache_idle_slots = False
    # Neither a page for browsers nor a smaller context than requested.
    result.ui = False
    result.fit_params = False
    # Errors and warnings; the rest is several lines for each request.
    result.verbosity = 2
    if threads := served_worker.requested_threads():
        result.cpuparams.n_threads = result.cpuparams_batch.n_threads = threads
    return result


if __name__ == "__main__":
    main()
