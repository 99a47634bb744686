"""Thread activity and warm-up: the tables behind the charts."""

from __future__ import annotations

from corebound.analysis.selection import latest_results
from corebound.machine.topology import CpuId
from corebound.records.launch_record import Stay
from corebound.report.scenario.launches import trace_panels, typical_launches
from corebound.report.scenario.threads import cpu_shares
from support.report_sample import (
    a_sample,
    site_over_time,
)


def a_stay(cpu: int, from_ms: int, to_ms: int) -> Stay:
    return Stay(cpu=CpuId(cpu), from_ms=from_ms, to_ms=to_ms)


def test_a_strip_is_summarised_as_shares_of_time_per_cpu() -> None:
    # Before 0 the worker had not been told to go.
    stays = (a_stay(0, -50, 25), a_stay(1, 25, 100))

    assert cpu_shares([("thread 0: python", stays)]) == (
        ("thread 0: python", "CPU 1 75 %, CPU 0 25 %"),
    )


def test_a_thread_without_sampled_time_has_no_cpus() -> None:
    assert cpu_shares([("thread 0", (a_stay(0, 5, 5),))]) == (("thread 0", ""),)


def test_a_trace_is_summarised_in_ten_segments_that_cover_all_iterations() -> None:
    (result,) = latest_results([a_sample()])
    panels = trace_panels(typical_launches(result), result.measure.warmup)

    assert panels
    for panel in panels:
        assert len(panel.stretches) == 10
        assert panel.stretches[0][0] == "1 to 12"
        assert panel.stretches[-1][0] == "109 to 120"
        # The first iteration is the coldest, of all that were drawn.
        assert all(float(least) <= float(middle) for _, least, middle, _ in panel.stretches)


def test_charts_of_two_runs_have_tables_of_changes_and_points() -> None:
    page = site_over_time()["compare/r0-r1.html"]

    assert page.count(">before</span>") == page.count(">after</span>") == 3
    assert page.count('class="data changes"') == 3
    assert page.count("points behind the chart") == 3
