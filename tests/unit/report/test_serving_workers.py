"""What is seen of a server's workers: where they ran, together or not, and what perf counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.analysis.scenario_result import ScenarioResult, study
from corebound.analysis.server_workers import cpu_use, overlap, workers_seen
from corebound.cli.commands.run import run_document
from corebound.launch import perf
from corebound.launch.perf import (
    Count,
    CounterSupport,
    collect_counters,
    supported_counters,
    total_counts,
)
from corebound.machine.topology import CpuId, Topology
from corebound.records.launch_record import Launch, Worker
from corebound.records.telemetry import Counters
from corebound.report.downloads import cells_json
from corebound.report.scenario.serving import serving
from corebound.report.scenario.threads import thread_activity
from corebound.scenario.matrix import expand
from corebound.workflow.execute import RunResult
from support.build import (
    a_host,
    a_launch,
    a_machine,
    a_placement,
    a_run,
    a_scenario,
    a_served,
    a_thread,
    a_worker,
    an_answered,
)
from support.paths import DATA

RECORDED = DATA / "perf" / "software-6.1.csv"
SCENARIO = a_scenario(
    workload="image-serving",
    environment="torchserve",
    matrix={"threads": ["default", "cores-per-worker"]},
    parameters={"model": "resnet18", "image": 224, "concurrency": 4},
    baseline={"threads": "default"},
)
TWO_CORES = {CpuId(0): 0, CpuId(1): 1}
# perf's lines for two workers, as perf-stat(1) gives them: 1,000 slots and 3,000.
ONE = """\
600,,cpu_core/topdown-retiring/,1000,100.00,,
50,,cpu_core/topdown-bad-spec/,1000,100.00,,
50,,cpu_core/topdown-fe-bound/,1000,100.00,,
300,,cpu_core/topdown-be-bound/,1000,100.00,,
100,,cpu_core/topdown-mem-bound/,1000,100.00,,
7000,,node-load-misses,1000,100.00,,
"""
TWO = """\
900,,cpu_core/topdown-retiring/,1000,50.00,,
150,,cpu_core/topdown-bad-spec/,1000,50.00,,
150,,cpu_core/topdown-fe-bound/,1000,50.00,,
1800,,cpu_core/topdown-be-bound/,1000,50.00,,
600,,cpu_core/topdown-mem-bound/,1000,50.00,,
1000,,node-load-misses,1000,50.00,,
"""


def a_worker_on(
    slot: int, *stays: tuple[int, int, int], run_ns: int = 10**9, counters: Counters | None = None
) -> Worker:
    """A worker without samples, as a server's are; stays are (cpu, from_ms, to_ms)."""
    worker = a_worker(slot=slot, threads=(a_thread(tid=100 + slot, stays=stays, run_ns=run_ns),))
    return replace(worker, wall_ns=(), cpu_ns=(), counters=counters)


def a_launch_of(
    *workers: Worker, place: int = 0, block: int = 0, counters: Counters | None = None
) -> Launch:
    """A launch of a second; without counters, as of a corebound that had none."""
    launch = a_launch(
        cell=expand(SCENARIO, "s.yaml")[place],
        block=block,
        position=place,
        workers=workers,
        placement=replace(
            a_placement(cpus=(0, 1), bound=False), slots=a_placement().slots * len(workers)
        ),
    )
    answered = an_answered(duration_ns=10**9)
    return replace(launch, served=a_served(answered=answered), counters=counters)


def studied(*launches: Launch, topology: Topology | None = None) -> ScenarioResult:
    host = a_machine() if topology is None else a_machine(topology=topology)
    run = replace(a_run(scenarios=(SCENARIO,)), host=host)
    return study(run, run.scenarios[0], launches)


def test_cpu_time_is_spread_over_the_cpus_that_a_worker_was_seen_on() -> None:
    # 800 ms of CPU time, seen 750 ms on CPU 0 and 250 ms on CPU 1; before 0 does not count.
    launch = a_launch_of(
        a_worker_on(0, (1, -500, 0), (0, 0, 750), (1, 750, 1000), run_ns=8 * 10**8)
    )

    assert cpu_use(launch) == {0: pytest.approx(0.6), 1: pytest.approx(0.2)}


def test_workers_overlap_where_they_share_a_core_at_the_same_time() -> None:
    # On CPU 0 for 400 ms together of the 1,000 ms that some worker was there; 1 has no other.
    launch = a_launch_of(a_worker_on(0, (0, 0, 700)), a_worker_on(1, (0, 300, 1000), (1, 0, 1000)))

    # 400 of 1000 + 1000 ms.
    assert overlap(launch, TWO_CORES) == pytest.approx(0.2)


def test_two_cpus_of_one_core_are_shared() -> None:
    launch = a_launch_of(a_worker_on(0, (0, 0, 1000)), a_worker_on(1, (1, 0, 1000)))

    assert overlap(launch, {CpuId(0): 0, CpuId(1): 0}) == 1
    assert overlap(launch, TWO_CORES) == 0


def test_threads_of_one_worker_do_not_overlap_with_themselves() -> None:
    worker = a_worker_on(0, (0, 0, 1000))
    twice = replace(worker, threads=(*worker.threads, a_thread(tid=7, stays=((0, 0, 1000),))))

    assert overlap(a_launch_of(twice), TWO_CORES) == 0


class Written:
    """Stands for a `perf stat` that has written this."""

    def __init__(self, text: str, reason: str | None = None) -> None:
        self._text = text
        self.reason = reason

    def close(self) -> dict[str, Count]:
        return perf.parse(self._text)


def count(
    *perfs: Written, offer: CounterSupport | None = None, workers: int = 2
) -> tuple[Counters, tuple[Counters, ...]]:
    """Of the whole launch, and of each worker; each has one thread that ran 5 ns."""
    found = collect_counters(
        offer or CounterSupport(), perfs, [(a_thread(run_ns=5),)] * workers, None
    )
    return found.whole, found.workers


def test_a_servers_tree_is_counted_whole_and_each_worker_apart() -> None:
    beside = ONE.replace("100,,cpu_core/topdown-mem", "300,,cpu_core/topdown-mem")

    whole, workers = count(Written(ONE), Written(TWO), Written(beside))

    assert [one.slots["core_bound"] for one in workers] == pytest.approx([0.2, 0.4])
    # (200 + 1200 + 0) of 1000 + 3000 + 1000 slots.
    assert whole.slots["core_bound"] == pytest.approx(0.28)
    assert whole.remote_loads == 7000 + 1000 + 7000
    assert whole.running_share == 0.5


def test_what_one_worker_lacks_the_whole_lacks_with_its_reason() -> None:
    lost = TWO.replace("1000,,node", "<not counted>,,node")

    whole, workers = count(Written(ONE), Written(lost))

    assert whole.remote_loads is None
    assert whole.unavailable == {"node-load-misses": "not counted"}
    assert workers[0].remote_loads == 7000


def test_a_perf_that_gave_up_leaves_what_the_kernel_counts_and_its_words() -> None:
    whole, workers = count(Written(ONE), Written("", "perf: not permitted"))

    assert (whole.source, whole.task_clock_ns) == ("proc", 10)
    assert whole.unavailable == {"hardware counters": "perf: not permitted"}
    assert workers == ()


def test_on_a_host_without_counters_they_are_unavailable_with_the_reason() -> None:
    # What perf recorded on such a host.
    offer = supported_counters(["cycles"], perf.parse(RECORDED.read_text(encoding="utf-8")))

    whole, workers = count(offer=offer)

    assert whole.unavailable == {"hardware counters": "not supported by this host"}
    assert (whole.slots, workers) == ({}, ())


def test_an_event_that_only_some_counted_is_not_a_sum_of_those() -> None:
    found = total_counts([{"cycles": Count(value=1.0, running_share=1.0)}, {}])

    assert found["cycles"].value is None


COUNTED = Counters(
    source="perf", remote_loads=9_000, slots={"core_bound": 0.25, "memory_bound": 0.125}
)
NOT_COUNTED = Counters(
    source="proc", unavailable={"hardware counters": "not supported by this host"}
)


def test_where_the_host_counts_the_page_shows_core_bound_shares_of_tree_and_workers() -> None:
    workers = [
        a_worker_on(slot, (slot, 0, 1000), counters=replace(COUNTED, slots={"core_bound": share}))
        for slot, share in enumerate((0.2, 0.3))
    ]
    known = studied(a_launch_of(*workers, counters=COUNTED))

    section, strips = serving(known), thread_activity(known)

    assert section is not None
    assert section.rows[0].workers.core_bound == pytest.approx(0.25)
    assert not any("core bound" in note for note in section.notes)
    assert strips is not None
    said = {figure.says: figure.value for figure in strips.panels[0].values}
    assert said["of slots core bound (2 workers: 20 %, 30 %)"] == "25 %"
    assert said["of slots memory bound"] == "12 %"


def test_where_it_does_not_the_page_says_unavailable_and_why() -> None:
    section = serving(studied(a_launch_of(a_worker_on(0, (0, 0, 1000)), counters=NOT_COUNTED)))

    assert section is not None
    assert section.rows[0].workers.core_bound is None
    assert "core bound" not in section.rows[0].workers.spans
    assert (
        "core bound and memory bound (not supported by this host); remote loads"
        " (not supported by this host)" in section.notes[-1]
    )


def test_what_the_section_says_to_be_unavailable_its_strips_do_not_say_again() -> None:
    found = thread_activity(
        studied(a_launch_of(a_worker_on(0, (0, 0, 1000)), counters=NOT_COUNTED))
    )

    assert found is not None
    assert [figure.says for figure in found.panels[0].values if not figure.known] == []


def test_memory_on_another_node_is_shown_where_there_is_one() -> None:
    worker = replace(a_worker_on(0, (0, 0, 1000)), node_bytes={0: 300, 1: 100})
    known = studied(a_launch_of(worker), topology=a_host(nodes=2, cores_per_node=2))

    (cell,) = known.cells

    assert workers_seen(cell, known.run.host).remote_memory == pytest.approx(0.25)


def test_every_set_up_has_a_strip_in_which_a_colour_is_a_worker() -> None:
    launches = [
        a_launch_of(
            *(a_worker_on(slot, (slot, 0, 1000)) for slot in range(2)), place=place, block=block
        )
        for place in range(2)
        for block in range(2)
    ]

    found = thread_activity(studied(*launches))

    assert found is not None
    assert found.key == ((0, "worker 0"), (1, "worker 1"))
    assert len(found.panels) == 2
    assert [track.name for track in found.panels[0].strip.tracks] == ["worker 0", "worker 1"]
    shown = [figure.value for figure in found.panels[0].values]
    assert shown[0] == "CPU 0 100 %, CPU 1 100 %"


def test_machines_are_told_the_same() -> None:
    launch = a_launch_of(a_worker_on(0, (0, 0, 500)), counters=NOT_COUNTED)
    known = studied(launch)
    told = RunResult(run=known.run, file=Path("r.jsonl"), launches=(launch,), ending="complete")

    (exported,) = json.loads(cells_json(known, ()))["cells"]
    (printed,) = run_document(told)["cells"]

    assert exported["serving"] == printed["serving"]
    # A hundred good answers in a second.
    assert exported["serving"]["requests_per_s"] == pytest.approx(100)
    assert (exported["serving"]["requests"], exported["serving"]["errors"]) == (100, 0)
    workers = exported["serving"]["workers"]
    assert workers["cpu_use"] == {"0": 1.0}
    assert workers["core_bound_share"] is None
    assert workers["unavailable"]["core bound and memory bound"] == "not supported by this host"
