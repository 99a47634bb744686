"""Phases of a training step, from the operator names of TensorFlow and MindSpore."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.environments import PreloadedFrameworks

pytestmark = pytest.mark.frameworks

PROFILED = """
import dataclasses, tempfile
for _ in range(2):
    step()
profile = adapter.profile(step, 3, tempfile.mkdtemp())
print(json.dumps(dataclasses.asdict(profile)))
"""
SMALL = """
from corebound.worker.workloads.small_network_{framework} import training
step = training(batch=8, width=32, layers=3, mode={mode!r}).step
"""
KERAS = """
from corebound.worker.adapters.tensorflow import tf
layers = tf.keras.layers
model = tf.keras.Sequential([
    tf.keras.Input((16, 16, 3)), layers.Conv2D(8, 3), layers.BatchNormalization(), layers.ReLU(),
    layers.Dropout(0.1), layers.Flatten(), layers.Dense(4),
])
model.compile(optimizer="adam", loss="mse")
inputs, targets = tf.random.uniform((4, 16, 16, 3)), tf.random.uniform((4, 4))
"""


def profiled(
    imported: PreloadedFrameworks, framework: str, code: str, folder: Path
) -> tuple[dict[str, int], dict[str, int]]:
    """The phases of a step, and the time of each type of operator, in nanoseconds."""
    profile: dict[str, Any] = imported.json_from(framework, code + PROFILED, folder)
    operators = {operator["type"]: operator["total_ns"] for operator in profile["operators"]}
    phases: dict[str, int] = profile["phases"]
    if phases:
        # Each figure is rounded to a nanosecond.
        assert sum(phases.values()) == pytest.approx(sum(operators.values()), abs=100)
    return phases, operators


def test_phases_of_a_traced_tensorflow_step_are_complete(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    phases, operators = profiled(
        imported, "tensorflow", SMALL.format(framework="tensorflow", mode="graph"), tmp_path
    )

    assert set(phases) == {"forward", "backward", "update"}
    assert phases["update"] == pytest.approx(operators["ResourceApplyGradientDescent"], abs=100)
    assert phases["backward"] > operators["BiasAddGrad"] + operators["ReluGrad"]
    # They lie in the forward pass and nowhere else.
    assert phases["forward"] > operators["Abs"] + operators["Mean"] + operators["Square"]


def test_phases_of_the_tensorflow_hourglass_are_complete(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    code = (
        "from corebound.worker.workloads.hourglass_tensorflow import step as made\n"
        "step = made(channels=16, dropout='cheap').step\n"
    )

    phases, operators = profiled(imported, "tensorflow", code, tmp_path)

    assert set(phases) == {"forward", "backward", "update"}
    assert phases["update"] == pytest.approx(operators["ResourceApplyMomentum"], abs=100)


def test_phases_of_a_keras_model_are_complete_but_for_unscoped_operators(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    phases, _ = profiled(
        imported,
        "tensorflow",
        KERAS + "step = lambda: model.train_on_batch(inputs, targets)\n",
        tmp_path,
    )

    # Its metrics, and sums of gradients, lie in no scope.
    assert set(phases) == {"forward", "backward", "update", "untold"}


@pytest.mark.quick
def test_a_model_that_does_not_train_has_no_phases(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    phases, operators = profiled(
        imported, "tensorflow", KERAS + "step = lambda: model.predict_on_batch(inputs)\n", tmp_path
    )

    assert phases == {}
    assert operators


def test_eager_tensorflow_shows_only_the_update_phase(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    phases, operators = profiled(
        imported, "tensorflow", SMALL.format(framework="tensorflow", mode="eager"), tmp_path
    )

    assert set(phases) == {"update", "untold"}
    assert phases["update"] == pytest.approx(operators["ResourceApplyGradientDescent"], abs=100)


def test_phases_of_a_mindspore_graph_are_complete_but_for_expanded_operators(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    phases, operators = profiled(
        imported, "mindspore", SMALL.format(framework="mindspore", mode="graph"), tmp_path
    )

    assert set(phases) == {"forward", "backward", "update", "untold"}
    # The optimizer counts its steps, too.
    assert phases["update"] == pytest.approx(operators["SGD"] + operators["AssignAdd"], abs=100)
    assert phases["backward"] > operators["ReluGrad"]
    assert phases["forward"] > operators["ReLU"]
    # Products are of both passes, and no name says which is of which.
    assert phases["untold"] > operators["MatMul"]


def test_eager_mindspore_shows_only_the_update_phase(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    phases, operators = profiled(
        imported, "mindspore", SMALL.format(framework="mindspore", mode="eager"), tmp_path
    )

    assert set(phases) == {"update", "untold"}
    assert phases["update"] == pytest.approx(operators["SGD"], abs=100)
