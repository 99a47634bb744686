"""PyTorch adapter: sets the seed and thread counts, reports versions, profiles operators.

Also imports torchvision in a way that works with any build of PyTorch.
"""

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

from corebound.worker import operator_table


def prepare(*, seed: int, intra_op: int | None, inter_op: int | None) -> None:
    """Seed PyTorch's generators, and set its pool sizes if requested."""
    random.seed(seed)
    torch.manual_seed(seed)
    if intra_op is not None:
        torch.set_num_threads(intra_op)
    if inter_op is not None:
        torch.set_num_interop_threads(inter_op)


def threads_set() -> int:
    """The size of the intra-op pool, which a step may have changed."""
    return int(torch.get_num_threads())


def describe() -> dict[str, Any]:
    """The versions in use, the BLAS that PyTorch was built with, and its pool sizes."""
    config = torch.__config__.show()
    versions = {"torch": torch.__version__}
    for name, pattern in (("oneDNN", r"MKL-DNN v(\S+)"), ("OpenMP", r"OpenMP (\d+)")):
        if match := re.search(pattern, config):
            versions[name] = match.group(1)
    mkl = re.search(r"oneAPI Math Kernel Library Version (\S+)", config)
    declared = re.search(r"BLAS_INFO=(\w+)", config)
    return {
        "threads_used": torch.get_num_threads(),
        "inter_op_used": torch.get_num_interop_threads(),
        "versions": versions,
        "blas": f"MKL {mkl.group(1)}" if mkl else declared.group(1) if declared else None,
    }


def profile(step: Callable[[], object], iterations: int, folder: str) -> operator_table.Profile:
    """Run warm steps under torch.profiler and tabulate the self time of operators.

    Args:
        step: The function called per iteration.
        iterations: The number of iterations to tabulate. One more runs before them, because
            the profiler's own first step is slower.
    """
    with torch.profiler.profile(activities=[ProfilerActivity.CPU]) as profiler:
        for _ in range(1 + iterations):
            with record_function(operator_table.OWN_STEP):
                step()
    trace = Path(folder) / "trace.json"
    profiler.export_chrome_trace(str(trace))
    spans = [_span(event) for event in profiler.events() or () if not event.is_async]
    marks = [
        (_nanoseconds(event.time_range.start), _nanoseconds(event.time_range.end))
        for event in profiler.events() or ()
        if event.name == operator_table.OWN_STEP
    ]
    return operator_table.tabulate(operator_table.steps_of(sorted(marks)[1:], spans), str(trace))


def _nanoseconds(microseconds: float) -> int:
    return round(microseconds * 1000)


def _span(event: Any) -> operator_table.Span:
    name = str(event.name)
    return operator_table.Span(
        # Annotations contain operators but are not operators; autograd appends `: ` and a name.
        type=None if event.is_user_annotation else name.partition(": ")[0],
        thread=event.thread,
        begin_ns=_nanoseconds(event.time_range.start),
        end_ns=_nanoseconds(event.time_range.end),
        phase=operator_table.phase_in_torch(name),
    )


def torchvision() -> ModuleType:
    """Import torchvision, even a CUDA build of it with a CPU build of PyTorch.

    With such a pair, torchvision's compiled part does not declare its operators, and the
    import fails when it registers their meta functions. Models and transforms do not use
    these operators, so declaring their schemas is enough. If the builds match, nothing is
    declared.
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
