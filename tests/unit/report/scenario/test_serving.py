"""Servers: throughput, latencies and worker placement of each configuration."""

import csv
import io
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from corebound.analysis.launch_metrics import metric_of
from corebound.analysis.scenario_result import CellResult, ScenarioResult, analyse_scenario
from corebound.analysis.selection import latest_results
from corebound.analysis.server_workers import cpu_use, overlap, worker_activity
from corebound.launch import perf
from corebound.launch.perf import Count, CounterSupport, collect_counters, total_counts
from corebound.machine.topology import CpuId, Topology
from corebound.planning.models import UNKNOWN
from corebound.present.run import run_sections
from corebound.present.sections import Table
from corebound.records.launch_record import Launch, Served, Worker
from corebound.records.telemetry import Counters
from corebound.report.charts.lines import CurveChart
from corebound.report.downloads import cells_csv, cells_json
from corebound.report.scenario.serving import serving, throughput_latency
from corebound.scenario.matrix import expand
from corebound.scenario.traffic import MlPerf, Shape, Streamed
from corebound.stats import latency
from corebound.stats.launch_summary import summarise_launch
from corebound.stats.server_summary import (
    ServedCell,
    TypicalValue,
    judged_value_ns,
    summarise_served,
)
from corebound.workflow.execute import RunResult
from support.build import (
    a_cell,
    a_host,
    a_launch,
    a_machine,
    a_placement,
    a_run,
    a_scenario,
    a_served,
    a_streaming,
    a_thread,
    a_traffic,
    a_worker,
    an_answered,
)
from support.markup import parse_html
from support.report_sample import a_serving_sample, page_of, rendered

SCENARIO = a_scenario(
    workload="image-serving",
    environment="torchserve",
    matrix={"threads": ["default", "cores-per-worker"]},
    parameters={"model": "resnet18", "image": 224, "concurrency": 4},
    baseline={"threads": "default"},
)


def launches_of(place: int, *served: Served) -> tuple[Launch, ...]:
    cell = expand(SCENARIO, "s.yaml")[place]
    worker = replace(a_worker(threads=(a_thread(),)), wall_ns=(), cpu_ns=())
    return tuple(
        replace(a_launch(cell=cell, block=block, position=place, workers=(worker,)), served=one)
        for block, one in enumerate(served)
    )


def studied(*launches: Launch) -> ScenarioResult:
    run = a_run(scenarios=(SCENARIO,))
    return analyse_scenario(run, run.scenarios[0], launches)


def lasting(seconds: float) -> Served:
    """A hundred requests answered in so many seconds."""
    return a_served(answered=an_answered(duration_ns=round(seconds * 1e9)))


def test_a_closed_loop_is_compared_by_time_per_successful_request() -> None:
    # 100 answers in half a second.
    assert judged_value_ns(a_served()) == 5_000_000


@pytest.mark.parametrize("shape", ["constant", "poisson", "server", "multi-stream"])
def test_a_fixed_rate_is_compared_by_p99(shape: Shape) -> None:
    answered = an_answered(latencies_ns=(10_000_000,) * 98 + (70_000_000,) * 2)

    # An HDR histogram of three digits: at most 0.1 % more.
    assert judged_value_ns(a_served(answered=answered, shape=shape)) == pytest.approx(
        70e6, rel=0.001
    )


def test_errors_are_counted_and_excluded_from_latencies() -> None:
    answered = an_answered(latencies_ns=(10_000_000,) * 90, errors={"status 503": 10})

    served = summarise_served(launches_of(0, a_served(answered=answered)))

    assert served is not None
    assert (served.errors, served.requests) == (10, 100)
    assert served.p99_ns.value == pytest.approx(10e6, rel=0.001)


def test_throughput_has_an_interval_over_launches_and_the_tail_is_of_all_requests() -> None:
    served = summarise_served(launches_of(0, lasting(0.5), lasting(0.4)))

    assert served is not None
    # Geometric mean of 200 and 250 a second.
    assert served.per_s.value == pytest.approx(50_000**0.5)
    assert served.per_s.interval is not None
    assert served.curve[-1].share == 1


def streaming(tokens: int, first_ms: int, each_ms: int, good: int) -> Served:
    """A hundred streams in half a second, all with these times."""
    streamed = Streamed(
        tokens=tokens,
        first_token=latency.encode((first_ms * 1_000_000,) * 100),
        per_token=latency.encode((each_ms * 1_000_000,) * 100),
        good=good,
    )
    served = a_served(answered=an_answered(streamed=streamed))
    bounds = a_streaming(first_token_bound_ms=50.0)
    return replace(served, traffic=a_traffic(streaming=bounds))


def test_streams_are_summarised_by_their_tokens() -> None:
    launches = launches_of(0, streaming(800, 40, 2, good=100), streaming(800, 90, 2, good=0))

    served = summarise_served(launches)

    assert served is not None
    assert served.streamed is not None
    assert served.streamed.tokens_per_s.value == pytest.approx(1600)
    # Geometric mean of 40 and 90 ms, within the 0.1 % of a histogram's digits.
    assert served.streamed.first_token_p50_ns.value == pytest.approx(60e6, rel=0.001)
    assert served.streamed.per_token_p99_ns is not None
    assert served.streamed.per_token_p99_ns.value == pytest.approx(2e6, rel=0.001)
    # All of 200 answers per second, then none.
    assert (served.streamed.good_per_s, served.streamed.good_share) == (100.0, 0.5)


def test_a_page_and_its_downloads_have_the_tokens_of_streams() -> None:
    result = studied(*launches_of(0, streaming(800, 40, 2, good=100)))

    section = serving(result)
    document = json.loads(cells_json(result, ()))
    (line, *_) = csv.DictReader(io.StringIO(cells_csv(result)))

    assert section is not None
    assert section.rows[0].served.streamed is not None
    assert document["cells"][0]["serving"]["streamed"]["tokens_per_s"] == pytest.approx(1600)
    assert float(line["tokens_per_s"]) == pytest.approx(1600)
    assert float(line["good_share"]) == 1.0


def of_latencies(number: int) -> Served:
    """So many requests answered within 10 ms, but for one of 900 ms."""
    latencies_ns = (10_000_000,) * (number - 1) + (900_000_000,)
    return a_served(answered=an_answered(latencies_ns=latencies_ns))


def test_fewer_than_1000_requests_have_no_p99_9() -> None:
    few = launches_of(0, of_latencies(499), of_latencies(500))
    enough = launches_of(0, of_latencies(500), of_latencies(500))

    assert (served := summarise_served(few)) is not None
    assert served.p99_9_ns is None
    assert (served := summarise_served(enough)) is not None
    assert served.p99_9_ns is not None


def test_launches_of_fewer_than_1000_requests_do_not_bound_a_p99_9() -> None:
    half, whole = of_latencies(600), of_latencies(1_000)

    section = serving(studied(*launches_of(0, half, half), *launches_of(1, half, whole)))

    assert section is not None
    assert [row.p99_9_range_ns for row in section.rows] == [None, None]


def test_the_axis_contains_every_drawn_latency() -> None:
    section = serving(studied(*launches_of(0, of_latencies(150), of_latencies(150))))

    assert section is not None
    ((_, chart),) = section.panels
    highest = max(point.y for curve in chart.curves for point in curve.points)
    assert chart.up.low < highest < chart.up.high


def test_a_launch_without_a_successful_request_has_no_value() -> None:
    with pytest.raises(ValueError, match="has no value"):
        judged_value_ns(a_served(answered=an_answered(latencies_ns=(), errors={"refused": 100})))


def test_a_servers_launch_is_summarised_like_any_other() -> None:
    (launch,) = launches_of(0, a_served())

    summary = summarise_launch(launch, "auto")

    assert summary.median_ns == 5_000_000
    # 400 ms of CPU time for 100 requests.
    assert summary.cpu_median_ns == 4_000_000


def test_server_configurations_are_compared_by_their_metric() -> None:
    launches = (
        *launches_of(0, lasting(1.0), lasting(1.1), lasting(0.9)),
        *launches_of(1, lasting(0.5), lasting(0.55), lasting(0.45)),
    )

    result = studied(*launches)

    assert result.ranked[0].comparison.speedup_ratio == pytest.approx(2)
    assert metric_of(result.cells).heading == "Time per request"


def test_the_notes_contain_the_mlperf_verdict() -> None:
    verdict = MlPerf(queries=64, percentile=0.9, needed=64, satisfied=True, latency_ns=9_000_000)
    answered = an_answered(mlperf=verdict)

    section = serving(studied(*launches_of(0, a_served(answered=answered, shape="single-stream"))))

    assert section is not None
    assert "1 of 1 launch valid; 90 % of queries within 9.00 ms" in section.notes[1]


def test_a_scenario_without_servers_has_no_serving_section() -> None:
    cell = expand(a_scenario(), "a.yaml")[0]
    run = a_run(scenarios=(a_scenario(),))

    assert serving(analyse_scenario(run, run.scenarios[0], [a_launch(cell=cell)])) is None


def test_a_page_names_the_parameters_that_the_profile_left() -> None:
    scenario = SCENARIO.model_validate(
        {**SCENARIO.document(), "profiles": {"quick": {"parameters": {"concurrency": 2}}}}
    )
    run = replace(a_run(scenarios=(scenario,)), profile="quick")

    page = page_of(analyse_scenario(run, run.scenarios[0], ()))

    assert "concurrency 2" in page.hero.context


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


def result_of_workers(*launches: Launch, topology: Topology | None = None) -> ScenarioResult:
    host = a_machine() if topology is None else a_machine(topology=topology)
    run = replace(a_run(scenarios=(SCENARIO,)), host=host)
    return analyse_scenario(run, run.scenarios[0], launches)


def test_cpu_time_is_divided_among_the_cpus_a_worker_was_sampled_on() -> None:
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


def count(*written: str, reason: str | None = None) -> tuple[Counters, tuple[Counters, ...]]:
    """Of the whole launch, and of each worker; each has one thread that ran 5 ns."""
    threads = [(a_thread(run_ns=5),)] * 2
    each = [perf.parse(text) for text in written]
    found = collect_counters(CounterSupport(), each, threads, None, reason)
    return found.whole, found.workers


def test_counters_cover_the_servers_process_tree_and_each_worker() -> None:
    beside = ONE.replace("100,,cpu_core/topdown-mem", "300,,cpu_core/topdown-mem")

    whole, workers = count(ONE, TWO, beside)

    assert [one.slots["core_bound"] for one in workers] == pytest.approx([0.2, 0.4])
    # (200 + 1200 + 0) of 1000 + 3000 + 1000 slots.
    assert whole.slots["core_bound"] == pytest.approx(0.28)
    assert whole.remote_loads == 7000 + 1000 + 7000
    assert whole.running_share == 0.5


def test_a_counter_missing_for_one_worker_is_unavailable_with_its_reason() -> None:
    lost = TWO.replace("1000,,node", "<not counted>,,node")

    whole, workers = count(ONE, lost)

    assert whole.remote_loads is None
    assert whole.unavailable == {"node-load-misses": "not counted"}
    assert workers[0].remote_loads == 7000


def test_if_perf_fails_kernel_counts_and_its_message_remain() -> None:
    whole, workers = count(ONE, "", reason="perf: not permitted")

    assert (whole.source, whole.task_clock_ns) == ("proc", 10)
    assert whole.unavailable == {"hardware counters": "perf: not permitted"}
    assert workers == ()


def test_an_event_counted_by_some_workers_only_is_not_summed() -> None:
    found = total_counts([{"cycles": Count(value=1.0, running_share=1.0)}, {}])

    assert found["cycles"].value is None


COUNTED = Counters(
    source="perf", remote_loads=9_000, slots={"core_bound": 0.25, "memory_bound": 0.125}
)
NOT_COUNTED = Counters(
    source="proc", unavailable={"hardware counters": "not supported by this host"}
)


def test_the_page_shows_core_bound_shares_of_the_tree_and_of_workers() -> None:
    workers = [
        a_worker_on(slot, (slot, 0, 1000), counters=replace(COUNTED, slots={"core_bound": share}))
        for slot, share in enumerate((0.2, 0.3))
    ]
    known = result_of_workers(a_launch_of(*workers, counters=COUNTED))

    section = serving(known)

    assert section is not None
    assert section.rows[0].workers.core_bound == pytest.approx(0.25)
    assert not any("core bound" in note for note in section.notes)
    assert _figures(known)[:4] == [
        "CPU 0 100 %, CPU 1 100 % used by workers",
        "0 % of busy cores' time with two workers or more",
        "25 % of slots core bound (2 workers: 20 %, 30 %)",
        "12 % of slots memory bound",
    ]


def _figures(result: ScenarioResult) -> list[str]:
    """The values beside the first strip of the page, as read."""
    page = page_of(result)
    figures = next(
        element
        for element in parse_html(rendered("scenario", page)).all("ul")
        if element.attributes.get("class") == "figures"
    )
    return [" ".join(item.text.split()) for item in figures.all("li")]


def test_remote_memory_is_shown_on_hosts_with_several_nodes() -> None:
    worker = replace(a_worker_on(0, (0, 0, 1000)), node_bytes={0: 300, 1: 100})
    known = result_of_workers(a_launch_of(worker), topology=a_host(nodes=2, cores_per_node=2))

    (cell,) = known.cells

    assert worker_activity(cell, known.run.host).remote_memory == pytest.approx(0.25)


def test_the_exports_contain_the_same_worker_values() -> None:
    launch = a_launch_of(a_worker_on(0, (0, 0, 500)), counters=NOT_COUNTED)
    known = result_of_workers(launch)
    told = RunResult(run=known.run, file=Path("r.jsonl"), launches=(launch,), ending="complete")

    (exported,) = json.loads(cells_json(known, ()))["cells"]
    (printed,) = told.document["cells"]

    assert exported["serving"] == printed["serving"]
    # A hundred good answers in a second.
    assert exported["serving"]["requests_per_s"] == pytest.approx(100)
    assert (exported["serving"]["requests"], exported["serving"]["errors"]) == (100, 0)
    workers = exported["serving"]["workers"]
    assert workers["cpu_use"] == {"0": 1.0}
    assert workers["core_bound_share"] is None
    assert workers["unavailable"]["core bound and memory bound"] == "not supported by this host"


Known = list[tuple[CellResult, ServedCell]]


def known() -> Known:
    """The sample's four set-ups."""
    (result,) = latest_results([a_serving_sample()])
    return [(cell, served) for cell in result.cells if (served := summarise_served(cell.launches))]


def driven(rates: dict[str, float]) -> Known:
    """One set-up under several loads: what was asked, and what came out."""
    cell, served = known()[0]
    return [
        (
            replace(cell, cell=a_cell(axes=(("parameters.rate", name),))),
            replace(served, per_s=TypicalValue(value=got, interval=None)),
        )
        for name, got in rates.items()
    ]


def drawn(of: Known) -> CurveChart:
    found = throughput_latency(of)
    assert found is not None
    return found


def test_configurations_that_differ_only_in_load_form_one_line() -> None:
    found = drawn(driven({"20": 18.0, "5": 5.0, "10": 10.0}))

    (curve,) = found.curves
    assert [point.x for point in curve.points] == [5.0, 10.0, 18.0]


def test_a_single_point_makes_no_chart() -> None:
    assert throughput_latency(known()[:1]) is None


@pytest.mark.parametrize(("most", "scale"), [(20.0, "linear"), (200.0, "log")])
def test_throughputs_far_apart_are_on_a_logarithmic_axis(most: float, scale: str) -> None:
    assert drawn(driven({"5": 5.0, "9": most})).across.scale == scale


def test_a_service_that_runs_already_has_a_page_that_says_its_placement_is_unknown() -> None:
    scenario = a_scenario(
        workload={"requests": {"url": "http://10.0.0.5/"}}, parameters={"concurrency": 4}, matrix={}
    )
    (cell,) = expand(scenario, "s.yaml")
    placement = replace(a_placement(), notes=(UNKNOWN,))
    launches = [
        replace(
            a_launch(cell=cell, block=block, placement=placement, workers=()), served=lasting(1)
        )
        for block in range(2)
    ]
    run = a_run(scenarios=(scenario,))
    result = analyse_scenario(run, run.scenarios[0], launches)

    page = page_of(result)

    assert UNKNOWN in rendered("scenario", page)
    (table, *_) = run_sections([result], launches, ())
    assert isinstance(table, Table)
    assert UNKNOWN in table.notes
