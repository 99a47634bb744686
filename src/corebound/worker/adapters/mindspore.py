"""MindSpore adapter: sets the seed and thread counts, reports versions, profiles kernels."""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

# Read when MindSpore loads. Log only errors, because other messages would fill the launch's log.
os.environ.setdefault("GLOG_v", "3")

import mindspore as ms

from corebound.worker.operator_table import Profile, side_by_side, steps_of, tabulate

# A kernel of a graph is named by its scope, type and number: `Default/network/MatMul-op7`.
_NUMBER = re.compile(r"-op\d+$")
_GRADIENTS = "Gradients"
# The scope of the optimizer in MindSpore's own training cell, and the update kernels' names.
_OPTIMIZER = "optimizer-"
_UPDATE = re.compile(r"(Fused)?(Sparse)?(Apply[A-Z]|Adam|SGD$)")
# The phase of kernels whose name shows none; it may be any of the others.
_UNTOLD = "untold"


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed the generators of MindSpore and NumPy, and set pool sizes if requested."""
    random.seed(seed)
    ms.set_device("CPU")
    ms.set_seed(seed)
    if intra_op is not None:
        ms.device_context.cpu.op_tuning.threads_num(intra_op)
    if inter_op is not None:
        set_dispatch_threads(inter_op)


def set_dispatch_threads(count: int) -> None:
    """Set the number of threads that dispatch operators in parallel; only once per process."""
    ms.runtime.dispatch_threads_num(count)


def describe() -> dict[str, Any]:
    """The version in use; MindSpore reports neither its pool sizes nor its BLAS.

    Its context has a value for the pool size, but that is always the number of CPUs,
    whatever was requested.
    """
    return {"versions": {"mindspore": ms.__version__}}


def profile(step: Callable[[], object], iterations: int, folder: str) -> Profile:
    """Run warm steps under MindSpore's profiler and tabulate the time of its CPU kernels.

    Args:
        step: The function called per iteration; it must wait for the work that it starts.
        iterations: The number of iterations to tabulate; one more warms up the profiler.
    """
    # Not imported at the top, because only profiling needs it.
    profiling = importlib.import_module("mindspore.profiler")
    marks = []
    with profiling.profile(
        activities=[profiling.ProfilerActivity.CPU],
        schedule=profiling.schedule(wait=0, warmup=1, active=iterations, repeat=1),
        on_trace_ready=profiling.tensorboard_trace_handler(folder),
    ) as profiler:
        for _ in range(1 + iterations):
            # Kernel timestamps are wall-clock time.
            began_ns = time.time_ns()
            step()
            marks.append((began_ns, time.time_ns()))
            profiler.step()
    (trace,) = Path(folder).glob("*/ASCEND_PROFILER_OUTPUT/trace_view.json")
    events = json.loads(trace.read_text())
    kernels = list(_kernels(events))
    phases = _phases({name for _, _, name in kernels})
    spans = [
        replace(span, type=str(span.type).rpartition("/")[2], phase=phases.get(str(span.type)))
        for span in side_by_side(kernels)
    ]
    return tabulate(steps_of(marks[1:], spans), str(trace))


def _kernels(events: list[dict[str, Any]]) -> Iterator[tuple[int, int, str]]:
    """The start and end of each CPU kernel in nanoseconds, and its name without its number."""
    for event in events:
        if event.get("args", {}).get("type") == "HostCpuOps":
            # A decimal string with more digits than a float can hold.
            microseconds, _, fraction = event["ts"].partition(".")
            begin_ns = int(microseconds) * 1000 + int(fraction.ljust(3, "0")[:3])
            end_ns = begin_ns + round(float(event["dur"]) * 1000)
            yield begin_ns, end_ns, _NUMBER.sub("", event["name"])


def _phases(names: Collection[str]) -> dict[str, str]:
    """The phase of each kernel by name, or `untold`; empty if no gradient or update is found.

    A graph's gradients are in `Gradients/` followed by the scope that they differentiate; that
    scope therefore belongs to the forward pass. Kernels that the compiler expanded, such as
    matrix products, have lost their scope. In eager mode there are no scopes, and only updates
    are recognized.
    """
    paths = {name: name.split("/") for name in names}
    differentiated = {
        (path[1], path[2]) for path in paths.values() if path[0] == _GRADIENTS and len(path) > 4
    }
    phases = {name: _phase(path, differentiated) for name, path in paths.items()}
    return phases if {"backward", "update"} & set(phases.values()) else {}


def _phase(path: list[str], differentiated: Collection[tuple[str, str]]) -> str:
    if path[0] == _GRADIENTS:
        return "backward"
    if _UPDATE.match(path[-1]) or any(scope.startswith(_OPTIMIZER) for scope in path[:-1]):
        return "update"
    return "forward" if len(path) > 2 and (path[0], path[1]) in differentiated else _UNTOLD
