"""A forward pass in PyTorch without gradients, and the check of its output."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray

from corebound.worker.workloads.shared import inference
from corebound.worker.workloads.shared.result_checks import wrong_result


@dataclass(frozen=True, kw_only=True)
class Inference(inference.Inference):
    """The forward pass of one batch through a model in evaluation mode, without gradients."""

    model: torch.nn.Module
    mode: str

    def check(self, result: torch.Tensor) -> None:
        """Check the output, and that a model was compiled that was to be.

        Raises:
            WorkloadError: it is not so.
        """
        # torch.compile silently runs what it cannot trace as it is.
        if self.mode == "compiled" and not _compiled_graphs():
            raise wrong_result(
                f"torch.compile compiled nothing of {self.name}.", check="the build of torch"
            )
        super().check(result.float().numpy())


def forward_pass(
    model: torch.nn.Module,
    inputs: torch.Tensor,
    *,
    name: str,
    shape: tuple[int, ...],
    unit: str,
    mode: str = "usual",
    reference: torch.Tensor | None = None,
) -> Inference:
    """Set up the forward pass of one batch.

    Args:
        model: The model, in evaluation mode.
        inputs: Its argument; the batch is the first dimension.
        name: As in `inference.Inference`.
        shape: As there.
        unit: As there.
        mode: `usual` runs the model as it is; `compiled`: through torch.compile, which needs a
            C++ compiler and takes most of the first step.
        reference: As there.
    """
    if mode == "compiled":
        model.compile()

    def step() -> torch.Tensor:
        with torch.inference_mode():
            result: torch.Tensor = model(inputs)
        return result

    return Inference(
        name=name,
        runtime="torch",
        step=step,
        shape=shape,
        unit=unit,
        count=len(inputs),
        reference=None if reference is None else reference.numpy(),
        model=model,
        mode=mode,
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
    """Reject an output that no model would produce, as `inference.require_valid` does."""
    inference.require_valid(result.float().cpu().numpy(), shape, name=name, runtime="torch")
