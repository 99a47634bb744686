"""Placement by taskset and numactl, on a booted machine of two sockets with SMT.

`make test-numa` builds the machine from Debian packages and runs this. It is
emulated, so its timings mean nothing; its kernel, its topology and its memory
nodes are real. CPUs 0-3 are node 0, cores (0,1) and (2,3); CPUs 4-7 are node 1.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from msgspec import Struct

from corebound.analysis.scenario_result import analyse_scenario, findings
from corebound.diagnosis.evidence import moves
from corebound.records import jsonl
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.scenario.cell import Cell
from support import needs

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"

pytestmark = [
    pytest.mark.numa,
    needs.emulator,
]

SCENARIO = """\
schema: 1
name: pages
title: Where threads and pages are
question: Did the binding take?
workload: pages:setup
environment: host
parameters: {told: /suite/told.jsonl}
matrix:
  binding: [none, one-cpu, physical-cores, logical-cpus, smt-siblings, node, per-worker, scatter]
  memory: [default, bind, remote]
  threads: [default, 2]
  include:
    - {binding: {cpus: "1,6"}, memory: default, threads: default}
    - {binding: node, memory: default, threads: per-core, bind: after-start}
    - {binding: per-worker, memory: bind, threads: default, workers: 2}
measure: {iterations: 3, launches: {min: 2, max: 2}, timeout_s: 120}
"""
# A launch takes twelve seconds or more: memory by node is looked at every ten.
WANDERING = """\
schema: 1
name: wandering
title: A thread that changes nodes
question: Is it seen?
workload: pages:wanders
environment: host
parameters: {seconds: 0.4}
matrix: {binding: [none, node]}
measure: {iterations: 16, launches: {min: 2, max: 2}, timeout_s: 120}
baseline: {binding: node}
"""

OFFLINE = """\
schema: 1
name: offline
title: CPUs that are offline
question: Are they left alone?
workload: pages:setup
environment: host
parameters: {told: /suite/told.jsonl}
matrix:
  binding: [physical-cores, logical-cpus, node, {cpus: "2,3"}]
measure: {iterations: 3, launches: {min: 2, max: 2}, timeout_s: 120}
"""


class Records(Struct, frozen=True, kw_only=True):
    """A run in the machine: its launches, and what the workload saw of itself."""

    run: Run
    launches: tuple[Launch, ...]
    seen: tuple[dict[str, object], ...]

    def findings(self, scenario: str) -> dict[str, list[str]]:
        """What diagnosis makes of it: the cells that each rule names."""
        (source,) = [one for one in self.run.scenarios if one.document["name"] == scenario]
        own = [launch for launch in self.launches if launch.cell.scenario == scenario]
        matching = findings(analyse_scenario(self.run, source, own))
        return {one.rule: [cell.key for cell in one.cells] for one in matching}

    def of(self, **axes: str) -> list[Launch]:
        own = [launch for launch in self.launches if launch.cell.scenario == "pages"]
        matching = [one for one in own if axes.items() <= _settings(one.cell).items()]
        assert matching, axes
        return matching


def _settings(cell: Cell) -> dict[str, str]:
    binding = cell.binding
    return {
        "binding": binding.mode,
        "memory": binding.memory,
        "threads": str(cell.threads.rule),
        "moment": binding.moment,
        "workers": str(cell.workers),
    }


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Records:
    suite = tmp_path_factory.mktemp("suite")
    return measured(suite, {"pages": SCENARIO, "wandering": WANDERING})


@pytest.fixture(scope="module")
def offline_records(tmp_path_factory: pytest.TempPathFactory) -> Records:
    return measured(tmp_path_factory.mktemp("offline"), {"offline": OFFLINE}, "--offline", "3,6")


def measured(suite: Path, scenarios: dict[str, str], *machine: str) -> Records:
    """Run scenarios in a machine that is booted for it, `machine` saying how it differs."""
    shutil.copy(HERE / "suite" / "pages.py", suite)
    for name, text in scenarios.items():
        (suite / f"{name}.yaml").write_text(text)
    files = " ".join(f"{name}.yaml" for name in scenarios)
    command = (
        *(str(HERE / "numa-vm"), "run", "--sockets", "2", "--cores", "2", "--threads", "2"),
        *("--mem", "1024", "--timeout", "900", *machine),
        *("--share", f"{SOURCE}:/src", "--share", f"{sysconfig.get_path('purelib')}:/site"),
        *("--share", f"{suite}:/suite:rw", "--env", "PYTHONPATH=/src:/site", "--env", "HOME=/tmp"),
        *("--", "sh", "-c", f"cd /suite && python3.11 -m corebound run {files}"),
    )
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    (file,) = jsonl.files(suite / "reports" / "records")
    seen = [json.loads(line) for line in (suite / "told.jsonl").read_text().splitlines()]
    stored = jsonl.read(file)
    return Records(run=stored.run, launches=stored.launches, seen=tuple(seen))


def test_every_launch_is_verified_or_skipped_with_a_reason(told: Records) -> None:
    assert {launch.status for launch in told.launches} == {"ok", "skipped"}, [
        launch.reason for launch in told.launches
    ]
    assert all(
        launch.reason and launch.fix for launch in told.launches if launch.status == "skipped"
    )


@pytest.mark.parametrize(
    ("binding", "threads", "cpus"),
    [
        ("none", "default", (0, 1, 2, 3, 4, 5, 6, 7)),
        ("one-cpu", "default", (0,)),
        ("physical-cores", "default", (0, 2, 4, 6)),
        ("physical-cores", "2", (0, 2)),
        ("logical-cpus", "default", (0, 1, 2, 3, 4, 5, 6, 7)),
        ("smt-siblings", "2", (0, 1)),
        ("node", "default", (0, 1, 2, 3)),
        ("scatter", "2", (0, 4)),
        ("cpus", "default", (1, 6)),
    ],
)
def test_threads_run_only_on_the_cpus_of_their_mode(
    told: Records, binding: str, threads: str, cpus: tuple[int, ...]
) -> None:
    for launch in told.of(
        binding=binding, threads=threads, memory="default", moment="before-start", workers="1"
    ):
        for thread in launch.workers[0].threads:
            assert set(thread.allowed) <= {cpus}
            assert {stay.cpu for stay in thread.stays} <= set(cpus)


def test_separate_workers_share_no_core_and_stay_on_their_node(told: Records) -> None:
    for launch in told.of(binding="per-worker", workers="2"):
        assert launch.placement is not None
        assert [slot.cpus for slot in launch.placement.slots] == [(0, 2), (4, 6)]
        assert [slot.memory_nodes for slot in launch.placement.slots] == [(0,), (1,)]
        for worker, cpus in zip(launch.workers, ((0, 2), (4, 6)), strict=True):
            assert {one for thread in worker.threads for one in thread.allowed} == {cpus}


def test_a_worker_bound_after_start_is_bound_when_it_is_timed(told: Records) -> None:
    for launch in told.of(binding="node", moment="after-start"):
        assert launch.commands[0].argv[0].endswith("python3.11")
        allowed = {one for thread in launch.workers[0].threads for one in thread.allowed}
        assert allowed == {(0, 1, 2, 3)}


@pytest.mark.parametrize(("memory", "node"), [("bind", "0"), ("remote", "1")])
def test_memory_comes_from_the_requested_node(told: Records, memory: str, node: str) -> None:
    launches = told.of(binding="one-cpu", memory=memory, threads="default")

    assert f"--membind={node}" in launches[0].commands[0].argv
    # A bound worker's own pages say it; only these cells hold one CPU.
    single = [seen["pages"] for seen in told.seen if seen["cpus"] == [0]]
    assert any(isinstance(pages, dict) and set(pages) == {node} for pages in single)


def test_memory_on_the_other_node_is_diagnosed(told: Records) -> None:
    for memory, node in (("bind", 0), ("remote", 1)):
        for launch in told.of(binding="one-cpu", memory=memory, threads="default"):
            nodes = launch.workers[0].node_bytes
            assert nodes[node] > 0.9 * sum(nodes.values())

    # Where threads may run on both nodes, or could until they were bound, some of their
    # memory can be on the other by chance.
    on_one_node = {
        launch.cell.key
        for launch in told.launches
        if launch.placement is not None
        and launch.cell.binding.moment == "before-start"
        and all(len({cpu // 4 for cpu in slot.cpus}) == 1 for slot in launch.placement.slots)
    }
    named = [cell for cell in told.findings("pages")["memory-remote"] if cell in on_one_node]
    assert named
    assert [cell for cell in named if "memory=remote" not in cell] == []


def test_a_thread_that_migrates_between_nodes_is_diagnosed(
    told: Records,
) -> None:
    assert told.findings("wandering")["threads-migrate"] == ["binding=none"]
    topology = told.run.host.topology
    roaming = [
        launch for launch in told.launches if launch.cell.key == "binding=none" and _wanders(launch)
    ]
    for launch in roaming:
        seen = moves(launch, topology)
        assert seen is not None
        assert seen.across_nodes >= 10


def test_memory_by_node_is_sampled_over_time(told: Records) -> None:
    wandering = [launch for launch in told.launches if _wanders(launch)]
    assert len(wandering) == 4
    for launch in wandering:
        assert launch.host is not None
        looked = [window for window in launch.host.windows if window.node_bytes]
        assert 1 <= len(looked) <= launch.host.duration_ms / 10_000
        assert set(looked[0].node_bytes) <= {0, 1}


def _wanders(launch: Launch) -> bool:
    return launch.cell.scenario == "wandering"


def test_offline_cpus_are_neither_planned_nor_used(offline_records: Records) -> None:
    topology = offline_records.run.host.topology
    assert set(topology.offline) == {3, 6}
    placed = {
        launch.cell.key: launch.placement.slots[0].cpus
        for launch in offline_records.launches
        if launch.placement is not None and launch.status == "ok"
    }
    assert placed == {
        "binding=physical-cores": (0, 2, 4, 7),
        "binding=logical-cpus": (0, 1, 2, 4, 5, 7),
        "binding=node": (0, 1, 2),
    }
    for launch in offline_records.launches:
        for worker in launch.workers:
            assert {one for thread in worker.threads for one in thread.allowed} == {
                placed[launch.cell.key]
            }


def test_a_cell_on_an_offline_cpu_is_skipped_with_the_cpu(offline_records: Records) -> None:
    (skipped,) = [launch for launch in offline_records.launches if launch.status == "skipped"]

    assert skipped.cell.key == "binding=cpus:2-3"
    assert "3" in str(skipped.reason)
