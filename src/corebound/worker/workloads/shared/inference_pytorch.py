"""A forward pass in PyTorch without gradients, and the check of its output."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray

from corebound.worker.workloads.shared.result_checks import LEAST_COSINE, wrong_result


@dataclass(frozen=True, slots=True, kw_only=True)
class Inference:
    """The forward pass of one batch through a model.

    Attributes:
        name: The model's name in error messages.
        model: The model, in evaluation mode.
        inputs: Its arguments.
        shape: The shape of its output.
        unit, count: What a step processes, and how many of it; without a unit, no work is
            reported.
        mode: `usual` runs the model as it is; `compiled`: through torch.compile, which needs a
            C++ compiler and takes most of the first step.
        reference: The output of float32 that a quantized model's is near to; None if it is not
            quantized.
    """

    name: str
    model: torch.nn.Module
    inputs: tuple[torch.Tensor, ...]
    shape: tuple[int, ...]
    unit: str | None = None
    count: int = 0
    mode: str = "usual"
    reference: torch.Tensor | None = None

    def __post_init__(self) -> None:
        if self.mode == "compiled":
            self.model.compile()

    def step(self) -> torch.Tensor:
        """Run the model once."""
        with torch.inference_mode():
            result: torch.Tensor = self.model(*self.inputs)
        return result

    def work(self) -> dict[str, float]:
        """The work of a step by unit."""
        return {} if self.unit is None else {self.unit: float(self.count)}

    def check(self, result: torch.Tensor) -> None:
        """Check that the output has the right shape and is finite and varied.

        Raises:
            WorkloadError: it does not, or the model was to be compiled and was not.
        """
        # torch.compile silently runs what it cannot trace as it is.
        if self.mode == "compiled" and not _compiled_graphs():
            raise wrong_result(
                f"torch.compile compiled nothing of {self.name}.", check="the build of torch"
            )
        require_valid(result, self.shape, self.name)
        if self.reference is None:
            return
        cosine = float(torch.cosine_similarity(result.flatten(), self.reference.flatten(), dim=0))
        if cosine < LEAST_COSINE:
            raise wrong_result(
                f"int8 gave an output whose cosine with that of float32 is {cosine:.3f}.",
                check="the build of torch",
            )


def quantized(model: torch.nn.Module) -> torch.nn.Module:
    """A model whose linear layers multiply in int8, with PyTorch's own dynamic quantization."""
    # The fused layers of a Transformer read weights that quantized layers do not have.
    torch.backends.mha.set_fastpath_enabled(value=False)
    with warnings.catch_warnings():
        # It is deprecated for torchao, which took as long as float32 or longer on CPUs.
        warnings.simplefilter("ignore", DeprecationWarning)
        result: torch.nn.Module = torch.ao.quantization.quantize_dynamic(
            model, {torch.nn.Linear}, dtype=torch.qint8
        )
    return result


def _compiled_graphs() -> int:
    """The number of graphs that torch.compile has compiled in this process."""
    # Not imported at the top, because it takes a second that other modes do not need.
    counters = importlib.import_module("torch._dynamo.utils").counters
    return int(counters["stats"]["unique_graphs"])


def load_weights(model: torch.nn.Module, weights: Mapping[str, NDArray[Any]]) -> None:
    """Give a model the weights of its parameters, in place, by their names.

    Raises:
        RuntimeError: a weight is missing, unknown or has another shape.
    """
    # Counts of training steps, which inference does not use.
    counters = {
        name: torch.tensor(0)
        for name in model.state_dict()
        if name.endswith(".num_batches_tracked")
    }
    tensors = {name: torch.from_numpy(values) for name, values in weights.items()}
    model.load_state_dict(tensors | counters, assign=True)


def require_valid(result: torch.Tensor, shape: tuple[int, ...], name: str) -> None:
    """Reject an output that no model would produce.

    Raises:
        WorkloadError: its shape is wrong, a number is not finite, or all are the same.
    """
    fault = None
    if tuple(result.shape) != shape:
        fault = f"{tuple(result.shape)}, not {shape}"
    elif not bool(torch.isfinite(result).all()):
        fault = "numbers that are not finite"
    elif result.numel() > 1 and float(result.float().std()) == 0.0:
        fault = "the same number everywhere"
    if fault is not None:
        raise wrong_result(f"{name} gave {fault}.", check="the build of torch")
