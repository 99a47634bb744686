"""ONNX Runtime adapter: sets thread counts of sessions, reports versions, profiles operators."""

from __future__ import annotations

import importlib
import json
import os
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from corebound.worker.native_threads import PoolCounter
from corebound.worker.operator_table import Profile, Span, steps_of, tabulate

# Warnings, such as removed constants, would fill the launch's log.
_ERRORS_ONLY = 3
# Created when this module is imported, which is before there is a session.
_POOL = PoolCounter()


class _State:
    """What the request asked for, and what exists so far.

    ONNX Runtime has no settings of the process: each session has its own.
    """

    intra_op: int | None = None
    sessions: ClassVar[list[Session]] = []
    pins_threads: bool = False


class Session:
    """A model that is ready to run with the requested number of threads.

    Its pool has one thread less than that, because the caller computes too. By default ONNX
    Runtime takes a thread for each physical core and binds all but the first to CPUs.
    """

    def __init__(self, model: bytes | str, *, spinning: bool = True, pinned: bool = False) -> None:
        """Load and optimise a model.

        Args:
            model: The serialised model, or its path.
            spinning: Whether idle threads of the pool spin before they sleep.
            pinned: Bind each thread of the pool to a CPU of its own, among those that the
                process may use; the caller's thread stays free.
        """
        self._model = model
        self._entries = {} if spinning else {"session.intra_op.allow_spinning": "0"}
        if pinned:
            self._entries |= _pinned(_State.intra_op)
        _State.pins_threads = _State.pins_threads or pinned or _State.intra_op is None
        self._session = self._opened()
        _State.sessions.append(self)

    def run(self, inputs: dict[str, NDArray[Any]]) -> NDArray[Any]:
        """Run the model once; returns its first output."""
        result: NDArray[Any] = self._session.run(None, inputs)[0]
        return result

    @property
    def inputs(self) -> list[Any]:
        """The model's inputs: each has a `name`, a `type` and a `shape`."""
        return list(self._session.get_inputs())

    def start_profiling(self, prefix: Path) -> None:
        """Load the model again, with ONNX Runtime's profiler on."""
        self._session = self._opened(profile=str(prefix))

    def end_profiling(self) -> Path:
        """The profile of all runs since `start_profiling`."""
        return Path(self._session.end_profiling())

    def _opened(self, profile: str | None = None) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = _ERRORS_ONLY
        if _State.intra_op is not None:
            options.intra_op_num_threads = _State.intra_op
        for name, value in self._entries.items():
            options.add_session_config_entry(name, value)
        if profile is not None:
            options.enable_profiling = True
            options.profile_file_prefix = profile
        return onnxruntime.InferenceSession(
            self._model, options, providers=["CPUExecutionProvider"]
        )


def run_once(model: bytes | str, inputs: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Run a model in the calling thread alone, and forget it; returns its first output."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _ERRORS_ONLY
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    result: NDArray[Any] = session.run(None, inputs)[0]
    return result


def quantized(
    model: bytes | str, inputs: dict[str, NDArray[Any]], activations: Sequence[str]
) -> bytes:
    """Quantize a model to int8 with ONNX Runtime's own tool.

    Weights are signed, with a scale per channel if `activations` are given. Activations are
    unsigned, which is what VNNI multiplies.

    Args:
        inputs: Inputs whose ranges stand for all others.
        activations: The operators to quantize with fixed ranges, found by running the model.
            Empty: only products, which find the ranges of their inputs in each run.
    """
    # Not imported at the top, because only int8 needs it.
    tool = importlib.import_module("onnxruntime.quantization")
    onnx = importlib.import_module("onnx")
    graph = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        if activations:
            tool.quantize_static(
                graph,
                path,
                _OneBatch(inputs),
                activation_type=tool.QuantType.QUInt8,
                weight_type=tool.QuantType.QInt8,
                per_channel=True,
                op_types_to_quantize=list(activations),
            )
        else:
            tool.quantize_dynamic(
                graph,
                path,
                weight_type=tool.QuantType.QInt8,
                op_types_to_quantize=["MatMul"],
                # Products of two activations, as in attention, stay in float32.
                extra_options={"MatMulConstBOnly": True},
            )
        return path.read_bytes()


class _OneBatch:
    """Gives the inputs once: what ONNX Runtime calls a CalibrationDataReader."""

    def __init__(self, inputs: dict[str, NDArray[Any]]) -> None:
        self._left: dict[str, NDArray[Any]] | None = inputs

    def get_next(self) -> dict[str, NDArray[Any]] | None:
        """The inputs, then None."""
        inputs, self._left = self._left, None
        return inputs


def _pinned(threads: int | None) -> dict[str, str]:
    """The entry that binds each thread of a pool to a CPU; empty without such threads."""
    cpus = sorted(os.sched_getaffinity(0))
    # ONNX Runtime numbers CPUs from 1. The caller's thread, on the first CPU, has no entry.
    pool = [str(cpus[number % len(cpus)] + 1) for number in range(1, threads or len(cpus))]
    return {"session.intra_op_thread_affinities": ";".join(pool)} if pool else {}


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed the generators of ONNX Runtime and NumPy; sessions get the thread count."""
    del inter_op
    random.seed(seed)
    np.random.seed(seed)
    onnxruntime.set_seed(seed)
    _State.intra_op = intra_op


def describe() -> dict[str, Any]:
    """The version in use, and the size of the pool: the threads that exist because of it.

    ONNX Runtime does not report the size of its pools. The threads of sessions that a workload
    opens itself are counted too.
    """
    return {
        "threads_used": _POOL.size,
        "versions": {"onnxruntime": onnxruntime.__version__},
        "blas": "MLAS",
        "pins_threads": _State.pins_threads,
    }


def profile(step: Any, iterations: int, folder: str) -> Profile:
    """Run warm steps under ONNX Runtime's profiler and tabulate the time of operators.

    A step is one run of the session; the call from Python is outside it.

    Args:
        step: The function called per iteration.
        iterations: The number of iterations to tabulate; one more runs before them.
        folder: The folder for its file, which is in the Chrome trace format.

    Raises:
        ValueError: not exactly one `Session` was made.
    """
    (session,) = _State.sessions
    session.start_profiling(Path(folder) / "onnxruntime")
    for _ in range(1 + iterations):
        step()
    trace = session.end_profiling()
    events = json.loads(trace.read_text(encoding="utf-8"))
    runs = sorted(_times(event) for event in events if event["name"] == "model_run")
    spans = [
        Span(
            type=event["args"]["op_name"],
            thread=event["tid"],
            begin_ns=_times(event)[0],
            end_ns=_times(event)[1],
        )
        for event in events
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time")
    ]
    return tabulate(steps_of(runs[-iterations:], spans), str(trace))


def _times(event: dict[str, Any]) -> tuple[int, int]:
    """When an event began and ended, in nanoseconds."""
    return event["ts"] * 1000, (event["ts"] + event["dur"]) * 1000
