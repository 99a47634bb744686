"""`corebound regressions` of a fleet: what several hosts show is one finding."""

import json
from pathlib import Path

import pytest
from benchmarks.fleet import StubFleet, write_fleet

from support.commands import corebound


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight hosts of two each of four classes, six of which regressed with one commit."""
    folder = tmp_path_factory.mktemp("fleet")
    write_fleet(
        StubFleet(hosts=8, nights=16, cells=2, regression=(9, 1.1)), folder / "reports/records"
    )
    return folder


def test_a_regression_on_six_hosts_is_one_alarm(fleet: Path) -> None:
    ran = corebound(fleet, "regressions", "--json", in_process=True)

    told = json.loads(ran.out)
    (commit,) = told["commits"]
    (evidence,) = commit["evidence_of_hosts"]
    shows = {host["host"]: host["shows"] for host in evidence["hosts"]}
    assert ran.code == 1
    assert told["alarms"] == 1
    assert [name for name, answer in shows.items() if answer == "no"] == [
        "xeon-2s-0000", "xeon-2s-0004",
    ]  # fmt: skip
    assert evidence["together"]["hosts"] == 6
    assert evidence["together"]["interval"][0] < 1.1 < evidence["together"]["interval"][1]


@pytest.mark.parametrize("form", ["text", "md"])
def test_the_hosts_without_it_are_named(fleet: Path, form: str) -> None:
    ran = corebound(fleet, "regressions", "--format", form, in_process=True)

    assert "1 new regression" in ran.out
    assert "over 6 hosts" in ran.out
    assert "not on xeon-2s-0000 (" in ran.out


def test_a_decision_about_the_commit_is_about_all_of_it(fleet: Path) -> None:
    told = json.loads(corebound(fleet, "regressions", "--json", in_process=True).out)
    (commit,) = told["commits"]

    corebound(
        fleet, "regressions", "--accept", commit["id"], "--because", "wanted",
        "--status", "status.yaml", in_process=True,
    )  # fmt: skip

    after = corebound(fleet, "regressions", "--status", "status.yaml", in_process=True)
    assert after.code == 0
    assert "No new regression" in after.out
