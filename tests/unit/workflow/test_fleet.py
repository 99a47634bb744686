"""Collecting what was copied from hosts: old and partial copies, and ids of many hosts."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.fleet.folder import PlanFolder, RecordFile, ShardReport
from corebound.fleet.plan import Shard
from corebound.records import jsonl
from corebound.workflow.fleet import CollectResult, collect_fleet
from support.commands import corebound
from support.fleets import a_plan, a_plan_folder, done, record_bytes, record_file, shard_run


def copy_shard(
    folder: PlanFolder,
    shard: Shard,
    root: Path,
    *,
    state: str = "done",
    cut: int = 0,
    key: str | None = None,
) -> None:
    """Write the copy of a host's working folder, whose file of records lacks the last bytes."""
    data = record_bytes(shard_run(folder.plan, shard))
    below = Path(folder.plan.id, shard.host, shard.id)
    file = below / "records" / "id" / "run.jsonl"
    (root / file).parent.mkdir(parents=True)
    (root / file).write_bytes(data[: len(data) - cut])
    report = replace(done(shard, record_file(f"/host/{file}", data)), state=state)
    signed = report.signed(key or folder.key)
    (root / below / "report.json").write_bytes(msgspec.json.encode(signed))


def collect(
    folder: PlanFolder, tmp_path: Path, *copies: Path, said: list[str] | None = None
) -> CollectResult:
    told = said if said is not None else []
    return collect_fleet(folder, tmp_path / "records", copies, told.append)


def test_a_whole_copy_counts_though_another_is_partial_or_old(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path)
    shard = folder.plan.shards[0]
    copy_shard(folder, shard, tmp_path / "monday", state="failed", cut=40)
    copy_shard(folder, shard, tmp_path / "tuesday")

    result = collect(folder, tmp_path, tmp_path / "monday", tmp_path / "tuesday")

    assert result.merged[shard.id].problem == ""
    (file,) = jsonl.files(tmp_path / "records")
    assert len(jsonl.read(file).launches) == 2


def test_a_report_of_another_key_is_refused_until_the_right_one_arrives(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path)
    shard = folder.plan.shards[0]
    copy_shard(folder, shard, tmp_path / "foreign", key="0" * 64)

    result = collect(folder, tmp_path, tmp_path / "foreign")

    assert result.has_refused
    assert {one.host: one.status for one in result.status.shards}[shard.host] == "refused"
    assert not list(jsonl.files(tmp_path / "records"))

    copy_shard(folder, shard, tmp_path / "own")
    result = collect(folder, tmp_path, tmp_path / "foreign", tmp_path / "own")

    assert not result.has_refused
    assert len(list(jsonl.files(tmp_path / "records"))) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b'{"shard": "s", "ho',
        b'{"shard": "\xff", "host": "n1", "state": "done"}',
        b"[" * 3000 + b"]" * 3000,
    ],
)
def test_a_damaged_report_is_named_and_costs_only_its_own_shard(
    content: bytes, tmp_path: Path
) -> None:
    folder = a_plan_folder(tmp_path)
    damaged, whole = folder.plan.shards[:2]
    for shard in (damaged, whole):
        copy_shard(folder, shard, tmp_path / "copies")
    file = tmp_path / "copies" / folder.plan.id / damaged.host / damaged.id / "report.json"
    file.write_bytes(content)
    said: list[str] = []

    result = collect(folder, tmp_path, tmp_path / "copies", said=said)

    assert list(result.merged) == [whole.id]
    assert result.has_refused
    assert damaged.host in said[0]


@given(
    st.sampled_from(["host", "state", "reason", "records", "ended_at", "signature"]),
    st.text(max_size=20),
)
def test_whatever_is_changed_in_a_report_its_signature_shows_it(field: str, text: str) -> None:
    key = "5a" * 32
    report = ShardReport(shard="s", host="n1", state="done").signed(key)
    value = (RecordFile(path=text, sha256="", size_bytes=0),) if field == "records" else text
    changed = replace(report, **{field: value})

    assert report.is_signed(key)
    assert changed == report or not changed.is_signed(key)


def test_a_copy_of_another_plan_is_said_to_have_nothing_of_this_one(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path)
    other = a_plan_folder(tmp_path / "other", a_plan(round_name="2"))
    copy_shard(other, other.plan.shards[0], tmp_path / "copies")
    said: list[str] = []

    collect(folder, tmp_path, tmp_path / "copies", said=said)

    assert said == [f"{tmp_path / 'copies'}: no copy of a shard of the plan {folder.plan.id}"]


def test_the_ids_of_all_hosts_are_kept(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path)
    for shard in folder.plan.shards:
        copy_shard(folder, shard, tmp_path / "copies")

    collect(folder, tmp_path, tmp_path / "copies")

    assert folder.host_ids() == {
        shard.host: shard_run(folder.plan, shard).host.id for shard in folder.plan.shards
    }


def test_many_hosts_of_one_status_are_one_row(tmp_path: Path) -> None:
    a_plan_folder(tmp_path, a_plan(hosts=[f"n{number:03}" for number in range(200)]))
    document = {**a_plan().document, "hosts": ["n000"]}
    (tmp_path / "fleet.yaml").write_text(json.dumps(document))

    shown = corebound(tmp_path, "fleet", "status", "fleet.yaml", "--folder", ".")

    assert "200 planned" in shown.out
    assert "n000, n001 … n199 (200 hosts)" in shown.out
    assert len(shown.out.splitlines()) == 3
