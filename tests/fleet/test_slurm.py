"""A fleet on real Slurm daemons with three nodes on this machine, which are killed at random."""

import json
import os
import random
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from fleet.conftest import (
    HOSTS,
    SlurmFleet,
    check_each_host_measured_once,
    launches_on,
    stored,
    until,
    write_fleet,
)
from support import repositories
from support.commands import corebound, output_of


def slurm_suite(suite: Path, **document: object) -> Path:
    write_fleet(suite, engine="slurm", **document)
    return suite


def words(suite: Path) -> dict[str, str]:
    status = json.loads(output_of(suite, "fleet", "status", "fleet.yaml", "--json"))
    return {shard["host"]: shard["status"] for shard in status["shards"]}


def test_a_partition_measures_on_all_cpus_without_the_variables_of_jobs(
    suite: Path, slurm_fleet: SlurmFleet
) -> None:
    hosts = [{"partition": "all", "features": "genoa", "labels": {"class": "genoa"}}]
    slurm_suite(suite, hosts=hosts, slurm={"partition": "all", "constraint": "genoa"})

    assert corebound(suite, "fleet", "run", "fleet.yaml").code == 0
    output_of(suite, "fleet", "collect", "fleet.yaml")

    check_each_host_measured_once(suite)
    for run in stored(suite):
        assert run.run.labels["class"] == "genoa"
        assert len(run.run.host.topology.allowed) == len(os.sched_getaffinity(0))
    for file in suite.parent.glob("work/*/*/source/scenarios/environment.json"):
        names = json.loads(file.read_text())
        assert not [name for name in names if name.startswith(("SLURM", "OMP_", "SUBMITIT"))]


def test_random_kills_lose_no_launch_and_count_none_twice(
    suite: Path, slurm_fleet: SlurmFleet
) -> None:
    slurm_suite(suite, launches=8)
    chance = random.Random(26)
    assert corebound(suite, "fleet", "run", "fleet.yaml", "--detach").code == 0
    until(lambda: launches_on(suite, "n1") > 0, "the first launch on n1")
    for event in ("agent", "controller", "node", "agent"):
        host = chance.choice(HOSTS)
        if event == "agent":
            slurm_fleet.kill_agent(host)
        elif event == "controller":
            slurm_fleet.kill("slurmctld")
            slurm_fleet.start_controller()
        else:
            slurm_fleet.kill(host)
            slurm_fleet.start_node(host)
        time.sleep(chance.uniform(0.2, 1))
    until(lambda: slurm_fleet.nodes("down") == set(), "the return of the nodes")

    for _ in range(4):
        slurm_fleet.return_drained_nodes()
        # A node that is drained meanwhile has its job wait until somebody returns it.
        with suppress(subprocess.TimeoutExpired):
            if corebound(suite, "fleet", "resume", "fleet.yaml", timeout_s=60).code == 0:
                break
    assert set(words(suite).values()) == {"done"}
    status = json.loads(output_of(suite, "fleet", "status", "fleet.yaml", "--json"))
    assert max(shard["attempts"] for shard in status["shards"]) > 1
    output_of(suite, "fleet", "collect", "fleet.yaml")
    check_each_host_measured_once(suite, launches=8)


def test_a_job_of_a_lost_node_waits_for_that_node(suite: Path, slurm_fleet: SlurmFleet) -> None:
    slurm_suite(suite)
    slurm_fleet.kill("n2")
    until(lambda: "n2" in slurm_fleet.nodes("down"), "the loss of n2")

    assert corebound(suite, "fleet", "run", "fleet.yaml", "--detach").code == 0
    until(lambda: words(suite) == {"n1": "done", "n2": "queued", "n3": "done"}, "the rest")
    status = output_of(suite, "fleet", "status", "fleet.yaml")
    assert "Slurm: " in status

    slurm_fleet.start_node("n2")
    assert corebound(suite, "fleet", "run", "fleet.yaml").code == 0
    output_of(suite, "fleet", "collect", "fleet.yaml")
    check_each_host_measured_once(suite)


def test_a_cancelled_fleet_leaves_no_job(suite: Path, slurm_fleet: SlurmFleet) -> None:
    slurm_suite(suite, launches=30)
    assert corebound(suite, "fleet", "run", "fleet.yaml", "--detach").code == 0
    until(lambda: launches_on(suite, "n1") > 0, "the first launch on n1")

    output_of(suite, "fleet", "cancel", "fleet.yaml")

    until(lambda: slurm_fleet.nodes("idle") == set(HOSTS), "the end of the jobs")
    assert set(words(suite).values()) == {"cancelled"}


def test_a_round_is_collected_at_once_though_another_was_planned_since(
    suite: Path, slurm_fleet: SlurmFleet
) -> None:
    slurm_suite(suite)
    output_of(suite, "fleet", "plan", "fleet.yaml", "--round", "a")
    assert corebound(suite, "fleet", "run", "fleet.yaml", "--detach").code == 0
    repositories.git(suite, "commit", "--quiet", "--allow-empty", "--message", "next")
    output_of(suite, "fleet", "plan", "fleet.yaml", "--round", "b")

    assert "--round a" in output_of(suite, "fleet", "status", "fleet.yaml")
    reports = suite.parent / "work"
    until(lambda: len([*reports.glob("*/*/*/report.json")]) == len(HOSTS), "the end of round a")
    output_of(suite, "fleet", "collect", "fleet.yaml", "--round", "a")

    check_each_host_measured_once(suite)
    assert "--round a" not in output_of(suite, "fleet", "status", "fleet.yaml")


def test_a_job_that_slurm_has_forgotten_is_over_and_its_report_counts(
    suite: Path, slurm_fleet: SlurmFleet
) -> None:
    slurm_suite(suite, hosts=["n1"])
    assert corebound(suite, "fleet", "run", "fleet.yaml", "--detach").code == 0
    until(lambda: words(suite) == {"n1": "done"}, "the end of n1")
    (state,) = suite.glob("reports/fleet/lab/*/shards/*.json")
    document = json.loads(state.read_text())
    document["state"]["report"] = None
    document["state"]["attempts"][0] |= {"job": "999_0", "state": "queued"}
    state.write_text(json.dumps(document))

    output_of(suite, "fleet", "collect", "fleet.yaml")

    assert words(suite) == {"n1": "collected"}
