"""The machine as `corebound topology` shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from corebound.analysis.forecast import Forecast
from corebound.cli.commands.plan import check, describe, plan
from corebound.cli.output.plan_notes import forecast_lines
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


def test_a_first_run_is_forecast_as_a_range_within_the_budget() -> None:
    def forecast(duration_s: float, *, since: str | None = None) -> Forecast:
        likely = None if since else (duration_s / 3, duration_s * 3)
        return Forecast(
            scenario="a", since=since, cells=2, launches=5, launch_s=duration_s / 10,
            duration_s=duration_s, half_width=None, range_s=likely,
        )  # fmt: skip

    (guessed,) = forecast_lines([forecast(30)], budget_s=None)
    (limited,) = forecast_lines([forecast(30)], budget_s=60)
    known = forecast_lines([forecast(30, since="2026-01-02T03:04:05Z")], budget_s=None)

    assert guessed.startswith("10 launches, expected to take between 10.0 s and 90.0 s.")
    assert limited.startswith("10 launches, expected to take between 10.0 s and 60.0 s.")
    assert known[0] == "10 launches, expected to take 30.0 s."


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
        "2 packages, 2 nodes, 2 cores, 4 CPUs, SMT, 16 GiB, allowed 0-2",
        "package 0",
        "  node 0, 8.0 GiB",
        "    L3, 32 MiB",
        "      core 0: CPUs 0,2",
        "package 1",
        "  node 1, 8.0 GiB",
        "    L3, 32 MiB",
        "      core 0: CPUs 1,3, not allowed: 3",
    ]
