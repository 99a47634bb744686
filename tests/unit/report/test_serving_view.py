"""What a page says of servers: each set-up's throughput, tail and cost, with their intervals."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corebound.analysis.launch_metrics import figure_of
from corebound.analysis.scenario_result import ScenarioResult, study
from corebound.records.launch_record import Launch, Served
from corebound.report.charts.lines import percentile_position
from corebound.report.scenario.page import scenario_page
from corebound.report.scenario.serving import serving
from corebound.scenario.matrix import expand
from corebound.scenario.traffic import MlPerf, Shape
from corebound.stats.launch_summary import summarise_launch
from corebound.stats.server_summary import figure_ns, summarise_served
from support.build import a_launch, a_run, a_scenario, a_served, a_thread, a_worker, an_answered

NOW = "2026-03-14T09:26:53+00:00"
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
        replace(
            a_launch(cell=cell, block=block, position=place, workers=(worker,)),
            served=one,
        )
        for block, one in enumerate(served)
    )


def studied(*launches: Launch) -> ScenarioResult:
    run = a_run(scenarios=(SCENARIO,))
    return study(run, run.scenarios[0], launches)


def lasting(seconds: float) -> Served:
    """A hundred requests answered in so many seconds."""
    return a_served(answered=an_answered(duration_ns=round(seconds * 1e9)))


def test_a_closed_loop_is_judged_by_the_time_for_each_good_answer() -> None:
    # 100 answers in half a second.
    assert figure_ns(a_served()) == 5_000_000


@pytest.mark.parametrize("shape", ["constant", "poisson", "server", "multi-stream"])
def test_requests_at_a_rate_are_judged_by_their_99th_percentile(shape: Shape) -> None:
    answered = an_answered(latencies_ns=(10_000_000,) * 98 + (70_000_000,) * 2)

    # An HDR histogram of three digits: at most 0.1 % more.
    assert figure_ns(a_served(answered=answered, shape=shape)) == pytest.approx(70e6, rel=0.001)


def test_errors_are_counted_and_enter_no_latency() -> None:
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


def test_a_page_shows_no_p99_9_of_fewer_than_1000_requests() -> None:
    few, enough = of_latencies(400), of_latencies(1_200)

    section = serving(studied(*launches_of(0, few, few), *launches_of(1, enough, enough)))

    assert section is not None
    few_requests, enough_requests = section.rows
    assert few_requests.served.p99_9_ns is None
    assert enough_requests.served.p99_9_ns is not None
    assert [row.p99_9_range_ns for row in section.rows] == [None, None]
    assert "from 1,000 on" in section.lead


def test_launches_of_fewer_than_1000_requests_do_not_bound_a_p99_9() -> None:
    half, whole = of_latencies(600), of_latencies(1_000)

    section = serving(studied(*launches_of(0, half, half), *launches_of(1, half, whole)))

    assert section is not None
    assert [row.p99_9_range_ns for row in section.rows] == [None, None]


def test_a_latency_that_is_drawn_is_on_the_axis() -> None:
    section = serving(studied(*launches_of(0, of_latencies(150), of_latencies(150))))

    assert section is not None
    (panel,) = section.panels
    highest = max(latency for curve in panel.curves for _, latency in curve.points)
    assert panel.axis.low < highest < panel.axis.high


def test_a_launch_without_a_good_answer_has_no_figure() -> None:
    with pytest.raises(ValueError, match="no figure"):
        figure_ns(a_served(answered=an_answered(latencies_ns=(), errors={"refused": 100})))


def test_a_servers_launch_is_summarised_like_any_other() -> None:
    (launch,) = launches_of(0, a_served())

    summary = summarise_launch(launch, "auto")

    assert summary.median_ns == 5_000_000
    # 400 ms of CPU time for 100 requests.
    assert summary.cpu_median_ns == 4_000_000


def test_set_ups_are_compared_by_what_they_are_judged_by() -> None:
    launches = (
        *launches_of(0, lasting(1.0), lasting(1.1), lasting(0.9)),
        *launches_of(1, lasting(0.5), lasting(0.55), lasting(0.45)),
    )

    result = studied(*launches)

    assert result.ranked[0].comparison.speedup_ratio == pytest.approx(2)
    assert figure_of(result.cells).heading == "Time a request"


def test_each_set_up_says_where_its_figures_lie_and_how_it_is_measured_again() -> None:
    quick, slow = ([lasting(seconds) for seconds in all_] for all_ in ((0.5, 0.6), (1.0, 1.2)))
    launches = (*launches_of(0, *slow), *launches_of(1, *quick))

    section = serving(studied(*launches))

    assert section is not None
    base, other = section.rows
    served = base.served
    for estimate in (served.per_s, served.cpu_ns, served.p50_ns, served.p99_ns):
        assert estimate.interval is not None
        assert estimate.interval.contains(estimate.value)
    assert base.command.line.count("--only") == 1
    assert other.command.line.count("--only") == 2


def test_the_page_shows_each_set_up_with_its_percentiles() -> None:
    launches = (*launches_of(0, lasting(1.0)), *launches_of(1, lasting(0.5)))

    section = serving(studied(*launches))

    assert section is not None
    assert [row.served.per_s.value for row in section.rows] == pytest.approx([100, 200])
    (panel,) = section.panels
    assert len(panel.curves) == len(panel.key) == 2
    assert [tick.text for tick in panel.along] == ["p50", "p90", "p99", "p99.9", "p99.99"]


def test_a_generator_that_shared_cpus_with_the_server_is_named() -> None:
    section = serving(studied(*launches_of(0, a_served(apart=False))))

    assert section is not None
    assert "had to share CPUs with the server; it used at most 2.0" in section.notes[0]


def test_what_mlperf_says_of_a_run_stands_beside_it() -> None:
    verdict = MlPerf(queries=64, percentile=0.9, needed=64, satisfied=True, latency_ns=9_000_000)
    answered = an_answered(mlperf=verdict)

    section = serving(studied(*launches_of(0, a_served(answered=answered, shape="single-stream"))))

    assert section is not None
    assert "1 of 1 launch valid; 90 % of queries within 9.00 ms" in section.notes[1]


def test_a_scenario_without_servers_has_no_such_section() -> None:
    cell = expand(a_scenario(), "a.yaml")[0]
    run = a_run(scenarios=(a_scenario(),))

    assert serving(study(run, run.scenarios[0], [a_launch(cell=cell)])) is None


def test_each_tenth_of_the_requests_left_over_takes_the_same_room() -> None:
    assert percentile_position(0.99) - percentile_position(0.9) == pytest.approx(
        percentile_position(0.999) - percentile_position(0.99)
    )
    assert percentile_position(1.0) == percentile_position(0.9999) == 1


def test_a_page_names_the_parameters_that_the_profile_left() -> None:
    scenario = SCENARIO.model_validate(
        {**SCENARIO.document(), "profiles": {"quick": {"parameters": {"concurrency": 2}}}}
    )
    run = replace(a_run(scenarios=(scenario,)), profile="quick")

    page = scenario_page(
        study(run, run.scenarios[0], ()), findings=(), now=NOW, records_file="r.jsonl"
    )

    assert "concurrency 2" in page.hero.context
