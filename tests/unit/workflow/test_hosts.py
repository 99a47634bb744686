"""Reading the results of all hosts of a folder, and comparing them by command."""

import json
from pathlib import Path

import pytest
from benchmarks.fleet import StubFleet, write_fleet

from corebound.errors import Fault
from corebound.records import jsonl
from corebound.workflow.hosts import read_hosts
from support.commands import corebound

FLEET = StubFleet(hosts=24, nights=2, cells=3, slow_host=8, gains={"arm-1s": 0.8})


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet")
    write_fleet(FLEET, folder)
    return folder


def test_every_host_is_read_with_its_latest_result(records: Path) -> None:
    faults: list[Fault] = []

    hosts = list(read_hosts(records, faults))

    assert len(hosts) == FLEET.hosts
    assert faults == []
    assert {scenario.run[-4:] for host in hosts for scenario in host.scenarios} == {"0001"}


def test_cached_results_are_those_that_were_read(records: Path) -> None:
    first, second = list(read_hosts(records, [])), list(read_hosts(records, []))

    assert (records / "cache").is_dir()
    assert first == second


def test_a_damaged_run_is_reported_and_the_one_before_is_used(tmp_path: Path) -> None:
    write_fleet(StubFleet(hosts=2, nights=2, cells=2), tmp_path)
    latest = sorted(jsonl.files(tmp_path))[1]
    latest.write_bytes(b"no record\n")
    faults: list[Fault] = []

    first, _ = read_hosts(tmp_path, faults)

    assert first.scenarios[0].run.endswith("0000")
    assert [fault.file for fault in faults] == [str(latest)]


def test_the_planted_outlier_and_the_planted_class_are_in_the_document(records: Path) -> None:
    code, out, err = corebound(records, "compare", "--by", "class", "--records", ".", "--json")

    document = json.loads(out)
    assert (code, err) == (0, "")
    assert [each["name"] for each in document["outlier_hosts"]] == ["xeon-2s-0008"]
    assert document["outlier_hosts"][0]["differs"] == [
        {"name": "kernel", "own": "Linux 6.1.0", "others": "Linux 6.8.0"}
    ]
    rows = document["scenarios"][0]["configurations"]
    assert [row["classes_differ"] for row in rows] == [False, True, True]
    verdicts = {each["class"]: each["verdict"] for each in rows[1]["classes"]}
    assert verdicts == {
        "arm-1s": "slower", "epyc-1s": "faster", "epyc-2s": "faster", "xeon-2s": "faster",
    }  # fmt: skip


@pytest.mark.parametrize("by", ["host", "class"])
@pytest.mark.parametrize("form", ["text", "md"])
def test_the_text_names_the_outlier_and_fits_a_terminal(
    records: Path, by: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = corebound(
        records, "compare", "--by", by, "--records", ".", "--format", form, "--all"
    )

    assert "xeon-2s-0008" in out.replace("\\", "")
    assert form == "md" or max(map(len, out.splitlines())) <= 80


def test_hosts_of_another_scenario_are_no_hosts_to_compare(records: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(
        "schema: 1\nname: other\ntitle: t\nquestion: q?\nworkload: {command: ['true']}\n"
        "matrix: {binding: [none]}\n"
    )

    code, _, err = corebound(records, "compare", "--by", "host", "--records", ".", str(other))

    assert code == 2
    assert "no host" in err


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b", "c")])
def test_without_by_compare_takes_two_names(tmp_path: Path, names: tuple[str, ...]) -> None:
    code, _, err = corebound(tmp_path, "compare", *names)

    assert code == 2
    assert "two runs" in err
