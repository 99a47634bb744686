"""Everything a page shows can be downloaded as CSV, JSON or points for the zoom."""

import csv
import io
import itertools
import json
import re
from typing import Any

import numpy as np
import pytest

from corebound.analysis.host_records import group_by_host
from corebound.report.charts.axis import Axis
from corebound.report.charts.history import HistoryChart, SeriesTrack, history_svg
from corebound.report.downloads import host_json
from support.report_sample import sample_calibrations, sample_records, site_over_time


def test_a_comparison_of_two_runs_has_every_figure_as_csv() -> None:
    site = site_over_time()
    rows = list(csv.DictReader(io.StringIO(site["data/compare/r0-r1.csv"])))

    assert 'href="../data/compare/r0-r1.csv"' in site["compare/r0-r1.html"]
    assert len(rows) == 15
    worse = next(row for row in rows if row["cell"] == "binding=physical-cores,threads=default")
    assert (worse["before_run"], worse["after_run"]) == ("r0", "r1")
    assert worse["verdict"] == "slower"
    assert worse["is_significant"] == "True"
    for name in ("before", "after"):
        low, value, high = (float(worse[f"{name}{end}_ns"]) for end in ("_low", "", "_high"))
        assert low < value < high
    assert float(worse["ratio_low"]) < float(worse["ratio"]) < float(worse["ratio_high"]) < 1
    assert worse["command"].startswith("corebound run ")


def test_a_host_has_all_that_its_page_shows_as_json() -> None:
    host, *_ = (
        host
        for host in group_by_host(sample_records(), sample_calibrations())
        if host.latest_runs[0].host.name == "bench-01"
    )
    document = json.loads(host_json(host))

    assert document["host"]["name"] == "bench-01"
    assert [node["id"] for node in document["host"]["topology"]["nodes"]] == [0, 1]
    assert document["noise"][0]["noise"][0] == {
        "launches": 6,
        "floor_ratio": 0.021,
        "false_alarm_rate": 0.03,
        "detectable_ratio": 0.04,
    }
    assert [run["id"] for run in document["runs"]] == ["r1", "r0"]
    assert document["runs"][0]["checks"][0]["state"] == "warning"
    assert document["runs"][1]["checks"] is None


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_points_lie_where_the_levels_of_the_same_figures_do(scale: Any) -> None:
    axis = Axis(low=1.0, high=10.0, scale=scale, ticks=(2.0, 5.0))
    values = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]
    none = np.full(len(values), np.nan)
    track = SeriesTrack(
        mode="m", dash=0, shares=[0.5] * len(values), values=np.array(values), lows=none,
        highs=none, starts=frozenset({0}), missing=(), levels=(),
    )  # fmt: skip
    grid = HistoryChart(tracks=(track,), axis=axis, marks=(), borders=(), margin=0.02, alt_text="")

    drawn = history_svg(grid)

    ticks = drawn.partition('class="grid" d="')[2].partition('"')[0]
    lines = [line.partition("H")[0].split()[1] for line in ticks.split("M")[1:]]
    places = drawn.partition('class="run m" d="')[2].partition('"')[0]
    steps = [int(step) for step in re.findall(r"m\d+([ -]\d+)h0", places)]
    assert [*itertools.accumulate(steps)] == [300, 300, *map(int, lines), 0, 0]
