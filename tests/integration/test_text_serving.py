"""Servers of a language model: what they stream, with which threads, and what of it is recorded."""

import json
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.launch.supervisor_client import Supervision
from corebound.serving.served_model import ServedModel
from corebound.serving.session import ServingSpec
from corebound.stats import latency
from support.servers import Serve, make_scratch, server_launcher

pytestmark = pytest.mark.frameworks

# Answers of exactly eight words to prompts of about 16.
TEXTS: dict[str, Any] = {"workload": "text-serving", "workers": 1, "threads": 1, "iterations": 12}
PARAMETERS: dict[str, Any] = {"context": 64, "prompt": 16, "output": 8, "concurrency": 2}


@pytest.fixture
def served() -> Iterator[Serve]:
    scratch = make_scratch()
    with Supervision(scratch) as supervision:
        yield server_launcher(scratch, supervision)


@pytest.mark.quick
@pytest.mark.parametrize("server", ["fastapi", "llama-server"])
def test_a_server_streams_the_words_that_were_asked_for(served: Serve, server: str) -> None:
    workers = min(2, len(os.sched_getaffinity(0))) if server == "fastapi" else 1
    parameters = {**PARAMETERS, "per_token_ms": 60_000.0}

    outcome = served(server=server, parameters=parameters, **{**TEXTS, "workers": workers})

    assert (outcome.status, outcome.reason) == ("ok", None), outcome.log
    assert outcome.leftover_processes == ()
    assert outcome.served is not None
    streamed = outcome.served.answered.streamed
    assert streamed is not None
    assert (streamed.tokens, streamed.good) == (12 * 8, 12)
    first, whole = (
        latency.percentiles(histogram)
        for histogram in (streamed.first_token, outcome.served.answered.latencies)
    )
    assert first is not None
    assert whole is not None
    assert 0 < first.p50_ns < whole.p50_ns
    assert len(outcome.workers) == workers
    for worker in outcome.workers:
        assert (worker.threads_asked, worker.threads_used) == (1, 1)
        assert {"fastapi": "uvicorn", "llama-server": "xllamacpp"}[server] in worker.versions


def test_llama_server_that_starts_fewer_threads_than_requested_is_invalid(served: Serve) -> None:
    outcome = served(
        server="llama-server",
        parameters=PARAMETERS,
        env={"OMP_THREAD_LIMIT": "1"},
        **{**TEXTS, "threads": 2},
    )

    assert outcome.status == "invalid", outcome.reason
    assert "2 threads were requested, but the framework uses 1" in (outcome.reason or "")


def test_a_text_that_differs_from_the_models_fails_before_timing(served: Serve) -> None:
    def misled(order: ServingSpec) -> ServingSpec:
        def model(execute: Any) -> ServedModel:
            right = order.model(execute)
            assert right is not None
            folder = order.scratch / "model"
            shutil.copytree(right.folder, folder)
            (folder / right.expected.name).write_text(json.dumps(" w300 w301"))
            return ServedModel(folder=folder)

        return replace(order, model=model)

    outcome = served(server="llama-server", parameters=PARAMETERS, change=misled, **TEXTS)

    assert outcome.status == "failed"
    assert "' w300 w301' was expected" in (outcome.reason or "")
