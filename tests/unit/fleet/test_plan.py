"""A frozen plan: the same inputs give the same ids, and other inputs other ones."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.errors import InputError
from corebound.fleet.folder import Attempt, PlanHeldError, ShardState, open_folder, open_path
from corebound.fleet.plan import PlannedHost, Source
from support.fleets import SHA, a_plan, a_plan_folder, scenario_named


def test_a_plan_has_each_scenario_on_each_host_once() -> None:
    plan = a_plan(hosts=("n2", "n1"), scenarios=[scenario_named("b"), scenario_named("a")])

    assert [(shard.host, shard.scenario) for shard in plan.shards] == [
        ("n1", "a"), ("n1", "b"), ("n2", "a"), ("n2", "b"),
    ]  # fmt: skip
    assert len({shard.id for shard in plan.shards}) == 4


def test_time_and_packing_are_no_part_of_an_id() -> None:
    packed_again = a_plan(
        created_at="2027-01-01T00:00:00Z", source=Source(folder="", sha256="e" * 64, size_bytes=2)
    )

    assert packed_again.id == a_plan().id
    assert packed_again.shards == a_plan().shards


def test_the_address_of_the_engine_is_no_part_of_an_id() -> None:
    moved = {**a_plan().document, "dask": {"local": True}}

    assert a_plan(document=moved).id == a_plan().id


def test_whatever_is_measured_is_part_of_every_id() -> None:
    plan = a_plan()
    changed = [
        a_plan(round_name="2"),
        a_plan(commit=replace(plan.commit, sha="f" * 40)),
        a_plan(scenarios=[replace(scenario_named("a"), environments={"numpy": "0" * 64})]),
        a_plan(document={**plan.document, "launches": 3}),
        a_plan(hosts=[PlannedHost(name="n1", labels={"rack": "a"})]),
        a_plan(corebound="0.2.0"),
    ]

    ids = [shard.id for one in [plan, *changed] for shard in one.shards]
    assert len(ids) == len(set(ids))
    assert plan.commit.sha == SHA


def test_an_identical_plan_keeps_its_state(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path)
    shard = folder.plan.shards[0]
    state = ShardState(attempts=(Attempt(job="1", started_at="x", state="lost"),))
    folder.write_state(shard, state)

    again = a_plan_folder(tmp_path, a_plan(created_at="2027-01-01T00:00:00Z"))

    assert again.plan == folder.plan
    assert again.state_of(shard) == state


def test_the_newest_plan_is_the_current_one(tmp_path: Path) -> None:
    a_plan_folder(tmp_path)
    second = a_plan_folder(tmp_path, a_plan(round_name="2"))

    assert open_folder(tmp_path / "lab").plan == second.plan


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), min_size=1, max_size=6))
def test_each_plan_is_found_by_its_id_and_by_its_round_if_only_it_has_that(
    plans: list[tuple[str, int]],
) -> None:
    with TemporaryDirectory() as name:
        fleet = Path(name, "lab")
        made = []
        for each, sha in dict.fromkeys(plans):
            commit = replace(a_plan().commit, sha=f"{sha}" * 40)
            made.append(a_plan_folder(Path(name), a_plan(round_name=each, commit=commit)).plan)
        for plan in made:
            assert open_folder(fleet, plan.id).plan == plan
            same = [one for one in made if one.round == plan.round]
            if len(same) == 1:
                assert open_folder(fleet, plan.round).plan == plan
                continue
            with pytest.raises(InputError) as error:
                open_folder(fleet, plan.round)
            assert all(one.id in str(error.value) for one in same)
        with pytest.raises(InputError) as error:
            open_folder(fleet, "x")
        assert all(f"--round {one.round}" in str(error.value) for one in made)


@pytest.mark.parametrize("content", ["", "{}", "[" * 5000, '{"plan": 1}', "\udcff"])
def test_a_damaged_plan_hides_no_other_round(tmp_path: Path, content: str) -> None:
    folder = a_plan_folder(tmp_path)
    damaged = a_plan_folder(tmp_path, a_plan(round_name="2"))
    (damaged.path / "plan.json").write_bytes(content.encode(errors="surrogateescape"))

    assert open_folder(tmp_path / "lab", "1").plan == folder.plan


@pytest.mark.parametrize("content", ["", "../../etc", "0123456789ab", "\udcff"])
def test_without_a_plan_the_command_to_make_one_is_named(tmp_path: Path, content: str) -> None:
    (tmp_path / "current").write_bytes(content.encode(errors="surrogateescape"))

    with pytest.raises(InputError, match="corebound fleet plan"):
        open_folder(tmp_path)


def test_a_damaged_state_is_named_with_its_file(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path)
    shard = folder.plan.shards[0]
    folder.write_state(shard, ShardState())
    (folder.path / "shards" / f"{shard.id}.json").write_text('{"schema": 1, "st')

    with pytest.raises(InputError, match=shard.id):
        folder.state_of(shard)


def test_one_command_at_a_time_changes_a_plan(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path)

    with folder.lock(), pytest.raises(PlanHeldError, match="another command"), folder.lock():
        pass


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"host":"n1"', b'"host":"n9"'),
        (b'"round":"1"', b'"round":"2"'),
        (b'"document":{', b'"document":{"unknown":1,'),
        (b'"engine":"dask"', b'"engine":"slurm"'),
        (b'"path":"', b'"path":"other/'),
    ],
)
def test_a_plan_that_was_changed_by_hand_is_damaged(old: bytes, new: bytes, tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path)
    file = folder.path / "plan.json"
    assert old in file.read_bytes()
    file.write_bytes(file.read_bytes().replace(old, new))

    with pytest.raises(InputError, match="damaged"):
        open_path(folder.path)


def test_an_error_while_a_plan_is_held_is_not_one_of_its_folder(tmp_path: Path) -> None:
    folder = a_plan_folder(tmp_path)

    with pytest.raises(OSError, match="of something else"), folder.lock():
        raise OSError("of something else")
