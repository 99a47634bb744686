"""Charts turn numbers into geometry."""

import itertools
import math
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.analysis.scenario_result import ScenarioResult
from corebound.analysis.selection import latest_results
from corebound.analysis.wording import Label
from corebound.report.charts.axis import (
    Axis,
    effect_scale,
    effect_tick,
    effects_between,
    linear_axis,
    log_axis,
    ratio_axis,
    ratio_tick,
)
from corebound.report.charts.intervals import effect_ticks, interval_svg
from corebound.report.charts.launches import LaunchChart, LaunchPoint, launches_svg
from corebound.report.charts.lines import (
    Curve,
    CurveChart,
    CurvePoint,
    Trace,
    curves_svg,
    envelope,
    trace_svg,
)
from corebound.report.charts.value_bars import ValueBars
from corebound.report.scenario.scaling import scaling
from corebound.scenario.matrix import expand
from corebound.stats.launch_summary import CellSummary, summarise
from support.build import a_comparison, a_launch, a_run, a_scenario, a_worker, timed
from support.markup import parse_xml

RATIOS = st.floats(min_value=0.001, max_value=1000)


def drawn_row(axis: Axis, ratio: float = 1.4, ends: tuple[float, float] = (1.3, 1.5)) -> str:
    comparison = a_comparison(ratio, ends, verdict="faster")
    return interval_svg(replace(comparison, per_block=((0, 1.35), (1, 1.45))), axis, margin=0.02)


def path(svg: str, name: str) -> str:
    drawn = parse_xml(svg).findall("path")
    return next(one.get("d") or "" for one in drawn if name in (one.get("class") or "").split())


@given(estimates=st.lists(RATIOS, max_size=20), margin=st.floats(0.001, 0.5))
def test_a_ratio_axis_always_shows_1_and_its_margin(estimates: list[float], margin: float) -> None:
    axis = ratio_axis(estimates, [], margin=margin)

    assert 0 <= axis.share(1 - margin) <= axis.share(1 + margin) <= 1


@given(estimates=st.lists(RATIOS, max_size=20))
def test_an_axis_of_effects_has_few_ticks_with_1_among_them_and_no_ratio_below_1(
    estimates: list[float],
) -> None:
    axis = effect_scale(estimates, [(0.5, 4.0)], margin=0.02)

    assert 1.0 in axis.ticks
    assert list(axis.ticks) == sorted(axis.ticks)
    assert len(axis.ticks) <= 7
    for tick in axis.ticks:
        assert -1e-9 <= axis.share(tick) <= 1 + 1e-9
        assert float(effect_tick(tick).partition("×")[0]) >= 1


def a_summary(*each_ms: float) -> CellSummary:
    launches = [timed(ms, block=block) for block, ms in enumerate(each_ms)]
    return summarise(launches[0].cell, tuple(launches), "auto")


def test_bars_of_two_values_begin_at_zero_and_share_one_scale() -> None:
    drawn = ValueBars(
        quantities=(("a", a_summary(20.0), "plain"), ("b", a_summary(5.0), "good")), what="…"
    )

    assert list(drawn.bars) == [(100.0, None), (25.0, None)]


def test_an_interval_beside_a_bar_is_on_its_scale_or_left_out() -> None:
    (width, ends), (_, wild) = ValueBars(
        quantities=(("a", a_summary(10.0, 10.1, 9.9), "plain"), ("b", a_summary(1.0, 9.0), "bad")),
        what="…",
    ).bars

    assert ends is not None
    assert ends[0] < width < ends[1] <= 100
    assert wild is None


def test_one_ratio_far_off_does_not_press_the_others_together() -> None:
    axis = ratio_axis([0.02, 1.1, 1.2, 1.3], [], margin=0.02)

    assert axis.share(0.02) < 0
    assert axis.share(1.3) - axis.share(1.1) > 0.4


def test_ratios_that_are_mostly_far_off_are_all_on_the_axis() -> None:
    axis = ratio_axis([0.02, 0.03, 1.1], [], margin=0.02)

    assert axis.share(0.02) >= 0


def test_wide_intervals_about_close_ratios_are_drawn_as_far_as_is_sensible() -> None:
    axis = ratio_axis([1.12, 1.1], [(0.73, 1.6), (0.1, 90)], margin=0.02)

    assert 0 <= axis.share(0.73) < axis.share(1.6) <= 1
    assert axis.share(90) > 1


def test_an_infinite_interval_leaves_the_axis_finite() -> None:
    assert math.isfinite(ratio_axis([1.1], [(0.2, math.inf)], margin=0.02).high)


@given(low=st.floats(1e-6, 1e6), span=st.floats(1.001, 1e5))
def test_ticks_lie_on_their_axis_and_are_few(low: float, span: float) -> None:
    for axis in (linear_axis(low, low * span), log_axis(low, low * span)):
        assert len(axis.ticks) <= 8
        assert all(-0.01 <= axis.share(tick) <= 1.01 for tick in axis.ticks)


def test_an_axis_without_length_is_refused() -> None:
    with pytest.raises(ValueError, match="length"):
        Axis(low=1, high=1, scale="linear", ticks=())


def test_ticks_of_ratios_read_as_people_write_them() -> None:
    assert [ratio_tick(value) for value in (0.02, 0.9, 1.0, 2.0)] == [
        "0.02×",
        "0.9×",
        "1.0×",
        "2.0×",
    ]


def test_an_estimate_lies_where_the_axis_says() -> None:
    axis = Axis(low=1.0, high=2.0, scale="linear", ticks=(1.0, 2.0))

    assert path(drawn_row(axis, 1.5), "est").startswith("M500 ")


def test_an_estimate_beyond_the_axis_is_an_arrow_at_its_edge() -> None:
    axis = Axis(low=0.9, high=1.5, scale="linear", ticks=(1.0,))

    svg = drawn_row(axis, 0.02, (0.019, 0.021))

    assert 'class="est' not in svg
    assert path(svg, "ci").startswith("M0 ")


def test_an_interval_that_leaves_the_axis_ends_in_an_arrow_head() -> None:
    axis = Axis(low=0.9, high=1.5, scale="linear", ticks=(1.0,))

    assert "M992" in path(drawn_row(axis, ends=(1.3, math.inf)), "ci")


@given(values=st.lists(st.floats(0, 1e9), min_size=1, max_size=500), most=st.integers(2, 100))
def test_an_envelope_keeps_both_extremes_and_the_order(values: list[float], most: int) -> None:
    points = envelope(values, most=most)

    assert len(points) <= max(most, 2)
    assert [index for index, _ in points] == sorted({index for index, _ in points})
    assert min(values) == min(value for _, value in points)
    assert max(values) == max(value for _, value in points)


def a_trace(*values: float, cut: int = 0) -> str:
    return trace_svg(
        Trace(mode="m-none", values=values, cut=cut, axis=linear_axis(0, 10), alt_text="times")
    )


def test_a_trace_shades_what_was_cut() -> None:
    # One of five iterations: the cut lies half way to the second, an eighth along.
    assert path(a_trace(9.0, 5.0, 5.0, 5.0, 5.0, cut=1), "wash") == "M0 0H125.0V1000H0z"
    assert 'class="wash"' not in a_trace(5.0, 5.0)


def test_iterations_above_the_scale_leave_the_plot_and_are_no_line_along_its_edge() -> None:
    # From 20 to 5 a line is at 10 two thirds of the way, from 5 to 15 half of it.
    drawn = path(a_trace(30.0, 20.0, 5.0, 15.0, 5.0), "ln")

    assert drawn == "M417 0l83 500 125-500M875 0l125 500"


def test_a_trace_wholly_above_the_scale_draws_no_line() -> None:
    assert 'class="ln' not in a_trace(30.0, 20.0)


def a_study(times_ms: dict[str, float]) -> ScenarioResult:
    scenario = a_scenario(
        matrix={"binding": ["none"], "threads": [int(number) for number in times_ms]},
        baseline={"binding": "none", "threads": int(next(iter(times_ms)))},
    )
    launches = []
    for block in range(3):
        for position, cell in enumerate(expand(scenario, "a.yaml")):
            wall_ns = (round(times_ms[dict(cell.axes)["threads"]] * 1e6),) * 40
            worker = replace(a_worker(), wall_ns=wall_ns, cpu_ns=wall_ns)
            launches.append(a_launch(cell=cell, block=block, position=position, workers=(worker,)))
    (result,) = latest_results([(a_run(scenarios=(scenario,)), tuple(launches))])
    return result


def test_a_setting_that_halves_its_time_with_twice_the_threads_is_ideal() -> None:
    found = scaling(a_study({"1": 8.0, "2": 4.0, "4": 4.0}))

    assert found is not None
    (curve,) = found.chart.curves
    assert [point.x for point in curve.points] == [1, 2, 4]
    assert [point.y for point in curve.points] == pytest.approx([1.0, 2.0, 2.0])
    assert all(point.y_ends is not None for point in curve.points)
    assert len(found.cells) == 3
    assert found.chart.alt_text.endswith("unbound: 2.00× with 4 threads, 50 % of the ideal.")


def test_two_numbers_of_threads_are_no_curve() -> None:
    assert scaling(a_study({"1": 8.0, "2": 4.0})) is None


def a_chart(across: Axis, up: Axis, *points: CurvePoint, has_ideal: bool = False) -> CurveChart:
    curve = Curve(label=Label(mode="m-none", name="unbound", more=""), dash=0, points=points)
    return CurveChart(curves=(curve,), across=across, up=up, alt_text="<says>", has_ideal=has_ideal)


def test_the_ideal_begins_at_the_fewest_threads_and_leaves_at_the_top() -> None:
    svg = curves_svg(a_chart(linear_axis(1, 4), linear_axis(0, 2), has_ideal=True))

    (ideal,) = re.findall(r'class="rule" d="M([^"]*)"', svg)
    assert ideal.split("L")[0] == "0 500"
    # At twice the threads, a third of the way from 1 to 4, it is at twice the speed.
    assert ideal.split("L")[-1] == "333 0"


def test_both_intervals_cross_at_the_point() -> None:
    point = CurvePoint(x=5, y=2, x_ends=(4, 6), y_ends=(1, 3))

    svg = curves_svg(a_chart(linear_axis(0, 10), linear_axis(0, 4), point))

    assert re.search(r'class="whisker m-none" d="M400 500H600M500 750V250"', svg)
    assert "&lt;says&gt;" in svg
    assert 'class="ln' not in svg


def a_launch_chart(own: Sequence[float], baseline: Sequence[float] = ()) -> LaunchChart:
    """The launches of these blocks, those above 15 ms of the slow mode."""
    points, others = (
        tuple(
            LaunchPoint(block=block, value=value, is_slow=value > 15)
            for block, value in enumerate(values)
        )
        for values in (own, baseline)
    )
    return LaunchChart(
        across=linear_axis(10, 20),
        unit="ms",
        own=points,
        baseline=others,
        baseline_name="unbound",
        pairs=frozenset(range(len(others))),
        tone="good",
    )


def test_a_line_joins_the_two_launches_of_each_pair_in_the_order_they_ran() -> None:
    chart = a_launch_chart([11.0, 12.0, 13.0], [20.0, 15.0])

    svg = launches_svg(chart)

    (own,) = re.findall(r'class="dot good" d="([^"]*)"', svg)
    (links,) = re.findall(r'class="link" d="([^"]*)"', svg)
    places = re.findall(r"M(\d+) (\d+)h0", own)
    assert [x for x, _ in places] == ["100", "200", "300"]
    assert sorted(places, key=lambda place: int(place[1])) == places
    # The third has no partner.
    assert re.findall(r"M(\d+) (\d+)H(\d+)", links) == [
        ("1000", places[0][1], "100"),
        ("500", places[1][1], "200"),
    ]
    assert chart.says == (
        "3 launches, 11.0 to 13.0 ms; "
        "unbound 2 launches, 15.0 to 20.0 ms, 1 in the slow mode; faster in 2 of 2 pairs"
    )


def test_enough_launches_of_two_modes_have_a_shape_with_two_tops() -> None:
    fast = [11 + number / 10 for number in range(6)]
    slow = [17 + number / 10 for number in range(6)]

    svg = launches_svg(a_launch_chart(fast + slow, fast[:4]))

    # The baseline has too few launches for one.
    (shape,) = re.findall(r'class="shape[^"]*" d="([^"]*)"', svg)
    line = [y for y, _ in itertools.groupby(map(int, re.findall(r"L\d+ (\d+)", shape)))]
    assert (
        sum(one > two < three for one, two, three in zip(line, line[1:], line[2:], strict=False))
        == 2
    )
    assert "shape" not in launches_svg(a_launch_chart(fast))


def test_no_label_of_an_axis_of_effects_touches_the_one_of_no_effect() -> None:
    texts = [tick.text for tick in effect_ticks(effects_between(0.5, 1.3))]

    assert texts[0] == "2× slower"
    assert texts[-1] == "1×"


def test_an_axis_of_small_effects_has_small_steps() -> None:
    texts = [tick.text for tick in effect_ticks(effects_between(0.94, 1.03))]

    assert texts == ["1.05× slower", "1.02×", "1×", "1.02× faster"]


def test_a_label_that_is_near_no_effect_leaves_its_direction_out() -> None:
    texts = [tick.text for tick in effect_ticks(effects_between(0.1, 2.0), 0.5)]

    assert texts[0].endswith("slower")
    assert "faster" not in texts[-1]
