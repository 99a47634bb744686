"""Collecting what was copied from hosts: old and partial copies, and ids of many hosts."""

import json
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.errors import HostError, InputError
from corebound.fleet.engines import JobState
from corebound.fleet.file import load_fleet
from corebound.fleet.folder import Attempt, PlanFolder, RecordFile, ShardReport, ShardState
from corebound.fleet.plan import Assignment, PlannedHost, Shard
from corebound.records import jsonl
from corebound.workflow import fleet as fleets
from corebound.workflow.fleet import (
    CollectResult,
    collect_fleet,
    forget_host,
    run_fleet,
    status_of_fleet,
)
from support.build import a_machine
from support.commands import corebound
from support.fleets import (
    FakeEngine,
    a_plan,
    a_plan_folder,
    done,
    record_bytes,
    record_file,
    shard_run,
)


def a_slurm_folder(folder: Path, **changes: object) -> PlanFolder:
    """A plan whose hosts share the plan's folder with us."""
    document = {**a_plan().document, "engine": "slurm", **changes}
    del document["dask"]
    return a_plan_folder(folder, a_plan(document=document))


def queue(folder: PlanFolder, shard: Shard, job: str = "7_0") -> None:
    attempt = Attempt(job=job, started_at="2026-01-02T03:04:05Z", state="queued")
    folder.write_state(shard, ShardState(attempts=(attempt,)))


def copy_shard(
    folder: PlanFolder,
    shard: Shard,
    root: Path,
    *,
    state: str = "done",
    cut: int = 0,
    key: str | None = None,
    machine: str | None = None,
) -> None:
    """Write the copy of a host's working folder, whose file of records lacks the last bytes."""
    data = record_bytes(shard_run(folder.plan, shard, machine=machine))
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


class Unreachable(FakeEngine):
    """An engine whose program is missing."""

    def poll(self, _jobs: object) -> dict[str, JobState]:
        raise HostError(what="`kubectl` is not installed here.", where="kubectl", fix="Install it.")


def connect(monkeypatch: pytest.MonkeyPatch, engine: FakeEngine) -> None:
    monkeypatch.setattr(fleets, "open_engine", lambda *_arguments: engine)


def test_the_first_collect_after_detach_asks_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_slurm_folder(tmp_path)

    def answer(task: Assignment) -> JobState:
        shard = next(one for one in folder.plan.shards if one.id == task.shard)
        data = record_bytes(shard_run(folder.plan, shard))
        file = tmp_path / f"{shard.host}.jsonl"
        file.write_bytes(data)
        report = done(shard, record_file(str(file), data)).signed(folder.key)
        return JobState(state="ended", report=report)

    for shard in folder.plan.shards:
        queue(folder, shard)
    connect(monkeypatch, FakeEngine(answer, keeps_jobs=True))

    result = collect(folder, tmp_path)

    assert result.status.counts == {"collected": 2}
    assert len(list(jsonl.files(tmp_path / "records"))) == 2


def test_what_is_here_is_collected_though_the_engine_cannot_be_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_slurm_folder(tmp_path, hosts=["n1", "n2"])
    here, away = folder.plan.shards
    for shard in (here, away):
        queue(folder, shard)
    copy_shard(folder, here, folder.path / "work")
    connect(monkeypatch, Unreachable(lambda _task: JobState(state="lost"), keeps_jobs=True))

    result = collect(folder, tmp_path)

    assert {one.shard: one.status for one in result.status.shards} == {
        here.id: "collected",
        away.id: "queued",
    }
    assert "kubectl" in result.status.unasked
    assert "kubectl" in status_of_fleet(folder).unasked

    copy_shard(folder, away, folder.path / "work")
    result = collect(folder, tmp_path)

    assert result.status.counts == {"collected": 2}
    assert not result.status.unasked


def test_a_scheduler_that_is_down_costs_only_what_it_alone_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_plan_folder(tmp_path)
    for shard in folder.plan.shards:
        data = record_bytes(shard_run(folder.plan, shard))
        file = tmp_path / f"{shard.host}.jsonl"
        if shard.host == "n2":
            file.write_bytes(data)
        report = done(shard, record_file(str(file), data)).signed(folder.key)
        folder.write_state(shard, ShardState(report=report))

    def refuse(*_arguments: object) -> FakeEngine:
        raise HostError(what="the scheduler is down.", where="tcp://h", fix="Start it.")

    monkeypatch.setattr(fleets, "open_engine", refuse)
    said: list[str] = []

    result = collect(folder, tmp_path, said=said)

    assert result.status.counts == {"collected": 1, "refused": 1}
    assert "scheduler is down" in said[-1]


def test_shards_done_by_hand_are_collected_where_their_folders_were_copied_back(
    tmp_path: Path,
) -> None:
    folder = a_slurm_folder(tmp_path)
    for shard in folder.plan.shards:
        copy_shard(folder, shard, folder.path / "work")

    assert status_of_fleet(folder).counts == {"done": 2}
    assert collect(folder, tmp_path).status.counts == {"collected": 2}


def test_a_report_copied_back_in_part_is_refused_until_the_rest_arrives(tmp_path: Path) -> None:
    folder = a_slurm_folder(tmp_path)
    shard = folder.plan.shards[0]
    copy_shard(folder, shard, folder.path / "work")
    file = folder.path / "work" / folder.plan.id / shard.host / shard.id / "report.json"
    whole = file.read_bytes()
    file.write_bytes(whole[:40])

    assert collect(folder, tmp_path).has_refused

    file.write_bytes(whole)
    assert not collect(folder, tmp_path).has_refused


def test_the_failure_of_an_earlier_job_does_not_end_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = a_slurm_folder(tmp_path)
    shard = folder.plan.shards[0]
    queue(folder, shard)
    copy_shard(folder, shard, folder.path / "work", state="failed")
    connect(monkeypatch, FakeEngine(lambda _task: JobState(state="running"), keeps_jobs=True))

    assert status_of_fleet(folder).counts == {"running": 1, "planned": 1}


def test_other_rounds_that_are_not_collected_are_named(tmp_path: Path) -> None:
    fleet = {one: a_plan_folder(tmp_path, a_plan(round_name=one)) for one in ("a", "b", "c", "d")}
    twice = a_plan_folder(tmp_path, a_plan(round_name="d", hosts=("n1",)))
    for folder in (fleet["a"], fleet["b"], twice):
        shard = folder.plan.shards[0]
        folder.write_state(shard, ShardState(report=done(shard)))
    queue(fleet["b"], fleet["b"].plan.shards[1])
    shard = fleet["c"].plan.shards[0]
    fleet["c"].write_state(shard, ShardState(report=done(shard), collected=("x",)))

    assert status_of_fleet(fleet["d"]).uncollected == {"a": 1, "b": 2, twice.plan.id: 1}
    assert status_of_fleet(fleet["a"]).uncollected == {"b": 2, twice.plan.id: 1}


def test_every_command_takes_the_round_of_an_older_plan(tmp_path: Path) -> None:
    old = a_plan_folder(tmp_path, a_plan(round_name="old"))
    a_plan_folder(tmp_path, a_plan(round_name="new"))
    (tmp_path / "fleet.yaml").write_text(json.dumps({**old.plan.document, "launches": 9}))
    for shard in old.plan.shards:
        copy_shard(old, shard, tmp_path / "copies")
    here = ("fleet.yaml", "--folder", ".", "--round", "old")

    assert corebound(tmp_path, "fleet", "collect", *here, "--from", "copies").code == 0
    assert "2 collected" in corebound(tmp_path, "fleet", "status", *here).out
    assert "2 planned" in corebound(tmp_path, "fleet", "status", *here[:3]).out
    # The fleet file has changed since, but everything of that round is measured.
    assert corebound(tmp_path, "fleet", "run", *here).code == 0
    assert corebound(tmp_path, "fleet", "cancel", *here).code == 0
    unknown = corebound(tmp_path, "fleet", "resume", *here[:-1], "older")
    assert unknown.code == 2
    assert "--round old" in unknown.err


def test_a_host_with_a_new_machine_id_is_accepted_once_the_old_one_is_forgotten(
    tmp_path: Path,
) -> None:
    """Cloned hosts: n2 is refused, both get a machine id of their own, and measure again."""
    first = a_plan_folder(tmp_path)
    for shard in first.plan.shards:
        copy_shard(first, shard, tmp_path / "copies", machine="clone")
    result = collect(first, tmp_path, tmp_path / "copies")
    n1, n2 = first.plan.shards
    assert "hosts forget FILE n1" in result.merged[n2.id].problem

    second = a_plan_folder(tmp_path, a_plan(round_name="2"))
    for shard in second.plan.shards:
        copy_shard(second, shard, tmp_path / "copies")
    n1 = second.plan.shards[0]
    result = collect(second, tmp_path, tmp_path / "copies")
    assert "hosts forget FILE n1" in result.merged[n1.id].problem

    assert forget_host(second, "n1") == a_machine(name="clone").id
    # What was measured with one machine id stays apart.
    assert collect(first, tmp_path, tmp_path / "copies").merged[n2.id].problem
    assert collect(second, tmp_path, tmp_path / "copies").status.counts == {"collected": 2}
    assert second.host_ids() == {name: a_machine(name=name).id for name in ("n1", "n2")}


def test_what_is_collected_stays_though_its_host_became_another_or_was_cleaned_up(
    tmp_path: Path,
) -> None:
    folder = a_plan_folder(tmp_path, a_plan(hosts=("n1",)))
    (shard,) = folder.plan.shards
    copy_shard(folder, shard, tmp_path / "copies")
    collect(folder, tmp_path, tmp_path / "copies")
    folder.write_host_ids({"n1": "another"})

    for copies in (tmp_path / "copies", tmp_path / "nothing"):
        result = collect(folder, tmp_path, copies)
        assert not result.has_refused
        assert result.status.counts == {"collected": 1}
    # In a folder without them, they have to be collected.
    assert collect_fleet(folder, tmp_path / "new", [tmp_path / "copies"], print).has_refused


def test_only_a_known_host_can_be_forgotten(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path)
    folder.write_host_ids({"n1": "a", "n2": "b"})

    with pytest.raises(InputError, match="n1, n2"):
        forget_host(folder, "n3")
    forget_host(folder, "n1")

    assert folder.host_ids() == {"n2": "b"}


class Clock:
    """Sleeps without waiting, and keeps when an engine was asked."""

    def __init__(self) -> None:
        self.now = 0.0
        self.asked: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def answer(self, _task: Assignment) -> JobState:
        self.asked.append(self.now)
        return JobState(state="running" if self.now < 7200 else "cancelled")


@pytest.mark.parametrize("keeps_jobs", [True, False])
def test_an_engine_that_has_all_jobs_is_asked_ever_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, keeps_jobs: bool
) -> None:
    clock = Clock()
    folder = a_plan_folder(tmp_path, a_plan(hosts=("n1",)))
    connect(monkeypatch, FakeEngine(clock.answer, keeps_jobs=keeps_jobs))

    run_fleet(folder, print, sleep=clock.sleep)

    gaps = [after - before for before, after in pairwise(clock.asked)]
    assert gaps == sorted(gaps)
    # One that gets a host's next shard when the last one has ended is asked each second.
    assert (gaps[0], gaps[-1]) == (1, 30 if keeps_jobs else 1)


def test_a_run_that_asks_rarely_is_cancelled_within_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    folder = a_plan_folder(tmp_path, a_plan(hosts=("n1",)))
    connect(monkeypatch, FakeEngine(clock.answer, keeps_jobs=True))

    def sleep(seconds: float) -> None:
        clock.sleep(seconds)
        if clock.now == 1000:
            assert fleets.cancel_fleet(folder) is None

    assert run_fleet(folder, print, sleep=sleep).counts == {"cancelled": 1}
    assert clock.now == 1000


@given(st.permutations(range(3)))
def test_a_host_has_the_labels_of_all_its_entries_its_own_first(order: list[int]) -> None:
    entries = [
        {"name": "n1", "labels": {"rack": "a7"}},
        {"name": "n3"},
        {"partition": "genoa", "labels": {"class": "genoa", "rack": "b"}},
    ]
    document = {
        "schema": 1, "name": "lab", "engine": "slurm", "scenarios": ["a.yaml"],
        "hosts": [entries[number] for number in order],
    }  # fmt: skip
    fleet = load_fleet(json.dumps(document).encode(), "fleet.yaml")
    engine = FakeEngine(lambda _task: JobState(state="lost"))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "select", lambda _entry: ["n1", "n2"])
        connect(patch, engine)
        hosts = fleets._hosts(fleet, Path("unused"), print)

    assert sorted(hosts, key=lambda host: host.name) == [
        PlannedHost(name="n1", labels={"class": "genoa", "rack": "a7"}),
        PlannedHost(name="n2", labels={"class": "genoa", "rack": "b"}),
        PlannedHost(name="n3", labels={}),
    ]
