"""A fleet on a real Dask scheduler with three workers, which are killed at random."""

import json
import random
import time
from pathlib import Path

from corebound.fleet.folder import open_folder
from fleet.conftest import (
    HOSTS,
    DaskFleet,
    check_each_host_measured_once,
    launches_on,
    libfaketime,
    stored,
    until,
    write_fleet,
)
from support.commands import corebound, output_of, start


def dask_suite(suite: Path, fleet: DaskFleet, **document: object) -> Path:
    write_fleet(suite, engine="dask", dask={"scheduler": fleet.address}, **document)
    return suite


def test_three_hosts_measure_without_the_variables_of_dask_and_are_collected_once(
    suite: Path, dask_fleet: DaskFleet
) -> None:
    dask_suite(suite, dask_fleet, labels={"site": "here"})

    ran = corebound(suite, "fleet", "run", "fleet.yaml", "--json")
    assert ran.code == 0, ran
    assert json.loads(ran.out)["counts"] == {"done": 3}
    output_of(suite, "fleet", "collect", "fleet.yaml")
    output_of(suite, "fleet", "collect", "fleet.yaml")

    check_each_host_measured_once(suite)
    plan = open_folder(suite / "reports" / "fleet" / "lab").plan
    for run in stored(suite):
        assert run.run.labels["site"] == "here"
        assert run.run.labels["fleet-plan"] == plan.id
        assert run.run.commit is not None
        assert run.run.commit.sha == plan.commit.sha
    # The nanny of a worker sets some.
    (file,) = suite.parent.glob("work/*/n1/source/scenarios/environment.json")
    measured = json.loads(file.read_text())
    assert dask_fleet.variable_of("n1", "OMP_NUM_THREADS") == "1"
    assert not [name for name in measured if name.startswith(("OMP_", "MKL_", "DASK_", "MALLOC_"))]


def test_a_killed_agent_ends_its_run_and_its_shard_resumes_there(
    suite: Path, dask_fleet: DaskFleet
) -> None:
    dask_suite(suite, dask_fleet, launches=6)
    run = start(suite, "fleet", "run", "fleet.yaml")
    until(lambda: launches_on(suite, "n2") >= 2, "the second launch on n2")
    dask_fleet.kill("n2")
    before = launches_on(suite, "n2")
    dask_fleet.start_worker("n2")
    _, errors = run.communicate(timeout=120)

    assert run.returncode == 0, errors
    assert before < 6
    output_of(suite, "fleet", "collect", "fleet.yaml")
    check_each_host_measured_once(suite, launches=6)


def test_a_lost_host_keeps_its_shard_and_status_says_why(
    suite: Path, dask_fleet: DaskFleet
) -> None:
    dask_suite(suite, dask_fleet)
    dask_fleet.kill("n3")
    until(lambda: "n3" not in dask_fleet.workers(), "the end of n3's worker")

    ran = corebound(suite, "fleet", "run", "fleet.yaml", "--json")

    assert ran.code == 4
    missing = [one for one in json.loads(ran.out)["shards"] if one["status"] != "done"]
    assert [(one["host"], one["status"]) for one in missing] == [("n3", "planned")]
    assert "no worker of n3 is connected" in missing[0]["reason"]

    dask_fleet.start_worker("n3")
    assert corebound(suite, "fleet", "resume", "fleet.yaml").code == 0
    output_of(suite, "fleet", "collect", "fleet.yaml")
    check_each_host_measured_once(suite)


def test_a_cancelled_fleet_stops_and_resumes(suite: Path, dask_fleet: DaskFleet) -> None:
    dask_suite(suite, dask_fleet, launches=16)
    run = start(suite, "fleet", "run", "fleet.yaml", "--json")
    until(lambda: launches_on(suite, "n1") >= 1, "the first launch on n1")
    output_of(suite, "fleet", "cancel", "fleet.yaml")
    out, _ = run.communicate(timeout=60)

    assert run.returncode == 4
    assert set(json.loads(out)["counts"]) <= {"cancelled", "done"}
    assert corebound(suite, "fleet", "resume", "fleet.yaml").code == 0
    output_of(suite, "fleet", "collect", "fleet.yaml")
    check_each_host_measured_once(suite, launches=16)


def test_random_kills_lose_no_launch_and_count_none_twice(
    suite: Path, dask_fleet: DaskFleet
) -> None:
    dask_suite(suite, dask_fleet, launches=10)
    chance = random.Random(26)
    run = start(suite, "fleet", "run", "fleet.yaml")
    for _ in range(5):
        time.sleep(chance.uniform(0.5, 2))
        victim = chance.choice([*HOSTS, "scheduler", "command"])
        if victim == "command":
            run.kill()
            run.communicate()
            run = start(suite, "fleet", "resume", "fleet.yaml")
        elif victim == "scheduler":
            dask_fleet.restart_scheduler()
        else:
            dask_fleet.kill(victim)
            dask_fleet.start_worker(victim)
    run.communicate(timeout=120)

    for _ in range(3):
        if (resumed := corebound(suite, "fleet", "resume", "fleet.yaml")).code == 0:
            break
    assert resumed.code == 0, resumed
    output_of(suite, "fleet", "collect", "fleet.yaml")
    check_each_host_measured_once(suite, launches=10)


def test_a_host_whose_agent_has_a_wrong_clock_is_measured_once_and_its_clock_is_reported(
    suite: Path, dask_fleet: DaskFleet
) -> None:
    dask_fleet.kill("n2")
    dask_fleet.start_worker(
        "n2", LD_PRELOAD=libfaketime(), FAKETIME="-1d", FAKETIME_DONT_FAKE_MONOTONIC="1"
    )
    dask_suite(suite, dask_fleet, launches=3)

    output_of(suite, "fleet", "run", "fleet.yaml")
    output_of(suite, "fleet", "collect", "fleet.yaml")
    output_of(suite, "fleet", "collect", "fleet.yaml")

    check_each_host_measured_once(suite, launches=3)
    status = json.loads(output_of(suite, "fleet", "status", "fleet.yaml", "--json"))
    skews = {shard["host"]: shard["clock_skew_s"] for shard in status["shards"]}
    assert -86_700 < skews.pop("n2") < -86_100
    assert set(skews.values()) == {None}


def test_hosts_that_talk_encrypted_only_are_measured(
    suite: Path, tls_fleet: DaskFleet, certificates: Path
) -> None:
    assert tls_fleet.address.startswith("tls://")
    dask = {"scheduler": tls_fleet.address, "tls": str(certificates)}
    write_fleet(suite, engine="dask", hosts=["n1"], dask=dask)

    output_of(suite, "fleet", "run", "fleet.yaml")
    output_of(suite, "fleet", "collect", "fleet.yaml")

    (run,) = stored(suite)
    assert len(run.launches) == 2


def test_a_host_is_measured_over_ssh(suite: Path, ssh_home: Path) -> None:
    write_fleet(suite, engine="dask", hosts=["n1"], dask={"ssh": True})

    for command in ("run", "collect"):
        ran = corebound(suite, "fleet", command, "fleet.yaml", HOME=str(ssh_home))
        assert ran.code == 0, ran

    (run,) = stored(suite)
    assert [launch.status for launch in run.launches] == ["ok", "ok"]


def test_a_host_that_ssh_cannot_reach_is_an_error_with_a_fix(suite: Path, ssh_home: Path) -> None:
    write_fleet(suite, engine="dask", hosts=["n1"], dask={"ssh": True})
    (ssh_home / ".ssh" / "config").write_text("Host n1\n  HostName 127.0.0.1\n  Port 1\n")

    ran = corebound(suite, "fleet", "run", "fleet.yaml", HOME=str(ssh_home))

    assert ran.code == 3
    assert "cannot be reached over SSH" in ran.err
