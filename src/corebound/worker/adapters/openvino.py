"""OpenVINO adapter: sets properties of compiled models, reports versions, profiles operators."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import openvino
from numpy.typing import NDArray

from corebound.worker.operator_table import Profile, Span, Step, chrome_trace, tabulate

Inputs = dict[str, NDArray[Any]]


class _State:
    """What the request asked for, and what exists so far; OpenVINO sets threads per model."""

    intra_op: int | None = None
    models: ClassVar[list[CompiledModel]] = []


class CompiledModel:
    """A model that is ready to run with the requested number of threads."""

    def __init__(
        self, model: bytes | str, *, precision: str, hint: str = "LATENCY", pinned: bool | None
    ) -> None:
        """Read and compile a model for the CPU.

        Args:
            model: The model in the ONNX format, or its path.
            precision: `f32` or `bf16`. On a processor with bfloat16, OpenVINO's own default is
                bfloat16, even for a model of float32.
            hint: `LATENCY`: one request has all threads; `THROUGHPUT`: several requests, in
                streams that divide the threads.
            pinned: Whether threads are bound to CPUs; None leaves OpenVINO's default, which
                binds them in most cases.
        """
        self._model = model
        self._properties: dict[str, Any] = {
            "INFERENCE_PRECISION_HINT": precision,
            "PERFORMANCE_HINT": hint,
        }
        if pinned is not None:
            self._properties["ENABLE_CPU_PINNING"] = pinned
        if _State.intra_op is not None:
            self._properties["INFERENCE_NUM_THREADS"] = _State.intra_op
        self._compile()
        _State.models.append(self)

    def run(self, inputs: Inputs) -> NDArray[Any]:
        """Run as many requests at once as the hint asks for; returns one's first output."""
        for request in self._requests:
            request.start_async(inputs, share_inputs=True)
        for request in self._requests:
            request.wait()
        result: NDArray[Any] = self._requests[0].get_output_tensor(0).data
        return result

    @property
    def request_count(self) -> int:
        """The number of requests that `run` has in flight at once."""
        return len(self._requests)

    def property_of(self, name: str) -> Any:
        """The value of a property that OpenVINO really uses."""
        return self._compiled.get_property(name)

    def start_profiling(self) -> None:
        """Compile the model again, so that each run records the time of its operators."""
        self._properties["PERF_COUNT"] = True
        self._compile()

    def operators(self) -> list[tuple[str, int]]:
        """The type of each operator, in order of execution, and its mean time in nanoseconds."""
        return [
            (node.node_type, round(node.real_time.total_seconds() * 1e9))
            for node in self._requests[0].get_profiling_info()
            if node.status == openvino.ProfilingInfo.Status.EXECUTED
        ]

    def _compile(self) -> None:
        core = openvino.Core()
        self._compiled = core.compile_model(
            core.read_model(self._model), "CPU", dict(self._properties)
        )
        count = self._compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
        self._requests = [self._compiled.create_infer_request() for _ in range(count)]


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed NumPy's generators; OpenVINO draws no numbers. Models get the thread count."""
    del inter_op
    random.seed(seed)
    np.random.seed(seed)
    _State.intra_op = intra_op


def describe() -> dict[str, Any]:
    """The version in use, and the threads and pinning that the compiled model really has.

    OpenVINO silently takes no more threads than there are CPUs that the process may use.
    """
    version = "-".join(openvino.get_version().split("-")[:2])
    model = _State.models[-1] if _State.models else None
    return {
        "threads_used": model and int(model.property_of("INFERENCE_NUM_THREADS")),
        "versions": {"openvino": version},
        "blas": "oneDNN",
        "pins_threads": model is None or bool(model.property_of("ENABLE_CPU_PINNING")),
    }


def profile(step: Callable[[], object], iterations: int, folder: str) -> Profile:
    """Run warm steps with OpenVINO's counters and tabulate the time of operators.

    OpenVINO reports each operator's mean time since the model was compiled, in microseconds,
    but not when it ran. One request runs its operators one after another. The table therefore
    has one mean step, with the operators in their order from its start.

    Args:
        step: The function called per iteration.
        iterations: The number of iterations to tabulate; one more runs before them.

    Raises:
        ValueError: not exactly one `CompiledModel` was made, or it runs requests in parallel.
    """
    (model,) = _State.models
    if model.request_count > 1:
        raise ValueError("operators of requests that run in parallel cannot be distinguished")
    model.start_profiling()
    step()
    first = model.operators()
    begin_ns = time.perf_counter_ns()
    for _ in range(iterations):
        step()
    mean_ns = (time.perf_counter_ns() - begin_ns) // iterations
    spans = []
    at_ns = begin_ns
    for (type_, first_ns), (_, all_ns) in zip(first, model.operators(), strict=True):
        # The first step's share of the mean is taken out again.
        own_ns = max((all_ns * (1 + iterations) - first_ns) // iterations, 0)
        spans.append(Span(type=type_, thread=1, begin_ns=at_ns, end_ns=at_ns + own_ns))
        at_ns += own_ns
    mean_step = Step(begin_ns=begin_ns, end_ns=begin_ns + mean_ns, spans=tuple(spans))
    trace = Path(folder) / "trace.json"
    trace.write_text(chrome_trace([mean_step]))
    return tabulate([mean_step] * iterations, str(trace))
