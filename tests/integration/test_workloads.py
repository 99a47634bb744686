"""Workloads of the bottleneck guide and served models, in their frameworks."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from corebound.records.launch_record import Kind
from corebound.worker.workloads.shared import cpu_time
from support.environments import PreloadedFrameworks, launch_once

pytestmark = pytest.mark.frameworks


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
    tmp_path: Path, workload: str, parameters: dict[str, Any], work: dict[str, float]
) -> None:
    outcome = launch_once(tmp_path, "pytorch", workload=workload, parameters=parameters)

    assert (outcome.status, outcome.reason, outcome.leftover_processes) == ("ok", None, ())
    assert outcome.workers[0].work == work
    assert len(outcome.workers[0].wall_ns) == 3


def test_data_loaders_belong_to_the_launch_and_end_with_it(tmp_path: Path) -> None:
    outcome = launch_once(
        tmp_path,
        "pytorch",
        workload="image-pipeline",
        parameters={"preprocessing": "heavy", "loaders": 2, "batch": 4},
        binding="one-cpu",
        measure={"iterations": 12},
    )

    assert (outcome.status, outcome.reason, outcome.leftover_processes) == ("ok", None, ())
    (worker,) = outcome.workers
    assert len({thread.pid for thread in worker.threads}) == 3
    # Decoding and blurring 4 of 1024×768 takes several milliseconds, all of it in loaders.
    assert sum(worker.cpu_ns) > 12 * 5_000_000


def test_distributed_training_processes_belong_to_the_launch_and_end_with_it(
    tmp_path: Path,
) -> None:
    outcome = launch_once(
        tmp_path,
        "pytorch",
        workload="distributed-training",
        parameters={"processes": 2, "model": "small", "batch": 8},
        threads=1,
    )

    assert (outcome.status, outcome.reason, outcome.leftover_processes) == ("ok", None, ())
    (worker,) = outcome.workers
    assert len({thread.pid for thread in worker.threads}) == 2
    assert worker.work == {"images": 8}


@pytest.mark.parametrize(("blas", "called"), [("openblas", "OpenBLAS "), ("mkl", "MKL 20")])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_blas_library_in_use_is_recorded(
    tmp_path: Path, blas: str, called: str, dtype: str
) -> None:
    outcome = launch_once(
        tmp_path,
        "numpy-mkl",
        workload="gemm-blas",
        parameters={"size": 64, "dtype": dtype, "blas": blas},
        threads=1,
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    (worker,) = outcome.workers
    assert str(worker.blas).startswith(called)
    assert worker.threads_used == 1


def test_a_missing_mkl_is_named(tmp_path: Path, imported: PreloadedFrameworks) -> None:
    output = imported.output_of(
        "numpy",
        "from corebound.worker.workloads.gemm_blas_numpy import product\n"
        "from corebound.worker.workload import WorkloadError\n"
        "try:\n    product(size=4, blas='mkl')\nexcept WorkloadError as error:\n    print(error)",
        tmp_path,
    )

    assert output.strip() == "this environment has no MKL."


@pytest.mark.parametrize(
    ("made", "spoil", "message"),
    [
        # The update goes uphill.
        (
            "image_training_pytorch.step(batch=2)",
            "made.optimizer.param_groups[0]['lr'] = -0.01",
            "the loss went from",
        ),
        (
            "image_pipeline_pytorch.step(batch=2)",
            "made._optimizer.param_groups[0]['lr'] = -0.01",
            "the loss went from",
        ),
        (
            "hourglass_pytorch.step(channels=16)",
            "made.inputs[0] = float('nan')",
            "the loss went from nan",
        ),
        (
            "checkpoint_pytorch.epoch(model='small', steps=2, batch=2)",
            """
wrong = lambda state: {name: one + 1 for name, one in state["model"].items()}
torch.save = lambda state, file, save=torch.save: save({"model": wrong(state)}, file)
""",
            "the checkpoint does not contain",
        ),
        (
            "mobilenet_pytorch.inference(image=64)",
            "made.model.classifier[3] = torch.nn.Linear(1280, 10)",
            "MobileNetV3 gave (1, 10), not (1, 1000).",
        ),
        # One bias more for every class changes no loss, only the weights of one process.
        (
            "distributed_pytorch.step(model='small', batch=4)",
            """
def drift(step=made.step):
    loss = step()
    made._rank.training.model.module[-1].bias.data += 1e-3
    return loss
made.step = drift
""",
            "after a step the processes have different weights.",
        ),
        (
            "lstm_pytorch.inference(sequence=2)",
            "[torch.nn.init.zeros_(one) for one in made.model.parameters()]",
            "the LSTM gave the same number everywhere.",
        ),
        (
            "encoder_pytorch.inference(sequence=4, layers=1)",
            "torch.nn.init.constant_(made.model._norm.weight, float('inf'))",
            "the encoder gave numbers that are not finite.",
        ),
        (
            "recommender_pytorch.inference(batch=2)",
            "made.model._top[3] = torch.nn.Identity()",
            "the recommender returned wrong probabilities.",
        ),
        (
            "decoder_pytorch.inference(context=4)",
            """
def forgetful(layer, numbers, cache, begin):
    return numbers + numbers.cumsum(1)
decoder_pytorch.Layer.forward = forgetful
""",
            "the decoder's output with its cache differs from that without.",
        ),
    ],
)
def test_a_wrong_output_is_detected(
    tmp_path: Path, imported: PreloadedFrameworks, made: str, spoil: str, message: str
) -> None:
    output = imported.output_of(
        "pytorch",
        "import torch\n"
        "from corebound.worker.workload import WorkloadError\n"
        f"from corebound.worker.workloads import {made.partition('.')[0]}\n"
        "torch.manual_seed(1)\n"
        f"made = {made}\n"
        f"torch.set_grad_enabled(False)\n{spoil}\ntorch.set_grad_enabled(True)\n"
        "try:\n    made.check(made.step())\nexcept WorkloadError as error:\n    print(error)",
        tmp_path,
    )

    assert output.startswith(message)


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


def test_the_cheap_dropout_drops_a_tenth_and_keeps_the_mean(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    output = imported.output_of(
        "pytorch",
        "import torch\n"
        "from corebound.worker.workloads.hourglass_pytorch import CheapDropout\n"
        "torch.manual_seed(1)\n"
        "kept = CheapDropout()(torch.ones(1000, 1001))\n"
        "print(kept.shape, float((kept == 0).float().mean()), float(kept.mean()),\n"
        "    float((kept.view(-1)[::8] == 0).float().mean()),\n"
        "    float((kept.view(-1)[7::8] == 0).float().mean()))",
        tmp_path,
    )

    shape, figures = output.strip().split(") ")[0], output.strip().split("]) ")[1].split()
    assert shape.startswith("torch.Size([1000, 1001]")
    dropped, mean, first, last = map(float, figures)
    # 26 of 256; the standard error of a share of a million is 0.0003, of an eighth 0.0009.
    assert dropped == pytest.approx(26 / 256, abs=0.002)
    assert mean == pytest.approx(1, abs=0.003)
    assert first == pytest.approx(last, abs=0.006)


@pytest.mark.parametrize("kind", ["measure", "profile"])
def test_the_tensorflow_hourglass_runs_with_little_output(tmp_path: Path, kind: Kind) -> None:
    outcome = launch_once(
        tmp_path,
        "tensorflow",
        kind=kind,
        workload="hourglass-training",
        parameters={"channels": 16, "dropout": "cheap"},
        measure={"operators": 2},
    )

    assert (outcome.status, outcome.reason, outcome.leftover_processes) == ("ok", None, ())
    assert outcome.workers[0].work == {"images": 2}
    # That oneDNN is on is said twice; TensorFlow has nothing to turn it off.
    messages = [line for line in outcome.log.splitlines() if "oneDNN" not in line]
    assert all("before absl::InitializeLog()" in line for line in messages)


@pytest.mark.parametrize("dropout", ["plain", "cheap", "none"])
def test_the_check_of_the_tensorflow_hourglass_redraws_the_masks_of_step_one(
    tmp_path: Path, imported: PreloadedFrameworks, dropout: str
) -> None:
    output = imported.output_of(
        "tensorflow",
        "from corebound.worker.adapters import tensorflow as tensorflow_adapter\n"
        "tensorflow_adapter.prepare(seed=1, intra_op=None, inter_op=None)\n"
        "from corebound.worker.workloads.hourglass_tensorflow import step\n"
        f"made = step(channels=16, dropout={dropout!r})\n"
        "before = made.recompute_loss()\n"
        "first, _ = made.step()\n"
        "second, _ = made.step()\n"
        "print(before, first, second)\n",
        tmp_path,
    )

    before, first, second = map(float, output.split()[:3])
    assert before == pytest.approx(first, rel=1e-6)
    assert second != first


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            "made.inputs.assign(made.inputs * float('nan'))",
            "a step produced values that are not finite.",
        ),
        ("hourglass_tensorflow.LEARNING_RATE = -0.001", "the loss went from"),
        ("hourglass_tensorflow.tf.stack = lambda heats, axis: heats[0]", "the heat maps have"),
    ],
)
def test_a_wrong_step_of_the_tensorflow_hourglass_is_detected(
    tmp_path: Path, imported: PreloadedFrameworks, spoil: str, message: str
) -> None:
    output = imported.output_of(
        "tensorflow",
        "from corebound.worker.adapters import tensorflow as tensorflow_adapter\n"
        "tensorflow_adapter.prepare(seed=1, intra_op=None, inter_op=None)\n"
        "from corebound.worker.workload import WorkloadError\n"
        "from corebound.worker.workloads import hourglass_tensorflow\n"
        "made = hourglass_tensorflow.step(channels=16, stacks=1)\n"
        f"{spoil}\n"
        "try:\n    made.check(made.step())\nexcept WorkloadError as error:\n    print(error)",
        tmp_path,
    )

    assert output.startswith(message)


def test_the_cheap_dropout_of_tensorflow_drops_a_tenth_and_keeps_the_mean(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    output = imported.output_of(
        "tensorflow",
        "from corebound.worker.adapters.tensorflow import tf\n"
        "tf.random.set_seed(1)\n"
        "from corebound.worker.workloads.hourglass_tensorflow import Network\n"
        "drop = Network().drop_cheaply\n"
        "kept = drop(tf.ones((1000, 1001)))\n"
        "flat = tf.reshape(kept, [-1])\n"
        "share = lambda of: float(tf.reduce_mean(tf.cast(of == 0, tf.float32)))\n"
        "same = share(tf.cast((kept == 0) != (drop(tf.ones((1000, 1001))) == 0), tf.float32))\n"
        "print(kept.shape[1], share(kept), float(tf.reduce_mean(kept)), share(flat[::8]),\n"
        "    share(flat[7::8]), same)",
        tmp_path,
    )

    columns, dropped, mean, first, last, same = map(float, output.split())
    assert columns == 1001
    # 26 of 256; the standard error of a share of a million is 0.0003, of an eighth 0.0009.
    assert dropped == pytest.approx(26 / 256, abs=0.002)
    assert mean == pytest.approx(1, abs=0.003)
    assert first == pytest.approx(last, abs=0.006)
    # Two masks agree where both drop or both keep.
    assert same == pytest.approx((26 / 256) ** 2 + (230 / 256) ** 2, abs=0.003)


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


def test_a_checkpoint_interval_that_makes_iterations_unequal_is_refused(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    output = imported.output_of(
        "pytorch",
        "from corebound.worker.workloads.checkpoint_pytorch import epoch\n"
        "from corebound.worker.workload import WorkloadError\n"
        "try:\n    epoch(model='small', steps=3, every=2)\n"
        "except WorkloadError as error:\n    print(error, error.fix)",
        tmp_path,
    )

    assert "Make `steps` a multiple of `every`" in output
