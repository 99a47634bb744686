"""MindSpore: seed, threads, what is in use."""

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

# It reads this as it loads: errors only, for the rest would fill the launch's log.
os.environ.setdefault("GLOG_v", "3")

import mindspore as ms

from corebound.worker.operator_table import side_by_side, steps_of, tabulate
from corebound.worker.protocol import Profile

# A kernel of a graph is named by its place, type and number: `Default/network/MatMul-op7`.
_NUMBER = re.compile(r"-op\d+$")
_GRADIENTS = "Gradients"
# What MindSpore's own training cell calls its optimizer, and the kernels that optimizers end in.
_OPTIMIZER = "optimizer-"
_UPDATE = re.compile(r"(Fused)?(Sparse)?(Apply[A-Z]|Adam|SGD$)")
# What no name tells; it may be any of the others.
_UNTOLD = "untold"


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed MindSpore's generators, NumPy's too, and size its pools, where asked."""
    random.seed(seed)
    ms.set_device("CPU")
    ms.set_seed(seed)
    if intra_op is not None:
        ms.device_context.cpu.op_tuning.threads_num(intra_op)
    if inter_op is not None:
        set_dispatch_threads(inter_op)


def set_dispatch_threads(count: int) -> None:
    """Say how many threads hand operators out to run side by side; once in a process."""
    ms.runtime.dispatch_threads_num(count)


def describe() -> dict[str, Any]:
    """What is in use: the version; it tells neither its pools' sizes nor its BLAS.

    Its context has a figure for the pool, but that stays at the number of CPUs
    whatever was asked for.
    """
    return {
        "threads_used": None,
        "inter_op_used": None,
        "versions": {"mindspore": ms.__version__},
        "blas": None,
    }


def profile(step: Callable[[], object], iterations: int, folder: str) -> Profile:
    """Put warm steps under MindSpore's profiler and tabulate the time of its CPU kernels.

    Args:
        step: What one iteration calls; it has to wait for what it starts.
        iterations: How many to tabulate; the profiler warms up on one more.
        folder: Where its files go, the Chrome trace among them.
    """
    # Not at the top: only a profile pays for loading it.
    profiling = importlib.import_module("mindspore.profiler")
    marks = []
    with profiling.profile(
        activities=[profiling.ProfilerActivity.CPU],
        schedule=profiling.schedule(wait=0, warmup=1, active=iterations, repeat=1),
        on_trace_ready=profiling.tensorboard_trace_handler(folder),
    ) as profiler:
        for _ in range(1 + iterations):
            # Kernels are stamped with the time of day.
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
    """When each CPU kernel began and ended, in nanoseconds, and its name without its number."""
    for event in events:
        if event.get("args", {}).get("type") == "HostCpuOps":
            # A decimal text with more digits than a float has.
            whole, _, part = event["ts"].partition(".")
            began_ns = int(whole) * 1000 + int(part.ljust(3, "0")[:3])
            ended_ns = began_ns + round(float(event["dur"]) * 1000)
            yield began_ns, ended_ns, _NUMBER.sub("", event["name"])


def _phases(names: Collection[str]) -> dict[str, str]:
    """What each kernel is for, as far as names tell; nothing if no gradient or update is seen.

    A graph's gradients lie under `Gradients/` and the scope of what they belong to, which
    is therefore of the forward pass. What the compiler expanded has lost its scope, matrix
    products among it, and operator by operator there are none: only updates are told then.

    Returns:
        The phase by name: `untold` for those that might be of any.
    """
    paths = {name: name.split("/") for name in names}
    differentiated = {
        (path[1], path[2]) for path in paths.values() if path[0] == _GRADIENTS and len(path) > 4
    }
    found = {name: _phase(path, differentiated) for name, path in paths.items()}
    return found if {"backward", "update"} & set(found.values()) else {}


def _phase(path: list[str], differentiated: Collection[tuple[str, str]]) -> str:
    if path[0] == _GRADIENTS:
        return "backward"
    if _UPDATE.match(path[-1]) or any(scope.startswith(_OPTIMIZER) for scope in path[:-1]):
        return "update"
    return "forward" if len(path) > 2 and (path[0], path[1]) in differentiated else _UNTOLD
