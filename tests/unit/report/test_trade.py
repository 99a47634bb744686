"""Throughput against latency: a spot for each load of a server, a line for each setting."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from corebound.analysis.scenario_result import CellStudy
from corebound.analysis.selection import latest_studies
from corebound.report.charts.axis import linear_axis
from corebound.report.charts.lines import LoadPoint, TradeoffCurve, tradeoff_svg
from corebound.report.scenario.serving import ThroughputLatency, throughput_latency
from corebound.stats.server_summary import MeanWithInterval, ServedCell, summarise_served
from support.build import a_cell
from support.report_sample import a_serving_sample

Known = list[tuple[CellStudy, ServedCell]]


def known() -> Known:
    """The sample's four set-ups."""
    (study,) = latest_studies([a_serving_sample()])
    return [(cell, served) for cell in study.cells if (served := summarise_served(cell.launches))]


def driven(rates: dict[str, float]) -> Known:
    """One set-up under several loads: what was asked, and what came out."""
    cell, served = known()[0]
    return [
        (
            replace(cell, cell=a_cell(axes=(("parameters.rate", name),))),
            replace(served, per_s=MeanWithInterval(value=got, interval=None)),
        )
        for name, got in rates.items()
    ]


def drawn(of: Known) -> ThroughputLatency:
    found = throughput_latency(of)
    assert found is not None
    return found


def test_each_setting_is_a_spot_with_a_number_that_the_key_names() -> None:
    found = drawn(known())

    assert [len(curve.spots) for curve in found.curves] == [1, 1, 1, 1]
    assert [number for _, _, number in found.marks] == [1, 2, 3, 4]
    assert found.key[0] == (1, "m-none", "unbound, default threads, wait policy default")


def test_settings_that_differ_only_in_load_are_one_line_by_throughput() -> None:
    found = drawn(driven({"20": 18.0, "5": 5.0, "10": 10.0}))

    assert [spot.per_s for spot in found.curves[0].spots] == [5.0, 10.0, 18.0]
    assert len(found.key) == 1


def test_a_single_spot_is_no_drawing() -> None:
    assert throughput_latency(known()[:1]) is None


@pytest.mark.parametrize(("most", "scale"), [(20.0, "linear"), (200.0, "log")])
def test_throughputs_far_apart_are_on_a_logarithmic_axis(most: float, scale: str) -> None:
    assert drawn(driven({"5": 5.0, "9": most})).across.scale == scale


def test_the_tail_is_drawn_in_the_unit_of_the_caption_and_said_in_words() -> None:
    found = drawn(known())

    (_, served) = known()[0]
    assert found.curves[0].spots[0].latency == pytest.approx(served.p99_ns.value / 1e6)
    assert "p99, ms," in found.caption
    assert "requests/s at a p99 of" in found.says


def test_both_intervals_cross_at_the_spot() -> None:
    spot = LoadPoint(per_s=5, latency=2, per_s_ends=(4, 6), latency_ends=(1, 3))
    curve = TradeoffCurve(mode="m-none", dash=0, spots=(spot,))

    svg = tradeoff_svg([curve], linear_axis(0, 10), linear_axis(0, 4), "<says>")

    assert re.search(r'class="whisker m-none" d="M400.0 500.0H600.0M500.0 750.0V250.0"', svg)
    assert "&lt;says&gt;" in svg
    assert 'class="ln' not in svg
