"""Operator profiles of real models, through the command line and the frameworks' profilers."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest

from corebound.launch.launch import LaunchResult
from corebound.records import documents, jsonl
from corebound.records.launch_record import Launch, OperatorProfile
from corebound.records.traces import folder_of
from corebound.scenario.runtimes import RUNTIMES, Framework
from support.commands import corebound
from support.environments import launch_once, python_of
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
        "operators": 20,
    },
}


def completed(suite: Path, *arguments: str) -> None:
    code, _, err = corebound(suite, *arguments)
    assert code == 0, err


def launches_of(suite: Path) -> tuple[Launch, ...]:
    (file,) = jsonl.files(suite / "reports" / "records")
    return jsonl.read(file).launches


def profile_of(launch: Launch | LaunchResult) -> OperatorProfile:
    profile = launch.workers[0].profile
    assert profile is not None
    return profile


def step_and_outside(profile: OperatorProfile) -> tuple[int, int]:
    assert profile.step_ns is not None
    assert profile.outside_ns is not None
    return profile.step_ns, profile.outside_ns


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


def test_a_cell_has_one_separate_profiling_launch(suite: Path) -> None:
    launches = launches_of(suite)

    assert [launch.kind for launch in launches] == ["measure"] * 2 + ["profile"]
    assert {launch.status for launch in launches} == {"ok"}
    assert all(launch.workers[0].profile is None for launch in launches[:2])
    assert launches[2].workers[0].wall_ns == ()
    assert launches[2].workers[0].threads


@pytest.fixture(scope="module")
def resnet50(tmp_path_factory: pytest.TempPathFactory) -> OperatorProfile:
    """What a profiling launch of ResNet-50 records."""
    outcome = launch_once(
        tmp_path_factory.mktemp("resnet50"),
        "pytorch",
        kind="profile",
        workload="resnet50-inference",
        measure={"operators": 5},
    )
    assert (outcome.status, outcome.reason) == ("ok", None)
    return profile_of(outcome)


def test_the_table_of_resnet50_adds_up_to_its_step(resnet50: OperatorProfile) -> None:
    operators_ns = sum(operator.total_ns for operator in resnet50.operators)
    step_ns, outside_ns = step_and_outside(resnet50)

    assert operators_ns + outside_ns == pytest.approx(step_ns, rel=0.01)
    # Were operators missed, their time would be outside of all of them.
    assert outside_ns < 0.2 * step_ns
    assert resnet50.iterations == 5
    assert resnet50.phases == {}


def test_the_profile_of_resnet50_has_its_layers(resnet50: OperatorProfile) -> None:
    calls = {operator.type: operator.calls for operator in resnet50.operators}

    # 53 convolutions, each followed by a batch normalisation, and one fully connected layer.
    assert calls["aten::convolution"] == calls["aten::native_batch_norm"] == 53
    assert calls["aten::addmm"] == 1


def test_a_resumed_run_does_not_repeat_a_profile(suite: Path) -> None:
    before = launches_of(suite)

    completed(suite, "run", "--resume", "--unlocked")

    assert launches_of(suite) == before


def test_the_trace_is_stored_and_linked_from_the_page(suite: Path) -> None:
    (file,) = jsonl.files(suite / "reports" / "records")

    completed(suite, "report")

    for launch in launches_of(suite)[2:]:
        assert launch.trace == f"{launch.id}.json.gz"
        kept = (folder_of(file) / launch.trace).read_bytes()
        assert json.loads(gzip.decompress(kept))["traceEvents"]
        assert (suite / "reports" / "site" / "traces" / launch.trace).read_bytes() == kept
        page = (suite / "reports" / "site" / "scenario" / "one.html").read_text()
        assert f'href="../traces/{launch.trace}"' in page


def test_an_imported_trace_gives_the_profilers_table(suite: Path, tmp_path: Path) -> None:
    (file,) = jsonl.files(suite / "reports" / "records")
    launch = launches_of(suite)[-1]
    own = profile_of(launch)
    assert launch.trace is not None
    trace = folder_of(file) / launch.trace

    completed(tmp_path, "import", "profile", str(trace), "--name", "again")

    ((imported,), _) = documents.PROFILES.read(tmp_path / "reports" / "records")
    reimported = imported.profile
    assert top(reimported, 5) == top(own, 5)
    assert reimported.iterations == own.iterations
    assert reimported.step_ns == pytest.approx(own.step_ns, rel=0.01)
    assert {operator.type: operator.calls for operator in reimported.operators} == {
        operator.type: operator.calls for operator in own.operators
    }
    assert list(reimported.phases) == list(own.phases)


def top(profile: OperatorProfile, number: int) -> list[str]:
    return [operator.type for operator in profile.operators[:number]]


def test_a_training_step_has_phases(tmp_path: Path) -> None:
    (tmp_path / "training.py").write_text(TRAINING)

    outcome = launch_once(
        tmp_path,
        "pytorch",
        kind="profile",
        workload="training:setup",
        measure={"operators": 5},
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    profile = profile_of(outcome)
    assert set(profile.phases) == {"forward", "backward", "update"}
    step_ns, outside_ns = step_and_outside(profile)
    assert sum(profile.phases.values()) + outside_ns == pytest.approx(step_ns, rel=0.01)


TRAINING = """\
import torch

def setup():
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(16, 64), torch.randn(16, 8)

    def step():
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()

    return step
"""


@pytest.mark.parametrize(
    ("framework", "mode"),
    [
        ("pytorch", "eager"),
        ("tensorflow", "graph"),
        ("tensorflow", "eager"),
        ("mindspore", "graph"),
        ("mindspore", "eager"),
    ],
)
def test_every_framework_lists_the_operators_of_a_training_step(
    tmp_path: Path, framework: str, mode: str
) -> None:
    outcome = launch_once(
        tmp_path,
        framework,
        kind="profile",
        workload="small-network-training",
        parameters={"mode": mode},
        measure={"operators": 5},
    )

    assert (outcome.status, outcome.reason) == ("ok", None)
    profile = profile_of(outcome)
    operators_ns = sum(operator.total_ns for operator in profile.operators)
    step_ns, outside_ns = step_and_outside(profile)
    assert operators_ns + outside_ns == pytest.approx(step_ns, rel=0.01)
    # 7 layers multiply matrices once forward and twice backward, but the first has no
    # gradient of its inputs to find; whatever the framework calls a product.
    products = [
        operator for operator in profile.operators if re.search("MatMul|mm$", operator.type)
    ]
    assert sum(product.calls for product in products) == 20


@pytest.mark.quick
@pytest.mark.parametrize(
    "framework", [name for name, runtime in RUNTIMES.items() if runtime.server is None]
)
def test_an_adapter_has_a_profiler_or_a_reason(framework: Framework) -> None:
    name = "python" if framework == "none" else framework.replace("-", "_")
    adapter = ROOT / f"src/corebound/worker/adapters/{name}.py"

    assert ("\ndef profile(" in adapter.read_text()) == (not RUNTIMES[framework].unprofiled)
