"""Built-in workloads in their frameworks: threads, placement, parameters and checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corebound.scenario.builtin_workloads import BUILT_IN
from support.environments import (
    PreloadedFrameworks,
    launch_once,
    plan_cell,
)

pytestmark = pytest.mark.frameworks


def test_resnet50_runs_bound_with_the_requested_threads(tmp_path: Path) -> None:
    outcome = launch_once(
        tmp_path,
        "pytorch",
        workload="resnet50-inference",
        binding="one-cpu",
        threads="per-core",
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    assert (worker.threads_asked, worker.threads_used) == (1, 1)
    assert worker.versions["torch"].startswith("2.13.0")
    assert worker.blas is not None
    assert len(worker.wall_ns) == 3


def test_pytorchs_own_launcher_places_the_worker_and_the_record_shows_where(
    tmp_path: Path,
) -> None:
    gemm: dict[str, Any] = {"workload": "gemm", "parameters": {"size": 64}, "binding": "launcher"}
    (command,) = plan_cell("pytorch", **gemm).commands

    outcome = launch_once(tmp_path, "pytorch", **gemm)

    assert "torch.backends.xeon.run_cpu" in command.argv
    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    # The launcher sets it; a plain start leaves it alone.
    assert worker.environment["OMP_NUM_THREADS"] == str(worker.threads_used)
    assert all(thread.allowed for thread in worker.threads)


@pytest.mark.quick
@pytest.mark.parametrize("name", ["numpy", "pytorch"])
def test_the_matrix_product_runs_and_names_its_blas(tmp_path: Path, name: str) -> None:
    outcome = launch_once(tmp_path, name, workload="gemm", parameters={"size": 64})

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    assert worker.blas
    assert worker.threads_used


# A server's parameters are for the traffic, and for the model that is made for it.
FUNCTIONS = tuple(one for one in BUILT_IN.values() if not one.serves)


FRAMEWORKS = sorted({framework for one in FUNCTIONS for framework in one.targets})


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_importing_a_framework_leaves_no_thread_and_no_file(
    tmp_path: Path, imported: PreloadedFrameworks, framework: str
) -> None:
    imported.output_of(framework, "", tmp_path)  # fails if a thread of Python's is left

    assert list(imported.home_of(framework).rglob("*")) == []


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_catalogue_lists_the_parameters_of_the_functions(
    tmp_path: Path, imported: PreloadedFrameworks, framework: str
) -> None:
    parameters_of = {
        built_in.targets[framework]: {
            name: kind.__name__
            for name, kind in built_in.parameters.items()
            # Without a value that it supports, a framework's function does not take it.
            if built_in.supported.get(framework, {}).get(name) != ()
        }
        | ({"gpus": "int"} if framework in built_in.gpus else {})
        for built_in in FUNCTIONS
        if framework in built_in.targets
    }

    output = imported.output_of(
        framework,
        "import importlib, inspect, json\n"
        "def taken(target):\n"
        "    module, _, name = target.partition(':')\n"
        "    function = getattr(importlib.import_module(module), name)\n"
        "    found = inspect.signature(function).parameters.values()\n"
        "    return {one.name: type(one.default).__name__ for one in found}\n"
        f"print(json.dumps({{target: taken(target) for target in {list(parameters_of)!r}}}))",
        tmp_path,
    )

    assert json.loads(output) == parameters_of


def test_a_wrong_matrix_product_is_detected(tmp_path: Path, imported: PreloadedFrameworks) -> None:
    output = imported.output_of(
        "numpy",
        "from corebound.worker.workload import WorkloadError\n"
        "from corebound.worker.workloads.gemm_numpy import product\n"
        "made = product(size=32)\n"
        "result = made.step()\n"
        "made.check(result)\n"
        "result[1, 1] += 1\n"
        "try:\n    made.check(result)\nexcept WorkloadError as error:\n    print(error)",
        tmp_path,
    )

    assert output.strip() == "the matrix product is wrong."


def test_torchvision_loads_beside_a_torch_built_for_cpus(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    output = imported.output_of(
        "pytorch",
        "from corebound.worker.adapters.pytorch import torchvision\n"
        "print(torchvision().models.resnet50.__name__, torchvision() is torchvision())",
        tmp_path,
    )

    assert output.strip() == "resnet50 True"


def test_torchvision_is_left_alone_where_it_loads_by_itself(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    # Stands for a host where both are CUDA builds: the import does not fail.
    output = imported.output_of(
        "pytorch",
        "import sys, types, torch\n"
        "sys.modules['torchvision'] = types.ModuleType('torchvision')\n"
        "from corebound.worker.adapters.pytorch import torchvision\n"
        "torchvision()\n"
        "print(hasattr(torch.ops.torchvision, 'nms'))",
        tmp_path,
    )

    assert output.strip() == "False"
