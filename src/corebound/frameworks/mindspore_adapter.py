"""MindSpore: seed, threads, what is in use."""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# It reads this as it loads: errors only, for the rest would fill the launch's log.
os.environ.setdefault("GLOG_v", "3")

import mindspore as ms

from corebound.model.operators import Span, steps_of, tabulate
from corebound.model.wire import Profile

# A kernel of a graph is named by its place, type and number: `Default/network/MatMul-op7`.
_NUMBER = re.compile(r"-op\d+$")


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
    return tabulate(steps_of(marks[1:], _side_by_side(_kernels(events))), str(trace))


def _kernels(events: list[dict[str, Any]]) -> Iterator[tuple[int, int, str]]:
    """When each CPU kernel began and ended, in nanoseconds, and its type, in order."""
    found = []
    for event in events:
        if event.get("args", {}).get("type") == "HostCpuOps":
            type_ = _NUMBER.sub("", event["name"].rpartition("/")[2])
            # A decimal text with more digits than a float has.
            whole, _, part = event["ts"].partition(".")
            began_ns = int(whole) * 1000 + int(part.ljust(3, "0")[:3])
            found.append((began_ns, began_ns + round(float(event["dur"]) * 1000), type_))
    return iter(sorted(found))


def _side_by_side(kernels: Iterator[tuple[int, int, str]]) -> Iterator[Span]:
    """Give kernels that ran at the same time a thread each: MindSpore tells none.

    They never run within one another, so what overlaps ran side by side.
    """
    ends_ns: list[int] = []
    for began_ns, ended_ns, type_ in kernels:
        thread = next((lane for lane, end in enumerate(ends_ns) if end <= began_ns), len(ends_ns))
        ends_ns[thread : thread + 1] = [ended_ns]
        yield Span(type=type_, thread=thread, begin_ns=began_ns, end_ns=ended_ns)
