"""Placement, quotas of cgroup v2, services and `corebound doctor --tune`, on two sockets.

`make test-numa` builds the machine from Debian packages and runs this. It is
emulated, so its timings mean nothing; its kernel, its topology and its memory
nodes are real. CPUs 0-3 are node 0, cores (0,1) and (2,3); CPUs 4-7 are node 1.
It is booted once, for all tests.
"""

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from corebound.analysis.scenario_result import analyse_scenario, findings
from corebound.diagnosis.evidence import moves
from corebound.records import jsonl
from corebound.records.launch_record import Launch
from corebound.records.run_record import Run
from corebound.scenario.cell import Cell
from corebound.stats.interference import is_refused
from support import needs

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"

pytestmark = [pytest.mark.numa, needs.emulator]

SCENARIO = """\
schema: 1
name: pages
title: Where threads and pages are
question: Did the binding take?
workload: pages:setup
environment: host
parameters: {told: /suite/placement/told.jsonl}
matrix:
  # Every binding once, memory on one node and on the other, fewer threads than CPUs: an emulated
  # launch takes seconds, and unit tests have all other pairs.
  binding: [none, one-cpu, physical-cores, logical-cpus, node]
  memory: [default]
  threads: [default]
  include:
    - {binding: one-cpu, memory: bind, threads: default}
    - {binding: one-cpu, memory: remote, threads: default}
    - {binding: physical-cores, memory: default, threads: 2}
    - {binding: smt-siblings, memory: default, threads: 2}
    - {binding: scatter, memory: default, threads: 2}
    - {binding: {cpus: "1,6"}, memory: default, threads: default}
    - {binding: node, memory: default, threads: per-core, bind: after-start}
    - {binding: per-worker, memory: bind, threads: default, workers: 2}
measure: {iterations: 3, timeout_s: 120, duplicates: each}
"""
# A launch that wanders takes over ten seconds: memory by node is looked at every ten.
WANDERING = """\
schema: 1
name: wandering
title: A thread that changes nodes
question: Is it seen?
workload: pages:wanders
environment: host
parameters: {seconds: 0.4}
matrix: {binding: [none, node]}
measure: {iterations: 14, timeout_s: 120}
baseline: {binding: node}
"""

OFFLINE = """\
schema: 1
name: offline
title: CPUs that are offline
question: Are they left alone?
workload: pages:setup
environment: host
parameters: {told: /suite/offline/told.jsonl}
matrix:
  binding: [physical-cores, node, {cpus: "2,3"}]
measure: {iterations: 3, timeout_s: 120, duplicates: each}
"""


LIMITED = """\
schema: 1
name: limited
title: Limited
question: Does the quota hold?
workload: pages:counts
environment: host
matrix: {cpu_quota: [0.5, 1.5], binding: [node]}
threads: quota
measure: {iterations: 20, timeout_s: 120, duplicates: each}
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


# What the machine does, one after another; the tuning last, for it changes the kernel's settings.
COMMANDS = """\
set -e
sh /files/quotas.sh > /suite/quotas.jsonl
python3.11 /files/runs.py
cd /suite
python3.11 /files/inspecting.py > inspected.json
python3.11 /files/tuning.py > tuning.json
"""


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with all that the machine has recorded."""
    folder = tmp_path_factory.mktemp("machine")
    for name, scenarios in (
        ("placement", {"pages": SCENARIO, "wandering": WANDERING}),
        ("offline", {"offline": OFFLINE}),
        ("limited", {"limited": LIMITED}),
        ("boxed", {"limited": LIMITED}),
    ):
        (folder / name).mkdir()
        shutil.copy(HERE / "suite" / "pages.py", folder / name)
        for scenario, text in scenarios.items():
            (folder / name / f"{scenario}.yaml").write_text(text)
    command = (
        *(str(HERE / "numa-vm"), "run", "--mem", "1024", "--timeout", "1500"),
        *("--share", f"{SOURCE}:/src", "--share", f"{sysconfig.get_path('purelib')}:/site"),
        *("--share", f"{HERE / 'suite'}:/files", "--share", f"{folder}:/suite:rw"),
        *("--env", "PYTHONPATH=/src:/site", "--env", "HOME=/tmp"),
        *("--", "sh", "-c", COMMANDS),
    )
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return folder


def records_of(suite: Path) -> Records:
    (file,) = jsonl.files(suite / "reports" / "records")
    seen = [json.loads(line) for line in (suite / "told.jsonl").read_text().splitlines()]
    stored = jsonl.read(file)
    return Records(run=stored.run, launches=stored.launches, seen=tuple(seen))


@pytest.fixture(scope="module")
def told(machine: Path) -> Records:
    return records_of(machine / "placement")


@pytest.fixture(scope="module")
def offline_records(machine: Path) -> Records:
    return records_of(machine / "offline")


@pytest.fixture(scope="module")
def tuning(machine: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((machine / "tuning.json").read_text())
    return document


def test_every_launch_is_verified_or_skipped_with_a_reason(told: Records) -> None:
    # A launch that others disturbed is launched again: the host of the emulated machine is shared.
    others = [
        (launch.cell, launch.status, launch.reason)
        for launch in told.launches
        if launch.status not in {"ok", "skipped"} and not is_refused(launch)
    ]

    assert others == []
    counted = {launch.cell.key for launch in told.launches if launch.status in {"ok", "skipped"}}
    assert counted == {launch.cell.key for launch in told.launches}
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


def test_a_thread_that_migrates_between_nodes_is_diagnosed(told: Records) -> None:
    assert told.findings("wandering")["threads-migrate"] == ["binding=none"]
    seen = moves(wandering(told), told.run.host.topology)
    assert seen is not None
    assert seen.across_nodes >= 10


def test_memory_by_node_is_sampled_over_time(told: Records) -> None:
    host = wandering(told).host
    assert host is not None
    looked = [window for window in host.windows if window.node_bytes]
    assert 1 <= len(looked) <= host.duration_ms / 10_000
    assert set(looked[0].node_bytes) <= {0, 1}


def wandering(told: Records) -> Launch:
    """The launch that is free to wander."""
    (found,) = (
        launch
        for launch in told.launches
        if (launch.cell.scenario, launch.cell.key) == ("wandering", "binding=none")
        and not is_refused(launch)
    )
    return found


def test_offline_cpus_are_neither_planned_nor_used(offline_records: Records) -> None:
    topology = offline_records.run.host.topology
    assert set(topology.offline) == {3, 6}
    placed = {
        launch.cell.key: launch.placement.slots[0].cpus
        for launch in offline_records.launches
        if launch.placement is not None and launch.status == "ok"
    }
    assert placed == {"binding=physical-cores": (0, 2, 4, 7), "binding=node": (0, 1, 2)}
    for launch in offline_records.launches:
        for worker in launch.workers:
            assert {one for thread in worker.threads for one in thread.allowed} == {
                placed[launch.cell.key]
            }


def test_a_cell_on_an_offline_cpu_is_skipped_with_the_cpu(offline_records: Records) -> None:
    (skipped,) = [launch for launch in offline_records.launches if launch.status == "skipped"]

    assert skipped.cell.key == "binding=cpus:2-3"
    assert "3" in str(skipped.reason)


# What the guest's kernel has of what was spoilt.
SPOILT = {"THP", "THP defrag", "KSM", "NUMA balancing", "ASLR", "autogroup"}


def limited_launches(folder: Path) -> list[Launch]:
    (file,) = jsonl.files(folder / "reports" / "records")
    return [one for one in jsonl.read(file).launches if not is_refused(one)]


def test_a_quota_of_cgroup_v2_limits_a_launch_and_is_proven(machine: Path) -> None:
    launches = limited_launches(machine / "limited")

    assert {one.cell.cpu_quota for one in launches} == {0.5, 1.5}
    for launch in launches:
        assert launch.status == "ok", launch.reason
        assert launch.placement is not None
        assert launch.placement.threads == 1
        assert launch.quota is not None
        assert launch.quota.cpus == launch.cell.cpu_quota
        assert launch.quota.period_us == 100_000
        throttled, periods = launch.quota.throttled_periods, launch.quota.periods
        assert throttled is not None
        assert periods is not None
        assert throttled <= periods
        # One thread computes all the time: half a CPU stops it in most periods. Imports have more
        # threads, and a CPU and a half may stop those once.
        assert (throttled > periods / 2) == (launch.cell.cpu_quota == 0.5)
    assert (machine / "limited" / "left.txt").read_text() == ""


@pytest.mark.parametrize(
    ("service", "rule", "evidence"),
    [
        ("two workers on siblings", "smt-siblings-shared", "2 threads on CPUs 0-1"),
        ("six workers on one node", "workers-overlap", "workers overlap"),
        ("memory on the other node", "memory-remote", "memory"),
        ("two workers on cores", None, ""),
        ("memory on its node", None, ""),
    ],
)
def test_a_service_is_told_where_its_threads_and_its_memory_are(
    machine: Path, service: str, rule: str | None, evidence: str
) -> None:
    document = json.loads((machine / "inspected.json").read_text())[service]

    # Emulated CPUs are threads of a smaller host, which may have other work.
    found = {one["rule"]: one for one in document["findings"]}
    assert set(found) - {"foreign-load", "steal"} == ({rule} if rule else set())
    if rule:
        assert evidence in " ".join(found[rule]["evidence"])


# Where a process may be in cgroup v2, and below which cgroup its launch must be.
SET = {
    "root": "/",
    "root-all": "/",
    "leaf": "/leaf",
    "nested": "/api/0a1b",
    "nested-deep": "/api/x/y/z",
    "nested-memory": "/pm/x",
    "empty-child": "/empty",
    "threaded": "/th/t1",
    "own-limit": "/lm",
    "together": "/api/0a1c",
    # The kernel refuses the controller in the process's own cgroup.
    "busy-child": "/",
    "busy-parent": "/",
    "namespace": "/",
    "own-mount": "/ns/5",
    "delegated": "/dg",
    "delegated-nested": "/dg2/s",
    "delegated-with": "/dg3/s",
}
# And where none can be set: the file, and the kernel's error.
REFUSED = {
    "busy-child-limit": ("/sys/fs/cgroup/lb/cgroup.subtree_control", "EBUSY"),
    "old-mount": ("/proc/self/mountinfo", ""),
    "old-mount-quota": ("/proc/self/mountinfo", ""),
    "read-only": ("/sys/fs/cgroup/cgroup.subtree_control", "EROFS"),
    "namespace-without": ("/sys/fs/cgroup/cgroup.controllers", ""),
    "out-of-tree": ("/proc/self/mountinfo", ""),
    "no-mount": ("/proc/self/mountinfo", ""),
    "user-root": ("/sys/fs/cgroup", "EACCES"),
    "user-leaf": ("/sys/fs/cgroup/leaf/cgroup.subtree_control", "EACCES"),
    "rootless": ("/proc/self/mountinfo", ""),
}


@pytest.fixture(scope="module")
def situations(machine: Path) -> dict[str, dict[str, Any]]:
    lines = map(json.loads, (machine / "quotas.jsonl").read_text().splitlines())
    return {line["name"]: line for line in lines}


def test_every_situation_was_tried_and_left_as_it_was(
    situations: dict[str, dict[str, Any]],
) -> None:
    assert set(situations) == {*SET, *REFUSED, "killed"}
    assert [name for name, seen in situations.items() if not seen["is_restored"]] == []


@pytest.mark.parametrize(("name", "parent"), SET.items())
def test_a_quota_is_set_below_the_process_s_own_limits(
    situations: dict[str, dict[str, Any]], name: str, parent: str
) -> None:
    seen = situations[name]

    assert Path(seen["group"]).parent == Path(parent)
    assert seen["max"] == "50000 100000"
    assert seen["throttled"] > 0


@pytest.mark.parametrize(("name", "file", "error"), [(k, *v) for k, v in REFUSED.items()])
def test_where_none_can_be_set_the_file_and_the_error_are_named(
    situations: dict[str, dict[str, Any]], name: str, file: str, error: str
) -> None:
    seen = situations[name]

    assert seen["tool"] is None
    assert "group" not in seen
    assert seen["reason"].startswith(f"{file}: ")
    assert error in seen["reason"]
    assert seen["reason"] in seen["error"]
    assert seen["fix"]


@pytest.mark.parametrize("name", ["old-mount", "old-mount-quota", "out-of-tree", "no-mount"])
def test_a_cgroup_that_is_not_shown_has_an_unknown_quota(
    situations: dict[str, dict[str, Any]], name: str
) -> None:
    assert (situations[name]["known"], bool(situations[name]["unknown"])) == ([], True)


def test_what_a_killed_process_left_is_removed(situations: dict[str, dict[str, Any]]) -> None:
    seen = situations["killed"]

    assert len(seen["before"]["left"]) == 1
    assert "/sys/fs/cgroup/api" in seen["before"]["enabled"]
    assert seen["after"]["left"] == []
    assert "/sys/fs/cgroup/api" not in seen["after"]["enabled"]


def test_a_container_s_quota_of_cgroup_v2_limits_what_is_planned(machine: Path) -> None:
    folder = machine / "boxed"

    assert "CPU quota of 1 CPU" in (folder / "topology.txt").read_text()
    assert "`cpu_quota: 1.5` is more than this host allows" in (folder / "plan.txt").read_text()
    statuses = {(one.cell.cpu_quota, one.status) for one in limited_launches(folder)}
    # A cgroup with processes has a threaded child for the launch's own quota.
    assert statuses == {(0.5, "ok"), (1.5, "skipped")}


def test_wrong_settings_are_found(tuning: dict[str, Any]) -> None:
    warned = {check for check, one in tuning["spoilt"].items() if one["state"] == "warning"}

    assert {"SMT", *SPOILT} <= warned
    # It has no swap, and an emulated machine has no clock to govern.
    assert tuning["spoilt"]["swappiness"]["state"] == "ok"
    assert tuning["spoilt"]["governor"]["state"] == "unavailable"


def test_tuning_fixes_the_reported_settings(tuning: dict[str, Any]) -> None:
    assert [outcome["fault"] for outcome in tuning["outcomes"]] == [None] * len(tuning["wanted"])
    assert {tuning["tuned"][check]["state"] for check in SPOILT} == {"ok"}


def test_settings_are_restored_after_tuning_is_killed_at_any_moment(tuning: dict[str, Any]) -> None:
    kills = tuning["kills"]

    # Five steps a setting, each a kill of its own, and the last was let through.
    assert len(kills) == 5 * len(tuning["wanted"]) + 1
    assert all(kill["restored"] for kill in kills)
    assert {kill["changed"] for kill in kills} == set(range(len(tuning["wanted"]) + 1))
    assert tuning["restored"]
