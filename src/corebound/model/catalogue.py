"""The built-in workloads, as both sides see them: the check before, the worker after.

Standard library only. A test holds every entry against the function it names.
"""

from __future__ import annotations

from dataclasses import dataclass, field

Kind = type[bool] | type[int] | type[float] | type[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIn:
    """A workload that comes with corebound.

    Attributes:
        targets: For each framework, the `module:function` that sets it up.
        parameters: The names the function takes, each with its type.
        choices: For some parameters, all the values they may have.
        least: For some, the smallest value that means anything.
    """

    targets: dict[str, str]
    parameters: dict[str, Kind]
    choices: dict[str, tuple[str, ...]]
    least: dict[str, int] = field(default_factory=dict)


BUILT_IN: dict[str, BuiltIn] = {
    "resnet50-inference": BuiltIn(
        targets={"pytorch": "corebound.workloads.resnet50_pytorch:inference"},
        parameters={"batch": int, "image": int, "dtype": str},
        choices={"dtype": ("float32", "bfloat16")},
        least={"batch": 1, "image": 1},
    ),
    "gemm": BuiltIn(
        targets={
            "numpy": "corebound.workloads.gemm_numpy:product",
            "pytorch": "corebound.workloads.gemm_pytorch:product",
        },
        parameters={"size": int, "dtype": str},
        choices={"dtype": ("float32", "float64")},
        least={"size": 1},
    ),
}
