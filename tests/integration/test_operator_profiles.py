"""Operator profiles of real models: tables, phases, traces, and how a run records them."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from corebound.records import documents, jsonl
from corebound.records.launch_record import Launch, OperatorProfile
from corebound.records.traces import folder_of
from corebound.scenario.runtimes import RUNTIMES, Framework
from support.commands import corebound
from support.environments import PreloadedFrameworks, launch_once, python_of
from support.paths import ROOT

pytestmark = pytest.mark.frameworks

SCENARIO = {
    "schema": 1,
    "name": "one",
    "title": "One",
    "question": "Where does its time go?",
    "workload": "small-network-training",
    "environment": "pytorch",
    "matrix": {"binding": ["one-cpu"]},
    "measure": {
        "relaunch_disturbed": 0,
        "iterations": 3,
        "launches": {"min": 2, "max": 2},
        "operators": 5,
    },
}


def completed(suite: Path, *arguments: str) -> None:
    code, _, err = corebound(suite, *arguments)
    assert code == 0, err


def launches_of(suite: Path) -> tuple[Launch, ...]:
    (file,) = jsonl.files(suite / "reports" / "records")
    return jsonl.read(file).launches


def check_sum(operators_ns: int, step_ns: int | None, outside_ns: int | None) -> None:
    assert step_ns is not None
    assert outside_ns is not None
    assert operators_ns + outside_ns == pytest.approx(step_ns, rel=0.01)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite whose run was begun without its profiles and then continued with them."""
    python_of("pytorch")
    folder = tmp_path_factory.mktemp("suite")
    (folder / "one.yaml").write_text(json.dumps(SCENARIO))  # JSON is YAML too
    completed(folder, "run", "one.yaml", "--unlocked", "--no-operators")
    assert [launch.kind for launch in launches_of(folder)] == ["measure"] * 2
    completed(folder, "run", "--resume", "--unlocked")
    return folder


@pytest.fixture(scope="module")
def own(suite: Path) -> OperatorProfile:
    """The profile of that run."""
    profile = launches_of(suite)[-1].workers[0].profile
    assert profile is not None
    return profile


def test_a_cell_has_one_separate_profiling_launch_which_is_not_repeated(suite: Path) -> None:
    launches = launches_of(suite)

    assert [launch.kind for launch in launches] == ["measure"] * 2 + ["profile"]
    assert {launch.status for launch in launches} == {"ok"}
    assert all(launch.workers[0].profile is None for launch in launches[:2])
    assert launches[2].workers[0].wall_ns == ()
    assert launches[2].workers[0].threads
    completed(suite, "run", "--resume", "--unlocked")
    assert launches_of(suite) == launches


def test_the_trace_is_stored_and_linked_from_the_page(suite: Path) -> None:
    (file,) = jsonl.files(suite / "reports" / "records")
    launch = launches_of(suite)[-1]

    completed(suite, "report")

    assert launch.trace == f"{launch.id}.json.gz"
    kept = (folder_of(file) / launch.trace).read_bytes()
    assert json.loads(gzip.decompress(kept))["traceEvents"]
    assert (suite / "reports" / "site" / "traces" / launch.trace).read_bytes() == kept
    page = (suite / "reports" / "site" / "scenario" / "one.html").read_text()
    assert f'href="../traces/{launch.trace}"' in page


def test_an_imported_trace_gives_the_profilers_table(
    suite: Path, own: OperatorProfile, tmp_path: Path
) -> None:
    (file,) = jsonl.files(suite / "reports" / "records")
    trace = folder_of(file) / str(launches_of(suite)[-1].trace)

    completed(tmp_path, "import", "profile", str(trace), "--name", "again")

    ((imported,), _) = documents.PROFILES.read(tmp_path / "reports" / "records")
    again = imported.profile
    calls, calls_again = ({one.type: one.calls for one in of.operators} for of in (own, again))
    assert [*calls_again][:5] == [*calls][:5]
    assert calls_again == calls
    assert (again.iterations, list(again.phases)) == (own.iterations, list(own.phases))
    assert again.step_ns == pytest.approx(own.step_ns, rel=0.01)


def test_a_training_step_of_pytorch_has_its_products_and_phases(own: OperatorProfile) -> None:
    operators_ns = sum(operator.total_ns for operator in own.operators)

    check_sum(operators_ns, own.step_ns, own.outside_ns)
    check_sum(sum(own.phases.values()), own.step_ns, own.outside_ns)
    assert set(own.phases) == {"forward", "backward", "update"}
    # 7 layers multiply matrices once forward and twice backward, but the first has no
    # gradient of its inputs to find.
    assert products({one.type: one.calls for one in own.operators}) == 20


def products(calls: dict[str, float]) -> float:
    """The products of matrices in a step, whatever a framework calls them."""
    return sum(number for kind, number in calls.items() if re.search("MatMul|mm$", kind))


def test_the_table_of_resnet50_has_its_layers_and_adds_up_to_its_step(tmp_path: Path) -> None:
    outcome = launch_once(
        tmp_path, "pytorch", kind="profile", workload="resnet50-inference", measure={"operators": 5}
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    profile = outcome.workers[0].profile
    assert profile is not None
    check_sum(sum(one.total_ns for one in profile.operators), profile.step_ns, profile.outside_ns)
    # Were operators missed, their time would be outside of all of them.
    assert (profile.outside_ns or 0) < 0.2 * (profile.step_ns or 0)
    assert (profile.iterations, profile.phases) == (5, {})
    calls = {operator.type: operator.calls for operator in profile.operators}
    # 53 convolutions, each followed by a batch normalisation, and one fully connected layer.
    assert calls["aten::convolution"] == calls["aten::native_batch_norm"] == 53
    assert calls["aten::addmm"] == 1


def test_mindspore_is_profiled_in_a_launch(tmp_path: Path) -> None:
    outcome = launch_once(
        tmp_path,
        "mindspore",
        kind="profile",
        workload="small-network-training",
        measure={"operators": 2},
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    assert outcome.workers[0].profile is not None


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
HOURGLASS = """
from corebound.worker.workloads.hourglass_tensorflow import step as made
step = made(stacks=1, channels=16, image=128, dropout='cheap').step
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
ALL = {"forward", "backward", "update"}


def profiled(
    imported: PreloadedFrameworks, framework: str, code: str, folder: Path
) -> tuple[dict[str, int], dict[str, int]]:
    """The phases of a step, and the time of each type of operator, in nanoseconds."""
    profile: dict[str, Any] = imported.json_from(framework, code + PROFILED, folder)
    operators = {operator["type"]: operator["total_ns"] for operator in profile["operators"]}
    phases: dict[str, int] = profile["phases"]
    assert sum(operators.values()) + profile["outside_ns"] == pytest.approx(
        profile["step_ns"], rel=0.01
    )
    if phases:
        # Each figure is rounded to a nanosecond.
        assert sum(phases.values()) == pytest.approx(sum(operators.values()), abs=100)
    if "training" in code:
        # 3 layers and the head, but for the gradient of the first one's inputs.
        assert products({one["type"]: one["calls"] for one in profile["operators"]}) == 3 * 4 - 1
    return phases, operators


@pytest.mark.parametrize(
    ("framework", "mode", "phases", "update"),
    [
        ("tensorflow", "graph", ALL, ["ResourceApplyGradientDescent"]),
        ("tensorflow", "eager", {"update", "untold"}, ["ResourceApplyGradientDescent"]),
        # The optimizer counts its steps, too.
        ("mindspore", "graph", {*ALL, "untold"}, ["SGD", "AssignAdd"]),
        ("mindspore", "eager", {"update", "untold"}, ["SGD"]),
    ],
)
def test_a_training_step_has_the_phases_that_names_of_operators_tell(
    tmp_path: Path,
    imported: PreloadedFrameworks,
    *,
    framework: str,
    mode: str,
    phases: set[str],
    update: list[str],
) -> None:
    code = SMALL.format(framework=framework, mode=mode)

    found, operators = profiled(imported, framework, code, tmp_path)

    assert set(found) == phases
    assert found["update"] == pytest.approx(sum(operators[one] for one in update), abs=100)
    if mode == "graph" and framework == "tensorflow":
        assert found["backward"] > operators["BiasAddGrad"] + operators["ReluGrad"]
        # They are in the forward pass and nowhere else.
        assert found["forward"] > operators["Abs"] + operators["Mean"] + operators["Square"]
    elif mode == "graph":
        assert found["backward"] > operators["ReluGrad"]
        assert found["forward"] > operators["ReLU"]
        # Products are of both passes, and no name says which is of which.
        assert found["untold"] > operators["MatMul"]


def test_phases_of_the_tensorflow_hourglass_are_complete(
    tmp_path: Path, imported: PreloadedFrameworks
) -> None:
    phases, operators = profiled(imported, "tensorflow", HOURGLASS, tmp_path)

    assert set(phases) == ALL
    assert phases["update"] == pytest.approx(operators["ResourceApplyMomentum"], abs=100)


@pytest.mark.parametrize(
    ("step", "phases"),
    [
        # Its metrics, and sums of gradients, are in no scope.
        ("model.train_on_batch(inputs, targets)", {*ALL, "untold"}),
        pytest.param("model.predict_on_batch(inputs)", set(), marks=pytest.mark.quick),
    ],
)
def test_a_keras_model_has_phases_if_it_trains(
    tmp_path: Path, imported: PreloadedFrameworks, step: str, phases: set[str]
) -> None:
    found, operators = profiled(imported, "tensorflow", f"{KERAS}step = lambda: {step}\n", tmp_path)

    assert set(found) == phases
    assert operators


@pytest.mark.quick
@pytest.mark.parametrize(
    "framework", [name for name, runtime in RUNTIMES.items() if runtime.server is None]
)
def test_an_adapter_has_a_profiler_or_a_reason(framework: Framework) -> None:
    name = "python" if framework == "none" else framework.replace("-", "_")
    adapter = ROOT / f"src/corebound/worker/adapters/{name}.py"

    assert ("\ndef profile(" in adapter.read_text()) == (not RUNTIMES[framework].unprofiled)
