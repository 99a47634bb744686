"""PyTorch: seed, threads, what is in use; and torchvision beside any build of torch."""

from __future__ import annotations

import importlib
import random
import re
from types import ModuleType
from typing import Any

import torch


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
        torch.library.define(
            f"torchvision::{operator}",
            "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
        )
    return importlib.import_module("torchvision")
