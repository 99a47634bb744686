"""`corebound import profile` of traces that corebound has not recorded."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.commands import output_of
from support.environments import python_of
from support.paths import ROOT

pytestmark = pytest.mark.frameworks

SCENARIO = {
    "schema": 1,
    "name": "one",
    "title": "One",
    "question": "Where does its time go?",
    "workload": {"command": ["true"]},
    "environment": "host",
    "measure": {"relaunch_disturbed": 0, "iterations": 2, "launches": {"min": 2, "max": 2}},
}
# What a user writes, who knows nothing of corebound.
BY_HAND = """\
import sys
import torch
from torch.profiler import ProfilerActivity, profile, schedule

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs, targets = torch.randn(4096, 512), torch.randn(4096, 8)

def step():
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(inputs), targets).backward()
    optimizer.step()

for _ in range(3):
    step()
with profile(
    activities=[ProfilerActivity.CPU], schedule=schedule(wait=0, warmup=1, active=5, repeat=1)
) as profiler:
    for _ in range(6):
        step()
        profiler.step()
profiler.export_chrome_trace(sys.argv[1])
"""


def test_an_imported_profile_does_not_disturb_runs_and_reports(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text(json.dumps(SCENARIO))  # JSON is YAML too
    output_of(tmp_path, "import", "profile", str(ROOT / "tests/data/profiles/msprof"))
    output_of(tmp_path, "run", "one.yaml", "--unlocked")
    output_of(tmp_path, "run", "--resume", "--unlocked")
    output_of(tmp_path, "report")

    site = tmp_path / "reports" / "site"
    assert "Conv2DBackpropFilterD" in (site / "operators.html").read_text()
    assert 'href="operators.html"' in (site / "index.html").read_text()
    assert (site / "scenario" / "one.html").is_file()


@pytest.mark.quick
def test_operators_of_a_users_trace_add_up(tmp_path: Path) -> None:
    python = python_of("pytorch")
    (tmp_path / "by_hand.py").write_text(BY_HAND)
    subprocess.run((str(python), "by_hand.py", "a.json.gz"), cwd=tmp_path, check=True)

    document: dict[str, Any] = json.loads(
        output_of(tmp_path, "import", "profile", "a.json.gz", "--json")
    )

    profile = document["results"][0]["profile"]["profile"]
    assert profile["iterations"] == 5
    together_ns = sum(operator["total_ns"] for operator in profile["operators"])
    assert together_ns + profile["outside_ns"] == pytest.approx(profile["step_ns"], rel=0.01)
    # Were operators missed, their time would be outside of all of them.
    assert profile["outside_ns"] < 0.2 * profile["step_ns"]
    # One product forward in each layer; backward one in the first and two in the second.
    calls = {operator["type"]: operator["calls"] for operator in profile["operators"]}
    assert (calls["aten::addmm"], calls["aten::mm"]) == (2, 3)
    assert set(profile["phases"]) == {"forward", "backward", "update"}
