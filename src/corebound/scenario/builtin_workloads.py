"""The built-in workloads: their functions, parameters and frameworks.

Both the scenario checks and the worker read this table. A test compares every entry with
the function that it names.
"""

from collections.abc import Mapping
from typing import get_args

from msgspec import Struct, field

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


class BuiltIn(Struct, frozen=True, kw_only=True):
    """A workload that comes with corebound.

    Attributes:
        targets: For each framework, the `module:function` that sets the workload up.
        parameters: The function's parameters, each with its type.
        choices: The allowed values of some parameters.
        least: The minimum of some parameters.
        above_zero: The parameters that must be above 0 and may be fractions.
        required: The parameters that have no default.
        gpus: The maximum number of GPUs, for each framework in which the function also
            takes `gpus` and then computes on GPUs.
        serves: Whether it is a server that requests are sent to; each target then names
            the handler that answers them.
        texts: The parameters that are any text, without choices.
        files: Those of them that are paths, relative to the scenario file.
        supported: For each framework, the only choices of a parameter that it supports, if
            it does not support all of them.
    """

    targets: dict[str, str]
    parameters: dict[str, Kind]
    choices: dict[str, tuple[str, ...]]
    least: dict[str, int] = field(default_factory=dict)
    above_zero: frozenset[str] = frozenset()
    required: tuple[str, ...] = ()
    gpus: dict[str, int] = field(default_factory=dict)
    serves: bool = False
    texts: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    supported: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)


# The ways in which the runtimes of trained networks can run them, and which have each.
_MODES = ("usual", "compiled", "no-spinning", "pinned", "unpinned", "throughput")
_RUNTIMES: dict[str, dict[str, tuple[str, ...]]] = {
    "pytorch": {"dtype": ("float32", "bfloat16"), "mode": ("usual", "compiled")},
    "onnxruntime": {"dtype": ("float32", "int8"), "mode": ("usual", "no-spinning", "pinned")},
    "openvino": {
        "dtype": ("float32", "bfloat16"),
        "mode": ("usual", "pinned", "unpinned", "throughput"),
    },
    "jax": {"dtype": ("float32", "bfloat16"), "mode": ("usual",)},
}
# PyTorch quantizes linear layers in each run, which ResNet-50 has one of.
_ENCODER_RUNTIMES = _RUNTIMES | {
    "pytorch": {**_RUNTIMES["pytorch"], "dtype": ("float32", "bfloat16", "int8")}
}

# The parameters that say how any server is loaded.
_TRAFFIC: dict[str, Kind] = {
    "traffic": str,
    "concurrency": int,
    "rate": float,
    "query": int,
    "bound_ms": float,
}
# Those of texts that a server of a language model gets and writes.
_TEXTS: dict[str, Kind] = {
    "context": int,
    "prompt": int,
    "output": int,
    "spread": float,
    "first_token_ms": float,
    "per_token_ms": float,
}
_ABOVE_ZERO = frozenset({"spread", "first_token_ms", "per_token_ms", "rate", "bound_ms"})

# What every server of the user's own takes, besides the parameters that its command names.
OWN_SERVER = BuiltIn(
    targets={},
    parameters=_TRAFFIC | _TEXTS | {"client": str},
    choices={"traffic": get_args(Shape), "client": get_args(Client)},
    least={"context": 32, "prompt": 1, "output": 1, "concurrency": 1, "query": 1},
    above_zero=_ABOVE_ZERO,
    serves=True,
)

BUILT_IN: dict[str, BuiltIn] = {
    "resnet50-inference": BuiltIn(
        targets={
            "pytorch": "corebound.worker.workloads.resnet50_pytorch:inference",
            "onnxruntime": "corebound.worker.workloads.inference_onnxruntime:resnet50",
            "openvino": "corebound.worker.workloads.inference_openvino:resnet50",
            "jax": "corebound.worker.workloads.resnet50_jax:inference",
        },
        parameters={"batch": int, "image": int, "dtype": str, "mode": str},
        choices={"dtype": ("float32", "bfloat16", "int8"), "mode": _MODES},
        least={"batch": 1, "image": 1},
        supported=_RUNTIMES,
    ),
    "image-serving": BuiltIn(
        targets={
            "torchserve": "corebound.worker.workloads.served_classifier_torchserve:Handler",
            "litserve": "corebound.worker.workloads.served_classifier_litserve:Classifier",
            "fastapi": "corebound.worker.workloads.served_classifier_fastapi:application",
        },
        parameters={
            "model": str,
            "image": int,
            "runtime": str,
            **_TRAFFIC,
            "client": str,
        },
        choices={
            "model": ("resnet18", "resnet50"),
            "runtime": ("pytorch", "onnxruntime"),
            "traffic": get_args(Shape),
            "client": get_args(Client),
        },
        least={"image": 32, "concurrency": 1, "query": 1},
        above_zero=frozenset({"rate", "bound_ms"}),
        required=("model", "image"),
        serves=True,
        supported={name: {"runtime": ("pytorch",)} for name in ("torchserve", "litserve")},
    ),
    "text-serving": BuiltIn(
        targets={
            "fastapi": "corebound.worker.workloads.served_decoder_fastapi:application",
            "llama-server": "corebound.worker.workloads.served_decoder_llama_server:main",
        },
        parameters=_TEXTS | {"slots": int, "dtype": str} | _TRAFFIC,
        choices={"dtype": ("float32", "int8"), "traffic": get_args(Shape)},
        least={
            "context": 32,
            "prompt": 1,
            "output": 1,
            "slots": 1,
            "concurrency": 1,
            "query": 1,
        },
        above_zero=_ABOVE_ZERO,
        required=("context", "prompt", "output"),
        serves=True,
        supported={"fastapi": {"dtype": ("float32",)}},
    ),
    "gemm": BuiltIn(
        targets={
            "numpy": "corebound.worker.workloads.gemm_numpy:product",
            "pytorch": "corebound.worker.workloads.gemm_pytorch:product",
        },
        parameters={"size": int, "dtype": str},
        choices={"dtype": ("float32", "float64")},
        least={"size": 1},
        gpus={"pytorch": 1},
    ),
    "gemm-blas": BuiltIn(
        targets={"numpy": "corebound.worker.workloads.gemm_blas_numpy:product"},
        parameters={"size": int, "dtype": str, "blas": str},
        choices={"dtype": ("float32", "float64"), "blas": ("openblas", "mkl")},
        least={"size": 1},
    ),
    "image-training": BuiltIn(
        targets={"pytorch": "corebound.worker.workloads.image_training_pytorch:step"},
        parameters={"model": str, "batch": int, "image": int},
        choices={"model": ("small", "large")},
        least={"batch": 2, "image": 64},
        gpus={"pytorch": 1},
    ),
    "image-pipeline": BuiltIn(
        targets={"pytorch": "corebound.worker.workloads.image_pipeline_pytorch:step"},
        parameters={
            "model": str,
            "preprocessing": str,
            "loaders": int,
            "batch": int,
            "image": int,
        },
        choices={"model": ("small", "large"), "preprocessing": ("light", "heavy")},
        least={"loaders": 0, "batch": 2, "image": 64},
        gpus={"pytorch": 1},
    ),
    "checkpoint-training": BuiltIn(
        targets={"pytorch": "corebound.worker.workloads.checkpoint_pytorch:epoch"},
        parameters={"model": str, "steps": int, "every": int, "batch": int},
        choices={"model": ("small", "large")},
        least={"steps": 1, "every": 0, "batch": 2},
    ),
    "distributed-training": BuiltIn(
        targets={"pytorch": "corebound.worker.workloads.distributed_pytorch:step"},
        parameters={"method": str, "processes": int, "model": str, "batch": int},
        choices={"method": ("ddp", "dp"), "model": ("small", "large")},
        least={"processes": 1, "batch": 2},
        gpus={"pytorch": 64},
    ),
    "hourglass-training": BuiltIn(
        targets={
            "pytorch": "corebound.worker.workloads.hourglass_pytorch:step",
            "tensorflow": "corebound.worker.workloads.hourglass_tensorflow:step",
        },
        parameters={"stacks": int, "channels": int, "image": int, "batch": int, "dropout": str},
        choices={"dropout": ("plain", "cheap", "none")},
        least={"stacks": 1, "channels": 16, "image": 128, "batch": 2},
    ),
    "mobilenet-inference": BuiltIn(
        targets={"pytorch": "corebound.worker.workloads.mobilenet_pytorch:inference"},
        parameters={"batch": int, "image": int, "dtype": str, "mode": str},
        choices={"dtype": ("float32", "bfloat16"), "mode": ("usual", "compiled")},
        least={"batch": 1, "image": 1},
    ),
    "encoder-inference": BuiltIn(
        targets={
            "pytorch": "corebound.worker.workloads.encoder_pytorch:inference",
            "onnxruntime": "corebound.worker.workloads.inference_onnxruntime:encoder",
            "openvino": "corebound.worker.workloads.inference_openvino:encoder",
            "jax": "corebound.worker.workloads.encoder_jax:inference",
        },
        parameters={"batch": int, "sequence": int, "layers": int, "dtype": str, "mode": str},
        choices={"dtype": ("float32", "bfloat16", "int8"), "mode": _MODES},
        least={"batch": 1, "sequence": 1, "layers": 1},
        supported=_ENCODER_RUNTIMES,
    ),
    "onnx-inference": BuiltIn(
        targets={
            name: f"corebound.worker.workloads.inference_{name}:from_file"
            for name in ("onnxruntime", "openvino")
        },
        parameters={"model": str, "shapes": str, "below": int, "mode": str},
        choices={"mode": _MODES},
        least={"below": 1},
        required=("model",),
        texts=frozenset({"model", "shapes"}),
        files=frozenset({"model"}),
        supported={name: {"mode": modes["mode"]} for name, modes in _RUNTIMES.items()},
    ),
    "lstm-inference": BuiltIn(
        targets={"pytorch": "corebound.worker.workloads.lstm_pytorch:inference"},
        parameters={"batch": int, "sequence": int, "dtype": str},
        choices={"dtype": ("float32", "bfloat16")},
        least={"batch": 1, "sequence": 1},
    ),
    "recommender-inference": BuiltIn(
        targets={"pytorch": "corebound.worker.workloads.recommender_pytorch:inference"},
        parameters={"batch": int, "dtype": str},
        choices={"dtype": ("float32", "bfloat16")},
        least={"batch": 1},
    ),
    "decoder-inference": BuiltIn(
        targets={
            "pytorch": "corebound.worker.workloads.decoder_pytorch:inference",
            "llama-cpp": "corebound.worker.workloads.decoder_llama_cpp:inference",
        },
        parameters={
            "batch": int,
            "context": int,
            "prompt": int,
            "dtype": str,
            "mode": str,
            "model": str,
        },
        choices={"dtype": ("float32", "bfloat16", "int8"), "mode": ("usual", "pinned")},
        least={"batch": 1, "context": 1, "prompt": 0},
        texts=frozenset({"model"}),
        files=frozenset({"model"}),
        supported={
            "pytorch": {"dtype": ("float32", "bfloat16"), "mode": ("usual",), "model": ()},
            "llama-cpp": {"dtype": ("float32", "int8"), "mode": ("usual", "pinned")},
        },
    ),
    "small-network-training": BuiltIn(
        targets={
            "mindspore": "corebound.worker.workloads.small_network_mindspore:training",
            "tensorflow": "corebound.worker.workloads.small_network_tensorflow:training",
            "pytorch": "corebound.worker.workloads.small_network_pytorch:training",
        },
        parameters={
            "batch": int,
            "width": int,
            "layers": int,
            "mode": str,
            "dispatch_threads": int,
            "blocking": bool,
        },
        choices={"mode": ("usual", "graph", "eager")},
        least={"batch": 1, "width": 1, "layers": 1, "dispatch_threads": 0},
    ),
    "tree-training": BuiltIn(
        targets={
            "scikit-learn": "corebound.worker.workloads.trees_scikit_learn:training",
            "xgboost": "corebound.worker.workloads.trees_xgboost:training",
            "lightgbm": "corebound.worker.workloads.trees_lightgbm:training",
        },
        parameters={"model": str, "rows": int, "columns": int, "trees": int},
        choices={"model": ("boosting", "forest")},
        least={"rows": 1000, "columns": 5, "trees": 1},
    ),
    "checkpoint-saving": BuiltIn(
        targets={"mindspore": "corebound.worker.workloads.checkpoint_mindspore:checkpointing"},
        parameters={"width": int, "layers": int, "steps": int, "asynchronous": bool},
        choices={},
        least={"width": 1, "layers": 1, "steps": 0},
    ),
    "rectangular-gemm": BuiltIn(
        targets={"mindspore": "corebound.worker.workloads.rectangular_gemm_mindspore:product"},
        parameters={"rows": int, "inner": int, "columns": int, "dtype": str},
        choices={"dtype": ("float32", "float16")},
        least={"rows": 1, "inner": 1, "columns": 1},
    ),
    "classifier-training": BuiltIn(
        targets={"mindspore": "corebound.worker.workloads.classifier_mindspore:training"},
        parameters={"batch": int, "features": int, "classes": int},
        choices={},
        least={"batch": 1, "features": 1, "classes": 2},
    ),
    "dataset-pipeline": BuiltIn(
        targets={"mindspore": "corebound.worker.workloads.dataset_mindspore:pipeline"},
        parameters={"batch": int, "image": int, "batches": int, "loaders": int, "autotune": bool},
        choices={},
        least={"batch": 1, "image": 1, "batches": 1, "loaders": 1},
    ),
}
