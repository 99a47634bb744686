"""Built-in workloads in their frameworks: threads, placement, parameters, work and checks."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from corebound.launch.launch import LaunchResult
from corebound.records.launch_record import Kind, Worker
from corebound.scenario.builtin_workloads import BUILT_IN
from corebound.worker.workloads.shared import cpu_time
from support.environments import PreloadedFrameworks, launch_once, plan_cell
from support.paths import ROOT

pytestmark = pytest.mark.frameworks

# A server's parameters are for the traffic, and for the model that is made for it.
FUNCTIONS = tuple(one for one in BUILT_IN.values() if not one.serves)
FRAMEWORKS = sorted({framework for one in FUNCTIONS for framework in one.targets})


def worker_of(outcome: LaunchResult) -> Worker:
    """The worker of a launch with which nothing is wrong."""
    assert (outcome.status, outcome.reason, outcome.leftover_processes) == ("ok", None, ())
    (worker,) = outcome.workers
    return worker


def test_resnet50_runs_bound_with_the_requested_threads(tmp_path: Path) -> None:
    resnet: dict[str, Any] = {"workload": "resnet50-inference", "parameters": {"image": 64}}

    worker = worker_of(
        launch_once(tmp_path, "pytorch", binding="one-cpu", threads="per-core", **resnet)
    )

    assert (worker.threads_asked, worker.threads_used) == (1, 1)
    assert worker.versions["torch"].startswith("2.13.0")
    assert worker.blas is not None
    assert len(worker.wall_ns) == 3


def test_pytorchs_own_launcher_places_the_worker_and_the_record_shows_where(tmp_path: Path) -> None:
    gemm: dict[str, Any] = {"workload": "gemm", "parameters": {"size": 64}, "binding": "launcher"}
    (command,) = plan_cell("pytorch", **gemm).commands

    worker = worker_of(launch_once(tmp_path, "pytorch", **gemm))

    assert "torch.backends.xeon.run_cpu" in command.argv
    # The launcher sets it; a plain start leaves it alone.
    assert worker.environment["OMP_NUM_THREADS"] == str(worker.threads_used)
    assert all(thread.allowed for thread in worker.threads)


@pytest.mark.quick
@pytest.mark.parametrize("name", ["numpy", "pytorch"])
def test_the_matrix_product_runs_and_names_its_blas(tmp_path: Path, name: str) -> None:
    worker = worker_of(launch_once(tmp_path, name, workload="gemm", parameters={"size": 64}))

    assert worker.blas
    assert worker.threads_used


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
            name: parameter.kind.__name__
            for name, parameter in built_in.parameters.items()
            # Without a value that it supports, a framework's function does not take it.
            if built_in.supported.get(framework, {}).get(name) != ()
        }
        | ({"gpus": "int"} if framework in built_in.gpus else {})
        for built_in in FUNCTIONS
        if framework in built_in.targets
    }

    output = imported.output_of(
        framework,
        "import inspect, json\n"
        "from corebound.worker.workload import find_function\n"
        "def taken(target):\n"
        "    found = inspect.signature(find_function(target)).parameters.values()\n"
        "    return {one.name: type(one.default).__name__ for one in found}\n"
        f"print(json.dumps({{target: taken(target) for target in {list(parameters_of)!r}}}))",
        tmp_path,
    )

    assert json.loads(output) == parameters_of


# As a worker does it, without a process of its own.
WORKS = """
from corebound.worker.workload import FunctionWorkload, find_function
made = FunctionWorkload(find_function({target!r})(**{parameters!r}), {target!r})
for _ in range(3):
    made.check(made.step())
made.teardown()
print(json.dumps(made.work))
"""


@pytest.mark.parametrize(
    ("workload", "parameters", "work"),
    [
        ("image-training", {"model": "small", "batch": 2}, {"images": 2}),
        ("image-pipeline", {"model": "small", "batch": 2}, {"images": 2}),
        ("checkpoint-training", {"model": "small", "steps": 2, "batch": 2}, {"images": 4}),
        (
            "hourglass-training",
            {"stacks": 1, "channels": 16, "image": 128, "dropout": "cheap"},
            {"images": 2},
        ),
        ("mobilenet-inference", {"image": 32, "dtype": "bfloat16"}, {"images": 1}),
        ("encoder-inference", {"layers": 1, "dtype": "bfloat16"}, {"sequences": 1}),
        ("lstm-inference", {"sequence": 4, "dtype": "bfloat16"}, {"sequences": 1}),
        ("recommender-inference", {"batch": 1, "dtype": "bfloat16"}, {"samples": 1}),
        ("decoder-inference", {"batch": 2, "context": 2}, {"tokens": 2}),
        ("decoder-inference", {"batch": 2, "context": 8, "prompt": 4}, {"tokens": 8}),
        ("gemm", {"size": 32}, {"flop": 2 * 32**3}),
    ],
)
def test_a_workload_runs_checks_its_result_and_counts_its_operations(
    tmp_path: Path,
    imported: PreloadedFrameworks,
    *,
    workload: str,
    parameters: dict[str, Any],
    work: dict[str, float],
) -> None:
    code = WORKS.format(target=BUILT_IN[workload].targets["pytorch"], parameters=parameters)

    assert imported.json_from("pytorch", code, tmp_path) == work


def test_data_loaders_belong_to_the_launch_and_end_with_it(tmp_path: Path) -> None:
    worker = worker_of(
        launch_once(
            tmp_path,
            "pytorch",
            workload="image-pipeline",
            parameters={"preprocessing": "heavy", "loaders": 2, "batch": 4},
            binding="one-cpu",
            measure={"iterations": 12},
        )
    )

    assert len({thread.pid for thread in worker.threads}) == 3
    # Decoding and blurring 4 of 1024×768 takes several milliseconds, all of it in loaders.
    assert sum(worker.cpu_ns) > 12 * 5_000_000


def test_distributed_training_processes_belong_to_the_launch_and_end_with_it(
    tmp_path: Path,
) -> None:
    parameters = {"processes": 2, "model": "small", "batch": 8}

    worker = worker_of(
        launch_once(
            tmp_path, "pytorch", workload="distributed-training", parameters=parameters, threads=1
        )
    )

    assert len({thread.pid for thread in worker.threads}) == 2
    assert worker.work == {"images": 8}


@pytest.mark.parametrize(("blas", "called"), [("openblas", "OpenBLAS "), ("mkl", "MKL 20")])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_blas_library_in_use_is_recorded(
    tmp_path: Path, blas: str, called: str, dtype: str
) -> None:
    parameters = {"size": 64, "dtype": dtype, "blas": blas}

    worker = worker_of(
        launch_once(tmp_path, "numpy-mkl", workload="gemm-blas", parameters=parameters, threads=1)
    )

    assert str(worker.blas).startswith(called)
    assert worker.threads_used == 1


@pytest.mark.quick
@pytest.mark.parametrize("cores", ["shared", "split"])
def test_neighbours_run_at_the_same_time_on_the_cores_that_they_are_given(
    tmp_path: Path, cores: str
) -> None:
    if cores == "split" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two CPUs")
    shutil.copy(ROOT / "scenarios" / "neighbours.py", tmp_path)
    parameters = {"measured": "copies", "neighbour": "other", "cores": cores}

    worker = worker_of(
        launch_once(tmp_path, "numpy", workload="neighbours:beside", parameters=parameters)
    )

    cpus: dict[int, set[int]] = {}
    for thread in worker.threads:
        cpus.setdefault(thread.pid, set()).update(*thread.allowed)
    measured, neighbour = cpus.values()
    assert measured.isdisjoint(neighbour) == (cores == "split")
    assert sum(thread.run_ns or 0 for thread in worker.threads) > 0


def test_a_round_of_boosting_uses_the_requested_threads(tmp_path: Path) -> None:
    shutil.copy(ROOT / "scenarios" / "boosting_rounds.py", tmp_path)
    boosting: dict[str, Any] = {"workload": "boosting_rounds:rounds", "parameters": {"rows": 3000}}

    assert worker_of(launch_once(tmp_path, "lightgbm", threads=2, **boosting)).threads_used == 2


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


def test_models_have_their_documented_size(tmp_path: Path, imported: PreloadedFrameworks) -> None:
    output = imported.output_of(
        "pytorch",
        "from corebound.worker.workloads import (decoder_pytorch, encoder_pytorch,\n"
        "    image_training_pytorch, lstm_pytorch, mobilenet_pytorch)\n"
        "models = (image_training_pytorch.classifier('small'),\n"
        "    image_training_pytorch.classifier('large'), mobilenet_pytorch.inference().model,\n"
        "    encoder_pytorch.inference().model, lstm_pytorch.inference().model,\n"
        "    decoder_pytorch.load(256))\n"
        "print([sum(p.numel() for p in model.parameters()) for model in models])",
        tmp_path,
    )

    # Three convolutions with their norms, and one layer of 64 by 100:
    small = sum(9 * a * b + b + 2 * b for a, b in ((3, 16), (16, 32), (32, 64))) + 65 * 100
    # ResNet-18 and MobileNetV3 as torchvision documents them, the first for 100 classes.
    large, mobile = 11_689_512 - 513 * 900, 5_483_032
    layer = 4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768
    encoder = (30_522 + 512 + 2) * 768 + 12 * layer
    lstm = 2 * 4 * (2 * 512 * 512 + 2 * 512)
    within = 4 * (512 * 512 + 512) + 2 * 512 * 2048 + 2048 + 512 + 4 * 512
    decoder = (2 * 8_000 + 256 + 2) * 512 + 4 * within
    assert output.strip() == str([small, large, mobile, encoder, lstm, decoder])


# Both drop the same numbers of a million in another call: what is dropped, the mean of what is
# kept, two eighths of what is dropped, and in how many places two masks differ.
DROPOUT = {
    "pytorch": """
import numpy, torch
from corebound.worker.workloads.hourglass_pytorch import CheapDropout
torch.manual_seed(1)
masks = [CheapDropout()(torch.ones(1000, 1001)).numpy() for _ in range(2)]
""",
    "tensorflow": """
import numpy
from corebound.worker.adapters.tensorflow import tf
tf.random.set_seed(1)
from corebound.worker.workloads.hourglass_tensorflow import Network
drop = Network().drop_cheaply
masks = [drop(tf.ones((1000, 1001))).numpy() for _ in range(2)]
""",
}


@pytest.mark.parametrize("framework", DROPOUT)
def test_the_cheap_dropout_drops_a_tenth_and_keeps_the_mean(
    tmp_path: Path, imported: PreloadedFrameworks, framework: str
) -> None:
    code = DROPOUT[framework] + (
        "kept, again = masks\n"
        "zero = (kept == 0).ravel()\n"
        "differ = (kept == 0) != (again == 0)\n"
        "shares = zero.mean(), kept.mean(), zero[::8].mean(), zero[7::8].mean(), differ.mean()\n"
        "print(*kept.shape, *map(float, shares))"
    )

    rows, columns, dropped, mean, first, last, differ = map(
        float, imported.output_of(framework, code, tmp_path).split()
    )

    assert (rows, columns) == (1000, 1001)
    # 26 of 256; the standard error of a share of a million is 0.0003, of an eighth 0.0009.
    share = 26 / 256
    assert dropped == pytest.approx(share, abs=0.002)
    assert mean == pytest.approx(1, abs=0.003)
    assert first == pytest.approx(last, abs=0.006)
    # Two masks agree where both drop or both keep.
    assert 1 - differ == pytest.approx(share**2 + (1 - share) ** 2, abs=0.003)


@pytest.mark.parametrize("kind", ["measure", "profile"])
def test_the_tensorflow_hourglass_runs_with_little_output(tmp_path: Path, kind: Kind) -> None:
    outcome = launch_once(
        tmp_path,
        "tensorflow",
        kind=kind,
        workload="hourglass-training",
        parameters={"stacks": 1, "channels": 16, "image": 128, "dropout": "cheap"},
        measure={"operators": 2},
    )

    assert worker_of(outcome).work == {"images": 2}
    # That oneDNN is on is said twice; TensorFlow has nothing to turn it off.
    messages = [line for line in outcome.log.splitlines() if "oneDNN" not in line]
    assert all("before absl::InitializeLog()" in line for line in messages)


@pytest.mark.parametrize("dropout", ["plain", "cheap", "none"])
def test_the_check_of_the_tensorflow_hourglass_redraws_the_masks_of_step_one(
    tmp_path: Path, imported: PreloadedFrameworks, dropout: str
) -> None:
    before, first, second = imported.json_from(
        "tensorflow",
        "from corebound.worker.workloads.hourglass_tensorflow import step\n"
        f"made = step(stacks=1, channels=16, image=128, dropout={dropout!r})\n"
        "print(json.dumps([float(made.recompute_loss()), *(float(made.step()[0]) for _ in 'ab')]))",
        tmp_path,
    )

    assert before == pytest.approx(first, rel=1e-6)
    assert second != first


@pytest.mark.quick
def test_the_cpu_time_of_a_child_counts_while_it_lives() -> None:
    burn = "import time\nwhile time.process_time() < 0.05: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        (sys.executable, "-c", burn), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        own_ns = time.process_time_ns()
        both_ns = cpu_time.cpu_time_with_children_ns([child.pid])
        child.communicate("\n")
        ended_ns = cpu_time.cpu_time_with_children_ns([child.pid])

    assert both_ns >= own_ns + 50_000_000
    assert ended_ns < both_ns
