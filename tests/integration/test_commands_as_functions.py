"""The commands as functions of `import corebound`: their `document` is what `--json` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import corebound
from support import commands, repositories
from support.commands import output_of

FLEET = """\
schema: 1
name: lab
engine: dask
hosts: [n1]
scenarios: [scenarios/counting.yaml]
launches: 1
work: {work}
dask: {{scheduler: "tcp://127.0.0.1:9"}}
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A suite in a repository, with one run of its two cells and a fleet file."""
    folder = tmp_path_factory.mktemp("api")
    suite = repositories.two_sizes_suite(folder / "suite")
    (suite / "fleet.yaml").write_text(FLEET.format(work=folder / "work"))
    repositories.git(suite, "add", "--all")
    repositories.git(suite, "commit", "--quiet", "--message", "add a fleet")
    output_of(suite, "run", "scenarios", "--seed", "5")
    return suite


@pytest.fixture
def suite(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, as the current folder."""
    monkeypatch.chdir(recorded)
    for name, value in commands.isolation(recorded).items():
        monkeypatch.setenv(name, value)
    return recorded


def printed(suite: Path, *arguments: str) -> dict[str, Any]:
    """The result that a command prints with `--json`, without the header."""
    document: dict[str, Any] = json.loads(output_of(suite, *arguments, "--json"))
    return {key: value for key, value in document.items() if key not in {"corebound", "error"}}


def as_json(document: object) -> Any:
    return json.loads(json.dumps(document))


def test_a_plan_is_what_the_command_prints(suite: Path) -> None:
    plan = corebound.plan("scenarios")

    assert [planned.cell for planned in plan] == ["size=1", "size=2"]
    assert all(planned.commands and planned.skipped is None for planned in plan)
    assert plan.duration_s > 0
    assert as_json(plan.document) == printed(suite, "plan", "scenarios")["results"]


def test_the_checks_of_the_host_are_those_that_the_command_prints(suite: Path) -> None:
    host = corebound.doctor("scenarios")

    command = printed(suite, "doctor", "scenarios")
    assert host.document.keys() == command.keys()
    # The load changes from one moment to the next.
    assert [check.check for check in host] == [check["check"] for check in command["checks"]]
    assert all(check.fix for check in host.warnings)


@pytest.mark.quick
def test_a_recorded_result_is_reproduced(suite: Path) -> None:
    (run,) = corebound.load().runs()["run"]

    again = corebound.reproduce(run, "size=1")

    assert (again.scenario, again.cell, again.axes) == ("counting", "size=1", {"size": "1"})
    assert again.slowdown_ratio == pytest.approx(again.now_ns / again.recorded_ns, rel=0.5)
    assert again.holds == again.document["holds"]
    assert len(again.results.runs()) == 2
    command = printed(suite, "reproduce", f"{run}:size=1")
    assert again.document.keys() == command.keys()


@pytest.mark.measures
def test_a_calibration_has_the_noise_of_each_number_of_launches(suite: Path) -> None:
    calibrations = corebound.calibrate("scenarios", seed=1)

    (calibration,) = calibrations
    assert [noise.launches for noise in calibration.noise] == [3]
    assert len(calibrations.results.launches()) == 6
    (document,) = calibrations.document
    assert document["noise"][0]["floor_ratio"] == calibration.noise[0].floor_ratio
    assert document["id"].startswith("counting[")


def test_a_nightly_run_measures_and_publishes(suite: Path) -> None:
    night = corebound.nightly("scenarios", profile="quick", budget_s=60, to="public")

    assert (night.status, night.failed_step) == ("ok", None), night.text
    assert night.steps.keys() >= {"run", "regressions", "report", "publish"}
    assert night.document["status"] == "ok"
    assert len(night.results.runs()) == 2
    assert (suite / "public" / "index.html").is_file()


def test_a_fleet_is_planned_and_its_missing_shards_are_named(suite: Path) -> None:
    fleet = corebound.Fleet("fleet.yaml")

    plan = fleet.plan()

    assert as_json(plan) == printed(suite, "fleet", "plan", "fleet.yaml")
    assert not fleet.status().is_measured
    assert as_json(fleet.status().document) == printed(suite, "fleet", "status", "fleet.yaml")
    assert as_json(fleet.collect().document) == printed(suite, "fleet", "collect", "fleet.yaml")
    # The scheduler of this fleet file does not exist.
    with pytest.raises(corebound.CoreboundError) as raised:
        fleet.run()
    assert raised.value.document["fix"]
