"""Merging records of hosts: half copies, damage, duplicates, and hosts that claim to be others."""

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.errors import InputError
from corebound.fleet.collect import RefusedError, check_run, checked, collect_shard, merge
from corebound.fleet.folder import RecordFile
from corebound.fleet.plan import PlannedScenario
from corebound.records import jsonl
from corebound.records.run_record import EnvironmentLock
from support.examples import examples
from support.fleets import a_plan, record_bytes, record_file, scenario_named, shard_run
from support.known import known

PLAN = a_plan()
SHARD, OTHER = PLAN.shards
RUN = shard_run(PLAN, SHARD)


def launches(records: Path) -> list[int]:
    return [len(jsonl.read(file).launches) for file in jsonl.files(records)]


def test_a_file_that_arrives_twice_counts_once(tmp_path: Path) -> None:
    data = record_bytes(RUN, 3)

    assert [merge(data, RUN, tmp_path)[1] for _ in range(2)] == ["new", "same"]
    assert launches(tmp_path) == [3]


def test_a_longer_copy_replaces_a_shorter_one_and_never_the_reverse(tmp_path: Path) -> None:
    short, whole = record_bytes(RUN, 1), record_bytes(RUN, 3)

    assert merge(short, RUN, tmp_path)[1] == "new"
    assert merge(whole, RUN, tmp_path)[1] == "longer"
    assert merge(short, RUN, tmp_path)[1] == "shorter"
    assert launches(tmp_path) == [3]


@examples(40)
@given(st.lists(st.integers(0, len(record_bytes(RUN, 3))), min_size=1, max_size=6))
def test_whatever_cuts_arrive_in_whatever_order_the_longest_stays(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    records, whole = tmp_path_factory.mktemp("records"), record_bytes(RUN, 3)
    first_line = whole.index(b"\n") + 1
    cuts = [max(first_line, cut) for cut in cuts]

    for cut in cuts:
        merge(whole[:cut], RUN, records)

    (file,) = jsonl.files(records)
    longest = whole[: max(cuts)]
    assert file.read_bytes() == longest[: longest.rindex(b"\n") + 1]


def test_two_histories_of_one_run_are_both_kept_where_they_are(tmp_path: Path) -> None:
    merge(record_bytes(RUN, 1), RUN, tmp_path)
    other = record_bytes(RUN, 2).replace(b'"block":0', b'"block":7')

    with pytest.raises(RefusedError, match="other launches"):
        merge(other, RUN, tmp_path)
    assert launches(tmp_path) == [1]


def test_a_half_copied_file_is_refused_until_the_rest_arrives() -> None:
    data = record_bytes(RUN)
    record = record_file("r.jsonl", data)

    with pytest.raises(RefusedError, match="half copied"):
        checked(record, data[:-40], "n1")
    with pytest.raises(RefusedError, match="the digests differ"):
        checked(record, data[:-1] + b" ", "n1")
    with pytest.raises(RefusedError, match="cannot be read"):
        checked(record, None, "n1")
    assert checked(record, data, "n1") == data


def test_a_host_that_claims_the_id_of_another_is_refused() -> None:
    impostor = shard_run(PLAN, OTHER, machine="n1")

    with pytest.raises(RefusedError, match=r"n2 claims the id .* which belongs to n1"):
        check_run(record_bytes(impostor), PLAN, OTHER, {}, {RUN.host.id: "n1"})


def test_a_host_whose_id_has_changed_is_refused() -> None:
    with pytest.raises(RefusedError, match="fleet hosts forget FILE n1"):
        check_run(record_bytes(RUN), PLAN, SHARD, {"n1": "0123456789ab"}, {})


def test_records_of_another_shard_scenario_commit_or_environment_are_refused() -> None:
    lock = EnvironmentLock(name="numpy", sha256="1" * 64, python="3.11", packages=())
    needs = PlannedScenario(
        name="a", path="a.yaml", sha256=scenario_named("a").sha256, environments={"numpy": "2" * 64}
    )
    locked = a_plan(scenarios=[needs])
    (shard, _) = locked.shards
    cases = (
        (PLAN, OTHER, RUN, "another shard"),
        (PLAN, SHARD, replace(RUN, scenarios=()), "scenario is not the planned one"),
        (
            PLAN,
            SHARD,
            replace(RUN, commit=replace(known(PLAN.commit), sha="9" * 40)),
            "was planned",
        ),
        (locked, shard, replace(shard_run(locked, shard), environments=(lock,)), "environment"),
    )
    for plan, of, run, message in cases:
        with pytest.raises(RefusedError, match=message):
            check_run(record_bytes(run), plan, of, {}, {})


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(RefusedError) as error:
        check_run(data, PLAN, SHARD, {}, {})
    assert str(error.value).isprintable()


def test_a_host_cannot_write_outside_the_folder_of_records(tmp_path: Path) -> None:
    foreign = replace(RUN, id="../../evil", host=replace(RUN.host, id="../../etc"))

    file, _ = merge(record_bytes(foreign), foreign, tmp_path / "records")

    assert file.resolve().is_relative_to(tmp_path / "records")


def test_text_of_a_host_is_inert_in_the_reason() -> None:
    record = RecordFile(path="/w/\x1b[2J\n::error::r.jsonl", sha256="0" * 64, size_bytes=9)

    result = collect_shard(
        PLAN, SHARD, files=(record,), read=lambda _: b"", records=Path("r"), host_ids={}, owners={}
    )

    assert result.problem.isprintable()


def test_a_full_disk_loses_nothing_and_the_next_collection_completes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge(record_bytes(RUN, 1), RUN, tmp_path)

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match="No space left"):
            merge(record_bytes(RUN, 3), RUN, tmp_path)
    assert launches(tmp_path) == [1]
    assert [file.name[0] for file in tmp_path.rglob("*") if file.is_file()] != ["."]

    merge(record_bytes(RUN, 3), RUN, tmp_path)
    assert launches(tmp_path) == [3]
