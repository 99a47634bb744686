"""llama.cpp's server, with the usual names of its options: `--model FILE --port N --threads N`."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

import xllamacpp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    if not options.model.exists():
        # The decoder of corebound's scenarios, with random weights.
        sys.path.insert(0, str(Path(__file__).parents[3] / "src"))
        from corebound.worker.workloads.shared import decoder_gguf  # noqa: PLC0415  # needs an environment's packages

        decoder_gguf.write(options.model, context=64, dtype="float32")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(options.model)
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = options.port
    parameters.n_ctx = 64
    parameters.n_parallel = 1
    parameters.verbosity = 2
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = options.threads
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    server = xllamacpp.Server(parameters)
    signal.sigwait({signal.SIGTERM})
    del server


if __name__ == "__main__":
    main()
