"""The built-in workloads: their functions, parameters and frameworks.

The scenario checks and the plan of a cell read this table. A test compares every entry with the
function that it names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from msgspec import Struct

from corebound.scenario.fault_wording import join_words
from corebound.scenario.traffic import BOUNDED_SHAPES, OPEN_SHAPES, Client, Shape

# The number of different tokens of the served language model (`worker.workloads.shared.decoder`).
VOCABULARY = 8_000


# For each traffic parameter, the shapes that require it; other shapes do not accept it.
SHAPES_BY_PARAMETER: Mapping[str, frozenset[Shape]] = {
    "concurrency": frozenset({"closed"}),
    "rate": frozenset(OPEN_SHAPES),
    "query": frozenset({"multi-stream"}),
    "bound_ms": frozenset(BOUNDED_SHAPES),
}


Kind = type[bool] | type[int] | type[float] | type[str]
_TYPE_NAMES: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}


class Parameter(Struct, frozen=True, kw_only=True):
    """A parameter of a workload: its type, and the values that it may have.

    Attributes:
        kind: Its type; a `float` must be above 0, and may be a whole number.
        choices: The allowed texts; empty allows any.
        least: The minimum of a whole number.
        is_path: Whether it is a path, relative to the scenario file.
    """

    kind: Kind
    choices: tuple[str, ...] = ()
    least: int | None = None
    is_path: bool = False

    def correction(self, value: Any) -> str | None:
        """How to correct a value; None if it is valid."""
        # `bool` is a kind of `int`, and each value has the kind that it is written as.
        if type(value) not in ({int, float} if self.kind is float else {self.kind}):
            return f"Write {_TYPE_NAMES[self.kind]}."
        if self.choices and value not in self.choices:
            return f"Write {join_words(self.choices)}."
        if self.least is not None and value < self.least:
            return f"Write {self.least} or more."
        return "Write a number above 0." if self.kind is float and value <= 0 else None


class BuiltIn(Struct, frozen=True, kw_only=True):
    """A workload that comes with corebound.

    Attributes:
        functions: For each framework, the `module:function` of `worker/workloads` that sets the
            workload up.
        parameters: The function's parameters, by name.
        required: The parameters that have no default.
        gpus: The maximum number of GPUs, for each framework in which the function also
            takes `gpus` and then computes on GPUs.
        serves: Whether it is a server that requests are sent to; each function is then
            the handler that answers them.
        supported: For each framework, the only choices of a parameter that it supports, if
            it does not support all of them.
    """

    functions: Mapping[str, str]
    parameters: Mapping[str, Parameter]
    required: tuple[str, ...] = ()
    gpus: Mapping[str, int] = {}
    serves: bool = False
    supported: Mapping[str, Mapping[str, tuple[str, ...]]] = {}

    @property
    def targets(self) -> Mapping[str, str]:
        """For each framework, the `module:function` that a worker imports."""
        return {
            name: f"corebound.worker.workloads.{function}"
            for name, function in self.functions.items()
        }

    @property
    def files(self) -> tuple[str, ...]:
        """The parameters that are paths."""
        return tuple(name for name, parameter in self.parameters.items() if parameter.is_path)


def _one_of(*choices: str) -> Parameter:
    return Parameter(kind=str, choices=choices)


def _from(least: int) -> Parameter:
    return Parameter(kind=int, least=least)


_ABOVE_ZERO, _FLAG = Parameter(kind=float), Parameter(kind=bool)
_TEXT, _FILE = Parameter(kind=str), Parameter(kind=str, is_path=True)
_FLOATS, _NETWORKS = _one_of("float32", "bfloat16"), _one_of("small", "large")
_TYPES = _one_of("float32", "bfloat16", "int8")

# The ways in which the runtimes of trained networks can run them, and which have each.
_MODES = _one_of("usual", "compiled", "no-spinning", "pinned", "unpinned", "throughput")
_RUNTIMES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "pytorch": {"dtype": ("float32", "bfloat16"), "mode": ("usual", "compiled")},
    "onnxruntime": {"dtype": ("float32", "int8"), "mode": ("usual", "no-spinning", "pinned")},
    "openvino": {
        "dtype": ("float32", "bfloat16"),
        "mode": ("usual", "pinned", "unpinned", "throughput"),
    },
    "jax": {"dtype": ("float32", "bfloat16"), "mode": ("usual",)},
}

# The parameters that say how any server is loaded.
_TRAFFIC = {
    "traffic": _one_of(*get_args(Shape)),
    "concurrency": _from(1),
    "rate": _ABOVE_ZERO,
    "query": _from(1),
    "bound_ms": _ABOVE_ZERO,
}
_CLIENT = {"client": _one_of(*get_args(Client))}
# Those of texts that a server of a language model gets and writes.
_TEXTS = {
    "context": _from(32),
    "prompt": _from(1),
    "output": _from(1),
    **dict.fromkeys(("spread", "first_token_ms", "per_token_ms"), _ABOVE_ZERO),
}

# What every server of the user's own takes, besides the parameters that its command names.
OWN_SERVER = BuiltIn(functions={}, parameters=_TRAFFIC | _TEXTS | _CLIENT, serves=True)

BUILT_IN: Mapping[str, BuiltIn] = {
    "resnet50-inference": BuiltIn(
        functions={
            "pytorch": "resnet50_pytorch:inference",
            "onnxruntime": "inference_onnxruntime:resnet50",
            "openvino": "inference_openvino:resnet50",
            "jax": "resnet50_jax:inference",
        },
        parameters={"batch": _from(1), "image": _from(1), "dtype": _TYPES, "mode": _MODES},
        supported=_RUNTIMES,
    ),
    "image-serving": BuiltIn(
        functions={
            "torchserve": "served_classifier_torchserve:Handler",
            "litserve": "served_classifier_litserve:Classifier",
            "fastapi": "served_classifier_fastapi:application",
        },
        parameters={
            "model": _one_of("resnet18", "resnet50"),
            "image": _from(32),
            "runtime": _one_of("pytorch", "onnxruntime"),
            **_TRAFFIC,
            **_CLIENT,
        },
        required=("model", "image"),
        serves=True,
        supported={name: {"runtime": ("pytorch",)} for name in ("torchserve", "litserve")},
    ),
    "text-serving": BuiltIn(
        functions={
            "fastapi": "served_decoder_fastapi:application",
            "llama-server": "served_decoder_llama_server:main",
        },
        parameters=_TEXTS | {"slots": _from(1), "dtype": _one_of("float32", "int8")} | _TRAFFIC,
        required=("context", "prompt", "output"),
        serves=True,
        supported={"fastapi": {"dtype": ("float32",)}},
    ),
    "gemm": BuiltIn(
        functions={"numpy": "gemm_numpy:product", "pytorch": "gemm_pytorch:product"},
        parameters={"size": _from(1), "dtype": _one_of("float32", "float64")},
        gpus={"pytorch": 1},
    ),
    "gemm-blas": BuiltIn(
        functions={"numpy": "gemm_blas_numpy:product"},
        parameters={
            "size": _from(1),
            "dtype": _one_of("float32", "float64"),
            "blas": _one_of("openblas", "mkl"),
        },
    ),
    "image-training": BuiltIn(
        functions={"pytorch": "image_training_pytorch:step"},
        parameters={"model": _NETWORKS, "batch": _from(2), "image": _from(64)},
        gpus={"pytorch": 1},
    ),
    "image-pipeline": BuiltIn(
        functions={"pytorch": "image_pipeline_pytorch:step"},
        parameters={
            "model": _NETWORKS,
            "preprocessing": _one_of("light", "heavy"),
            "loaders": _from(0),
            "batch": _from(2),
            "image": _from(64),
        },
        gpus={"pytorch": 1},
    ),
    "checkpoint-training": BuiltIn(
        functions={"pytorch": "checkpoint_pytorch:epoch"},
        parameters={"model": _NETWORKS, "steps": _from(1), "every": _from(0), "batch": _from(2)},
    ),
    "distributed-training": BuiltIn(
        functions={"pytorch": "distributed_pytorch:step"},
        parameters={
            "method": _one_of("ddp", "dp"),
            "processes": _from(1),
            "model": _NETWORKS,
            "batch": _from(2),
        },
        gpus={"pytorch": 64},
    ),
    "hourglass-training": BuiltIn(
        functions={"pytorch": "hourglass_pytorch:step", "tensorflow": "hourglass_tensorflow:step"},
        parameters={
            "stacks": _from(1),
            "channels": _from(16),
            "image": _from(128),
            "batch": _from(2),
            "dropout": _one_of("plain", "cheap", "none"),
        },
    ),
    "mobilenet-inference": BuiltIn(
        functions={"pytorch": "mobilenet_pytorch:inference"},
        parameters={
            "batch": _from(1),
            "image": _from(1),
            "dtype": _FLOATS,
            "mode": _one_of("usual", "compiled"),
        },
    ),
    "encoder-inference": BuiltIn(
        functions={
            "pytorch": "encoder_pytorch:inference",
            "onnxruntime": "inference_onnxruntime:encoder",
            "openvino": "inference_openvino:encoder",
            "jax": "encoder_jax:inference",
        },
        parameters={
            **dict.fromkeys(("batch", "sequence", "layers"), _from(1)),
            "dtype": _TYPES,
            "mode": _MODES,
        },
        # PyTorch quantizes linear layers in each run, which ResNet-50 has one of.
        supported={**_RUNTIMES, "pytorch": {"mode": _RUNTIMES["pytorch"]["mode"]}},
    ),
    "onnx-inference": BuiltIn(
        functions={name: f"inference_{name}:from_file" for name in ("onnxruntime", "openvino")},
        parameters={"model": _FILE, "shapes": _TEXT, "below": _from(1), "mode": _MODES},
        required=("model",),
        supported={name: {"mode": modes["mode"]} for name, modes in _RUNTIMES.items()},
    ),
    "lstm-inference": BuiltIn(
        functions={"pytorch": "lstm_pytorch:inference"},
        parameters={"batch": _from(1), "sequence": _from(1), "dtype": _FLOATS},
    ),
    "recommender-inference": BuiltIn(
        functions={"pytorch": "recommender_pytorch:inference"},
        parameters={"batch": _from(1), "dtype": _FLOATS},
    ),
    "decoder-inference": BuiltIn(
        functions={
            "pytorch": "decoder_pytorch:inference",
            "llama-cpp": "decoder_llama_cpp:inference",
        },
        parameters={
            "batch": _from(1),
            "context": _from(1),
            "prompt": _from(0),
            "dtype": _TYPES,
            "mode": _one_of("usual", "pinned"),
            "model": _FILE,
        },
        supported={
            "pytorch": {"dtype": ("float32", "bfloat16"), "mode": ("usual",), "model": ()},
            "llama-cpp": {"dtype": ("float32", "int8")},
        },
    ),
    "small-network-training": BuiltIn(
        functions={
            name: f"small_network_{name}:training"
            for name in ("mindspore", "tensorflow", "pytorch")
        },
        parameters={
            **dict.fromkeys(("batch", "width", "layers"), _from(1)),
            "mode": _one_of("usual", "graph", "eager"),
            "dispatch_threads": _from(0),
            "blocking": _FLAG,
        },
    ),
    "tree-training": BuiltIn(
        functions={
            "scikit-learn": "trees_scikit_learn:training",
            "xgboost": "trees_xgboost:training",
            "lightgbm": "trees_lightgbm:training",
        },
        parameters={
            "model": _one_of("boosting", "forest"),
            "rows": _from(1000),
            "columns": _from(5),
            "trees": _from(1),
        },
    ),
    "checkpoint-saving": BuiltIn(
        functions={"mindspore": "checkpoint_mindspore:checkpointing"},
        parameters={
            "width": _from(1),
            "layers": _from(1),
            "steps": _from(0),
            "asynchronous": _FLAG,
        },
    ),
    "rectangular-gemm": BuiltIn(
        functions={"mindspore": "rectangular_gemm_mindspore:product"},
        parameters={
            **dict.fromkeys(("rows", "inner", "columns"), _from(1)),
            "dtype": _one_of("float32", "float16"),
        },
    ),
    "classifier-training": BuiltIn(
        functions={"mindspore": "classifier_mindspore:training"},
        parameters={"batch": _from(1), "features": _from(1), "classes": _from(2)},
    ),
    "dataset-pipeline": BuiltIn(
        functions={"mindspore": "dataset_mindspore:pipeline"},
        parameters={
            **dict.fromkeys(("batch", "image", "batches", "loaders"), _from(1)),
            "autotune": _FLAG,
        },
    ),
}


def built_in_of(workload: object) -> BuiltIn | None:
    """The built-in that a scenario's `workload` names; None if it is something else."""
    return BUILT_IN.get(workload) if isinstance(workload, str) else None
