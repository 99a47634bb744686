"""A fleet without an engine: agents by hand, records copied, a collector whose disk is full."""

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from corebound.records import jsonl
from support import repositories
from support.commands import corebound, output_of

FLEET = """\
schema: 1
name: lab
engine: dask
hosts: [n1, n2]
scenarios: [scenarios/counting.yaml]
launches: 1
work: {work}
dask: {{scheduler: "tcp://127.0.0.1:9"}}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    folder = tmp_path / "suite"
    folder.mkdir()
    repositories.counting_suite(
        folder, matrix={"binding": ["none"]}, measure={"iterations": 5, "relaunch_disturbed": 0}
    )
    (folder / "fleet.yaml").write_text(FLEET.format(work=tmp_path / "work"))
    return repositories.commit_all(folder)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 KiB; needs root."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=32k", "tmpfs", str(folder))
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs root, to mount a small file system")
    yield folder
    subprocess.run(("umount", str(folder)), check=True)


def by_hand(suite: Path, host: str) -> None:
    plan = json.loads(output_of(suite, "fleet", "plan", "fleet.yaml", "--json"))
    output_of_host = corebound(
        suite, "fleet", "agent", plan["folder"], "--host", host, COREBOUND_MACHINE_ID=host
    )
    assert output_of_host.code == 0, output_of_host


def write_wheel(folder: Path) -> None:
    """A wheel of one module, which no package index has."""
    folder.mkdir()
    info = "corebound_tiny-1.0.dist-info"
    files = {
        "corebound_tiny.py": "ITEMS = range(1000)\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: corebound-tiny\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / "corebound_tiny-1.0-py3-none-any.whl", "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)


def test_an_environment_is_made_on_the_host_from_a_wheelhouse(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COREBOUND_CACHE", str(tmp_path / "cache"))
    write_wheel(tmp_path / "wheels")
    steps = "from corebound_tiny import ITEMS\n\ndef setup():\n    return lambda: sum(ITEMS)\n"
    repositories.counting_suite(
        suite,
        environment="tiny",
        framework="none",
        steps=steps,
        measure={"iterations": 5, "relaunch_disturbed": 0},
    )
    (suite / "environments").mkdir()
    (suite / "environments" / "tiny.txt").write_text("corebound-tiny==1.0\n")
    fleet = FLEET.format(work=tmp_path / "work") + f"wheelhouse: {tmp_path / 'wheels'}\n"
    (suite / "fleet.yaml").write_text(fleet)
    repositories.git(suite, "add", "--all")
    repositories.git(suite, "commit", "--quiet", "--message", "tiny")

    by_hand(suite, "n1")

    output_of(suite, "fleet", "collect", "fleet.yaml", "--from", str(tmp_path / "work"))
    (file,) = jsonl.files(suite / "reports" / "records")
    (lock,) = jsonl.read_run(file).environments
    assert lock.packages[0] == "corebound-tiny==1.0"


def collected(suite: Path, records: str = "reports/records") -> list[int]:
    return [len(jsonl.read(file).launches) for file in jsonl.files(suite / records)]


@pytest.mark.quick
def test_copied_records_are_collected_once_and_the_rest_is_named(
    suite: Path, tmp_path: Path
) -> None:
    by_hand(suite, "n1")
    (folder,) = (tmp_path / "work").glob("*/n1")
    shutil.move(folder, tmp_path / "copies" / "n1")

    collect = ("fleet", "collect", "fleet.yaml", "--from", str(tmp_path / "copies"))
    output_of(suite, *collect)
    output_of(suite, *collect)

    assert collected(suite) == [1]
    status = json.loads(output_of(suite, "fleet", "status", "fleet.yaml", "--json"))
    assert {shard["host"]: shard["status"] for shard in status["shards"]} == {
        "n1": "collected",
        "n2": "planned",
    }


def test_half_copied_records_are_refused_until_the_rest_arrives(
    suite: Path, tmp_path: Path
) -> None:
    by_hand(suite, "n1")
    (folder,) = (tmp_path / "work").glob("*/n1")
    copies = Path(shutil.move(folder, tmp_path / "copies" / "n1"))
    (file,) = copies.glob("*/records/*/*.jsonl")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    collect = ("fleet", "collect", "fleet.yaml", "--from", str(copies.parent))

    refused = corebound(suite, *collect)
    assert refused.code == 4
    assert "half copied" in refused.err
    assert "half copied" in output_of(suite, "fleet", "status", "fleet.yaml")

    file.write_bytes(whole)
    output_of(suite, *collect)
    assert collected(suite) == [1]


def test_two_hosts_with_one_machine_id_are_not_merged(suite: Path) -> None:
    plan = json.loads(output_of(suite, "fleet", "plan", "fleet.yaml", "--json"))
    for host in ("n1", "n2"):
        corebound(suite, "fleet", "agent", plan["folder"], "--host", host)
    by_hand(suite, "n1")
    copied = ("fleet", "collect", "fleet.yaml", "--from", str(suite.parent / "work"))

    refused = corebound(suite, *copied)

    assert refused.code == 4
    assert "which belongs to n1" in refused.err
    assert collected(suite) == [1]


def test_a_full_disk_of_the_collector_loses_nothing(
    suite: Path, tmp_path: Path, small_disk: Path
) -> None:
    by_hand(suite, "n1")
    records = small_disk / "records"
    filler = small_disk / "filler"
    filler.write_bytes(
        b"x" * (os.statvfs(small_disk).f_bavail - 1) * os.statvfs(small_disk).f_bsize
    )
    collect = (
        "fleet", "collect", "fleet.yaml", "--from", str(tmp_path / "work"),
        "--records", str(records),
    )  # fmt: skip

    full = corebound(suite, *collect)
    assert full.code == 2
    assert "No space left" in full.err
    assert not list(records.rglob("*.jsonl"))

    filler.unlink()
    output_of(suite, *collect)
    assert collected(small_disk, "records") == [1]
