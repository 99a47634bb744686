"""What taskset and numactl really did, on a booted machine of two sockets with SMT.

`make test-numa` builds the machine from Debian packages and runs this. It is
emulated, so its timings mean nothing; its kernel, its topology and its memory
nodes are real. CPUs 0-3 are node 0, cores (0,1) and (2,3); CPUs 4-7 are node 1.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from corebound.model.plan import Cell
from corebound.model.record import Launch
from corebound.store import jsonl

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"

pytestmark = [
    pytest.mark.numa,
    pytest.mark.skipif(
        shutil.which("qemu-system-x86_64") is None,
        reason="no emulator: apt-get install --no-install-recommends qemu-system-x86",
    ),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A run in the machine: its launches, and what the workload saw of itself."""

    launches: tuple[Launch, ...]
    seen: tuple[dict[str, object], ...]

    def of(self, **axes: str) -> list[Launch]:
        found = [one for one in self.launches if axes.items() <= dict(_settings(one.cell)).items()]
        assert found, axes
        return found


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
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    suite = tmp_path_factory.mktemp("suite")
    shutil.copy(HERE / "suite" / "pages.py", suite)
    (suite / "pages.yaml").write_text(SCENARIO)
    command = (
        *(str(HERE / "numa-vm"), "run", "--sockets", "2", "--cores", "2", "--threads", "2"),
        *("--mem", "1024", "--timeout", "900"),
        *("--share", f"{SOURCE}:/src", "--share", f"{sysconfig.get_path('purelib')}:/site"),
        *("--share", f"{suite}:/suite:rw", "--env", "PYTHONPATH=/src:/site", "--env", "HOME=/tmp"),
        *("--", "sh", "-c", "cd /suite && python3.11 -m corebound run pages.yaml"),
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = jsonl.files(suite / "reports" / "records")
    seen = [json.loads(line) for line in (suite / "told.jsonl").read_text().splitlines()]
    return Told(launches=jsonl.read(file).launches, seen=tuple(seen))


def test_every_launch_is_proven_or_skipped_with_its_reason(told: Told) -> None:
    assert {one.status for one in told.launches} == {"ok", "skipped"}, [
        one.reason for one in told.launches
    ]
    assert all(one.reason and one.mend for one in told.launches if one.status == "skipped")


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
def test_threads_are_allowed_what_the_mode_says_and_seen_nowhere_else(
    told: Told, binding: str, threads: str, cpus: tuple[int, ...]
) -> None:
    for launch in told.of(
        binding=binding, threads=threads, memory="default", moment="before-start", workers="1"
    ):
        for thread in launch.workers[0].threads:
            assert set(thread.allowed) <= {cpus}
            assert {stay.cpu for stay in thread.stays} <= set(cpus)


def test_workers_of_their_own_share_no_core_and_stay_on_their_node(told: Told) -> None:
    for launch in told.of(binding="per-worker", workers="2"):
        assert launch.placement is not None
        assert [slot.cpus for slot in launch.placement.slots] == [(0, 2), (4, 6)]
        assert [slot.memory_nodes for slot in launch.placement.slots] == [(0,), (1,)]
        for worker, cpus in zip(launch.workers, ((0, 2), (4, 6)), strict=True):
            assert {one for thread in worker.threads for one in thread.allowed} == {cpus}


def test_a_worker_bound_once_it_is_ready_is_bound_when_it_is_timed(told: Told) -> None:
    for launch in told.of(binding="node", moment="after-start"):
        assert launch.commands[0].argv[0].endswith("python3.11")
        allowed = {one for thread in launch.workers[0].threads for one in thread.allowed}
        assert allowed == {(0, 1, 2, 3)}


@pytest.mark.parametrize(("memory", "node"), [("bind", "0"), ("remote", "1")])
def test_memory_comes_from_the_node_that_was_asked_for(told: Told, memory: str, node: str) -> None:
    launches = told.of(binding="one-cpu", memory=memory, threads="default")

    assert f"--membind={node}" in launches[0].commands[0].argv
    # A bound worker's own pages say it; only these cells hold one CPU.
    single = [seen["pages"] for seen in told.seen if seen["cpus"] == [0]]
    assert any(isinstance(pages, dict) and set(pages) == {node} for pages in single)
