"""Everything a page shows can be downloaded as CSV, JSON or points for the zoom."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest

from corebound.report import site
from corebound.report.charts.axis import Axis
from corebound.report.charts.history import HistoryChart, SeriesTrack, history_svg
from corebound.report.inputs import SiteInputs
from support.report_sample import NOW, sample_calibrations, sample_records, sample_steady_history

HOST = "host/bench-01-0123456789ab.html"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    site.write(
        SiteInputs(
            records=sample_records(),
            now=NOW,
            past=sample_steady_history(),
            calibrations=sample_calibrations(),
        ),
        folder,
    )
    return folder


def downloads_of(out: Path, page: str) -> dict[str, str]:
    """What a page links as data, by its ending; each is there."""
    path = PurePosixPath(page).parent
    addresses = re.findall(r'href="([^"]*data/[^"]+)"', (out / page).read_text())
    return {address: (out / path / address).resolve().read_text() for address in addresses}


def test_a_comparison_of_two_runs_has_every_figure_as_csv(out: Path) -> None:
    ((address, text),) = downloads_of(out, "compare/r0-r1.html").items()
    rows = list(csv.DictReader(io.StringIO(text)))

    assert address == "../data/compare/r0-r1.csv"
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


def test_a_host_has_all_that_its_page_shows_as_json(out: Path) -> None:
    ((address, text),) = downloads_of(out, HOST).items()
    document = json.loads(text)

    assert address == "../data/host/bench-01-0123456789ab.json"
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
    grid = HistoryChart(
        tracks=(track,),
        axis=axis,
        marks=(),
        borders=(),
        margin=0.02,
        alt_text="",
    )

    drawn = history_svg(grid)

    ticks = drawn.partition('class="grid" d="')[2].partition('"')[0]
    lines = [line.partition("H")[0].split()[1] for line in ticks.split("M")[1:]]
    places = drawn.partition('class="run m" d="')[2].partition('"')[0]
    steps = [int(step) for step in re.findall(r"m\d+([ -]\d+)h0", places)]
    assert [*itertools.accumulate(steps)] == [300, 300, *map(int, lines), 0, 0]
