"""The machine as `corebound topology` shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corebound.cli.commands.plan import check, describe, plan
from corebound.machine import discovery
from support.build import a_host

SCENARIO = """\
schema: 1
name: nothing
title: Nothing
question: How long does nothing take?
workload: {command: ["true"]}
matrix: {binding: [none, node, one-cpu], threads: [2, per-core]}
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A scenario of six cells, of which three are the same on this host of two cores."""
    monkeypatch.setattr(discovery, "live_topology", lambda: a_host(cores_per_node=2))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nothing.yaml").write_text(SCENARIO)
    return "nothing.yaml"


def test_a_plan_names_the_duplicates(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    plan([Path(scenario)], as_json=True)

    assert {
        cell["cell"]: cell["duplicate_of"]
        for cell in json.loads(capsys.readouterr().out)["results"]
    } == {
        "binding=none,threads=2": None,
        "binding=none,threads=per-core": "nothing[binding=none,threads=2]",
        "binding=node,threads=2": "nothing[binding=none,threads=2]",
        "binding=node,threads=per-core": "nothing[binding=none,threads=2]",
        "binding=one-cpu,threads=2": None,
        "binding=one-cpu,threads=per-core": None,
    }


def test_plan_and_check_count_the_duplicates(
    scenario: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan([Path(scenario)])
    assert "nothing: 3 of 6 configurations" in capsys.readouterr().out

    check([Path(scenario)])
    assert capsys.readouterr().out == ("OK: nothing, 6 cells, 3 the same as another on this host\n")


def test_a_machine_is_described_from_package_to_cpu() -> None:
    host = a_host(nodes=2, cores_per_node=1, cpus_per_core=2, allowed=frozenset({0, 1, 2}))

    assert describe(host).splitlines() == [
        "2 packages, 2 nodes, 2 cores, 4 CPUs, SMT, allowed 0-2",
        "package 0",
        "  node 0, 8.0 GiB",
        "    L3, 32 MiB",
        "      core 0: CPUs 0,2",
        "package 1",
        "  node 1, 8.0 GiB",
        "    L3, 32 MiB",
        "      core 0: CPUs 1,3, not allowed: 3",
    ]
