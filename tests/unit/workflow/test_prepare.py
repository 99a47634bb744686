"""Which runs are resumed, and which scenarios run first."""

from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.machine import discovery
from corebound.planning.host_support import HostCapabilities
from corebound.planning.plan import plan_cells
from corebound.records import jsonl
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.runner import Task
from corebound.scenario.matrix import expand
from corebound.stats.stopping import DOUBTFUL_TURNS
from corebound.workflow.prepare import (
    RunRequest,
    difference,
    prepare_comparison,
    prepare_run,
    prioritise_inconclusive,
    resume_run,
)
from corebound.workflow.scenarios import load_scenarios
from support.build import a_host, a_launch, a_run, a_scenario, a_worker, write_records
from support.texts import in_order

YAML = """\
schema: 1
name: nothing
title: Nothing
question: How long does nothing take?
workload: {command: ["true"]}
matrix: {binding: [none, one-cpu]}
"""


def test_resuming_reads_only_the_resumed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs_read: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "true.yaml").write_text(YAML)
    wanted = RunRequest(files=(Path("true.yaml"),), records=tmp_path)
    loaded = load_scenarios(wanted.files, (), None)
    both = prepare_comparison(loaded, wanted, print, resume=False)
    narrowed = load_scenarios(wanted.files, ("binding=none",), None)
    other = prepare_comparison(
        narrowed, replace(wanted, only=("binding=none",)), print, resume=False
    )
    for one in (both, other):
        with closing(jsonl.begin(one.run, one.file)) as appender:
            appender.publish()

    again = prepare_comparison(loaded, wanted, print, resume=True)

    assert again.run == both.run
    assert runs_read == [both.run.id]


def test_a_run_in_which_duplicates_were_measured_apart_is_not_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "true.yaml").write_text(YAML.replace("one-cpu", '{cpus: "0-1"}'))
    monkeypatch.setattr(discovery, "live_topology", lambda: a_host(cores_per_node=2))
    request = RunRequest(files=(Path("true.yaml"),), records=tmp_path)
    now = prepare_run(request, print).run
    assert now.duplicates == {"nothing": {"binding=cpus:0-1": "binding=none"}}

    assert difference(now, now) is None
    assert difference(replace(now, duplicates={}), now) is not None


def test_a_resumed_run_keeps_the_launches_that_its_command_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "true.yaml").write_text(YAML)
    request = RunRequest(files=(Path("true.yaml"),), records=tmp_path)
    words = ("corebound", "run", "true.yaml", "--launches", "2")
    prepared = prepare_run(request, print)
    run = replace(prepared.run, argv=words)
    (task,) = prepared.tasks
    cells = [planned.cell for planned in task.planned if planned.duplicate_of is None]
    done = [a_launch(run=run.id, cell=cell, block=block) for cell in cells for block in (0, 1)]
    write_records(tmp_path, run, *done)

    resumed = resume_run(request, print, operators=False)

    assert resumed.run.id == run.id
    launches = {planned.measure.launches for task in resumed.tasks for planned in task.planned}
    assert {(bounds.min, bounds.max) for bounds in launches} == {(2, 2)}
    # It has all of them.
    assert resumed.note is None


def test_what_has_changed_in_a_scenario_is_named(tmp_path: Path) -> None:
    file = tmp_path / "true.yaml"

    def planned(text: str, **env: str) -> Run:
        file.write_text(text)
        return prepare_run(RunRequest(files=(file,), env=env), print).run

    before, other_value = planned(YAML, A="1"), planned(YAML, A="2")
    renamed = planned(YAML.replace("Nothing", "Little"))

    assert in_order(difference(before, other_value), "nothing: env.A", '"1"', '"2"')
    values = '"Nothing"', '"Little"', "nothing: env.A", '"1"', "not set"
    assert in_order(difference(before, renamed), "nothing: title", *values)


NAMES = ("sure", "noisy", "failed", "new")


def a_task(name: str) -> Task:
    scenario = a_scenario(
        name=name, matrix={"binding": ["none", "one-cpu"]}, measure={"launches": {"min": 4}}
    )
    means = HostCapabilities(
        topology=a_host(), tools=frozenset({"taskset"}), pythons={"host": "/usr/bin/python3"}
    )
    cells = expand(scenario, "a.yaml")
    return Task(
        scenario=scenario,
        planned=plan_cells(scenario, cells, means, folder="/suite", profile=None, seed=1),
    )


def launches(task: Task, run: Run, spread: float) -> list[Launch]:
    """Four blocks of both cells, their medians apart by so large a share."""
    return [
        a_launch(
            run=run.id,
            cell=planned.cell,
            block=block,
            workers=(a_worker(wall_ns=(round(1e6 * (1 + spread * (block % 2) * place)),) * 30),),
        )
        for block in range(4)
        for place, planned in enumerate(task.planned)
    ]


@pytest.fixture
def tasks() -> tuple[Task, ...]:
    return tuple(map(a_task, NAMES))


def test_inconclusive_scenarios_come_first_with_more_blocks_per_turn(
    tasks: tuple[Task, ...], tmp_path: Path
) -> None:
    sure, noisy, failed, _ = tasks
    last = a_run(run_id="last", scenarios=tuple(task.scenario for task in tasks[:3]))
    broken = [a_launch(run=last.id, cell=failed.planned[0].cell, status="failed")]
    measured = [*launches(sure, last, 0.0), *launches(noisy, last, 0.5), *broken]
    write_records(tmp_path, last, *measured)

    found = prioritise_inconclusive(tasks, a_run(run_id="now"), tmp_path)

    # What failed, and what was never measured, waits its turn.
    assert [(task.scenario.name, task.turns) for task in found] == [
        ("noisy", DOUBTFUL_TURNS), ("sure", 1), ("failed", 1), ("new", 1),
    ]  # fmt: skip


def test_the_latest_other_run_decides_what_is_inconclusive(
    tasks: tuple[Task, ...], tmp_path: Path
) -> None:
    noisy = tasks[1]
    for name, day, spread in (("older", 1, 0.5), ("last", 2, 0.0), ("now", 3, 0.5)):
        run = a_run(
            run_id=name, scenarios=(noisy.scenario,), started_at=f"2026-01-0{day}T03:04:05Z"
        )
        write_records(tmp_path, run, *launches(noisy, run, spread))

    found = prioritise_inconclusive((noisy,), a_run(run_id="now"), tmp_path)

    assert [task.turns for task in found] == [1]
