"""PyTorch: seed, threads, what is in use; and torchvision beside any build of torch."""

from __future__ import annotations

import importlib
import random
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import library
from torch.profiler import ProfilerActivity, record_function

from corebound.worker.operator_table import OWN_STEP, Span, phase_in_torch, steps_of, tabulate
from corebound.worker.protocol import Profile


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed torch's generators and size its pools, where asked."""
    random.seed(seed)
    torch.manual_seed(seed)
    if intra_op is not None:
        torch.set_num_threads(intra_op)
    if inter_op is not None:
        torch.set_num_interop_threads(inter_op)


def describe() -> dict[str, Any]:
    """What is in use: versions, the BLAS torch was built with, the sizes of its pools."""
    config = torch.__config__.show()
    versions = {"torch": torch.__version__}
    for name, pattern in (("oneDNN", r"MKL-DNN v(\S+)"), ("OpenMP", r"OpenMP (\d+)")):
        if found := re.search(pattern, config):
            versions[name] = found.group(1)
    mkl = re.search(r"oneAPI Math Kernel Library Version (\S+)", config)
    declared = re.search(r"BLAS_INFO=(\w+)", config)
    return {
        "threads_used": torch.get_num_threads(),
        "inter_op_used": torch.get_num_interop_threads(),
        "versions": versions,
        "blas": f"MKL {mkl.group(1)}" if mkl else declared.group(1) if declared else None,
    }


def profile(step: Callable[[], object], iterations: int, folder: str) -> Profile:
    """Put warm steps under torch.profiler and tabulate the self time of operators.

    Args:
        step: What one iteration calls.
        iterations: How many to tabulate; one more is run before them, for the
            profiler's own first step is slower.
        folder: Where the Chrome trace goes.
    """
    with torch.profiler.profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(1 + iterations):
            with record_function(OWN_STEP):
                step()
    trace = Path(folder) / "trace.json"
    profiler.export_chrome_trace(str(trace))
    spans = [_span(event) for event in profiler.events() or () if not event.is_async]
    marks = [
        (_nanoseconds(event.time_range.start), _nanoseconds(event.time_range.end))
        for event in profiler.events() or ()
        if event.name == OWN_STEP
    ]
    return tabulate(steps_of(sorted(marks)[1:], spans), str(trace))


def _nanoseconds(microseconds: float) -> int:
    return round(microseconds * 1000)


def _span(event: Any) -> Span:
    name = str(event.name)
    return Span(
        # Annotations hold operators and are none; autograd names a function after `: `.
        type=None if event.is_user_annotation else name.partition(": ")[0],
        thread=event.thread,
        begin_ns=_nanoseconds(event.time_range.start),
        end_ns=_nanoseconds(event.time_range.end),
        phase=phase_in_torch(name),
    )


def torchvision() -> ModuleType:
    """Import torchvision, also a build made for CUDA beside a torch made for CPUs.

    Such a pair lacks the operators that torchvision's compiled part would have
    declared, and its import fails on registering their meta functions. Models
    and transforms do not use them, so declaring their schemas is enough. Where
    the builds match, nothing is declared.
    """
    try:
        return importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
    for operator in ("nms", "qnms"):
        library.define(
            f"torchvision::{operator}",
            "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
        )
    return importlib.import_module("torchvision")
