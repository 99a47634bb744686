"""The agent's own rules: whose shard it carries out, and what it passes on."""

from pathlib import Path

import msgspec
import pytest

from corebound.fleet import agent
from corebound.fleet.coordinator import assignment_of, fleet_of
from corebound.fleet.folder import ShardReport
from corebound.fleet.plan import Assignment
from support.fleets import a_plan_folder, record_file


@pytest.fixture
def task(tmp_path: Path) -> Assignment:
    folder = a_plan_folder(tmp_path)
    task = assignment_of(folder, fleet_of(folder.plan), folder.plan.shards[0])
    return msgspec.structs.replace(task, work=str(tmp_path / "work"))


def carry_out(task: Assignment, host: str) -> ShardReport:
    answer = agent.carry_out(msgspec.json.encode(task), host=host)
    return msgspec.json.decode(answer, type=ShardReport)


def test_an_agent_refuses_the_shard_of_another_host(task: Assignment) -> None:
    report = carry_out(task, "n2")

    assert (report.state, report.host) == ("refused", "n2")
    assert "it is for n1" in report.reason
    assert not agent.place(task).exists()


def test_a_second_delivery_returns_the_report_of_the_first(
    task: Assignment, tmp_path: Path
) -> None:
    records = tmp_path / "r.jsonl"
    records.write_bytes(b"records")
    folder = agent.place(task)
    folder.mkdir(parents=True)
    before = ShardReport(
        shard=task.shard, host="n1", state="done", records=(record_file(str(records), b"records"),)
    )
    (folder / "report.json").write_bytes(msgspec.json.encode(before))

    assert carry_out(task, "n1") == before.signed(task.key)


def test_a_damaged_bundle_is_reported_and_nothing_is_measured(task: Assignment) -> None:
    report = carry_out(task, "n1")

    assert report.state == "failed"
    assert "bundle of the commit is damaged" in report.reason
    assert report.records == ()
    assert report.is_signed(task.key)


def test_only_what_a_measurement_needs_is_passed_on() -> None:
    engine = {
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "MALLOC_TRIM_THRESHOLD_": "65536",
        "PYTHONHASHSEED": "6640",
        "SLURM_CPU_BIND": "quiet",
        "DASK_CONFIG": "/etc/dask",
        "LD_PRELOAD": "libtrace.so",
        "KMP_AFFINITY": "compact",
        "CUDA_VISIBLE_DEVICES": "",
        "PYTHONPATH": "/job",
    }
    needed = {"PATH": "/bin", "HOME": "/root", "LC_ALL": "C", "COREBOUND_CACHE": "/c"}

    assert agent.passed_environment({**engine, **needed}) == needed


def test_the_report_of_a_failure_makes_way_for_a_new_delivery(task: Assignment) -> None:
    folder = agent.place(task)
    folder.mkdir(parents=True)
    failed = ShardReport(shard=task.shard, host="n1", state="failed")
    (folder / "report.json").write_bytes(msgspec.json.encode(failed))

    agent.forget_failures([task])

    assert agent.report_of(task) is None


def test_what_is_no_report_is_none(task: Assignment) -> None:
    folder = agent.place(task)
    folder.mkdir(parents=True)
    (folder / "report.json").write_text("{")

    assert agent.report_of(task) is None
