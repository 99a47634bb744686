"""Everything a page shows can be downloaded as CSV, JSON or points for the zoom."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.records.history import HistoryPoints, Series
from corebound.report import site
from corebound.report.charts.axis import Axis
from corebound.report.charts.history import Dot, HistoryChart, SeriesTrack, history_svg
from corebound.report.downloads import history_csv
from corebound.report.history.zoom import points_script
from corebound.report.inputs import SiteInputs
from support.build import a_point, a_series
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
    assert worse["clear"] == "True"
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


def test_the_same_records_give_the_same_bytes(out: Path, tmp_path: Path) -> None:
    site.write(
        SiteInputs(
            records=sample_records()[::-1],
            now=NOW,
            past=sample_steady_history(),
            calibrations=sample_calibrations(),
        ),
        tmp_path,
    )

    for name in ("data/compare/r0-r1.csv", "data/host/bench-01-0123456789ab.json"):
        assert (tmp_path / name).read_bytes() == (out / name).read_bytes()


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), strict=True))


def test_each_point_is_a_line_with_ten_digits_of_its_figure() -> None:
    point = replace(a_point(day=3), value=1 / 3, bounds=(0.25, 0.5))
    series = replace(
        a_series([1.0, None, 3.0]), points=HistoryPoints.of([point]), cell="binding=none,threads=2"
    )

    (line,) = read(history_csv([series]))

    assert (line["at"], line["cell"], line["unit"]) == (point.at, "binding=none,threads=2", "ns")
    assert (line["figure"], line["low"], line["high"]) == ("0.3333333333", "0.25", "0.5")
    assert point.commit is not None
    assert line["commit"] == point.commit.sha


def test_what_is_not_there_is_empty_and_the_reason_is_told() -> None:
    point = replace(a_point(day=3), value=None, bounds=None, missing="it failed, twice")
    endless = replace(a_point(day=4), value=2.0, bounds=(1.0, float("inf")))

    first, second = read(
        history_csv([replace(a_series([1.0]), points=HistoryPoints.of([point, endless]))])
    )

    assert (first["figure"], first["low"], first["missing"]) == ("", "", "it failed, twice")
    assert (second["figure"], second["low"], second["high"]) == ("2", "1", "")


def test_every_circumstance_has_a_column_that_hides_no_other() -> None:
    points = (
        replace(a_point(day=1), environment_key=(("kernel", "6.1, patched"), ("host", "moved"))),
        replace(a_point(day=2), environment_key=(("memory", "8 GiB"),)),
        replace(a_point(day=3), environment_key=()),
    )
    series = replace(a_series([1.0]), points=HistoryPoints.of(points))

    first, second, third = read(history_csv([series]))

    assert (first["host"], first["host there"]) == (series.host, "moved")
    assert (first["kernel"], first["memory"]) == ("6.1, patched", "")
    assert (second["kernel"], second["memory"]) == ("", "8 GiB")
    assert (third["kernel"], third["memory"]) == ("", "")


def test_text_that_a_spreadsheet_would_run_is_inert() -> None:
    series = replace(a_series([1.0]), cell="=1+1", host="@SUM(A1)")

    (line,) = read(history_csv([series]))

    assert (line["cell"], line["host"]) == ("'=1+1", "'@SUM(A1)")


def test_an_imported_history_is_in_the_site_packed_and_the_same_each_time(tmp_path: Path) -> None:
    series = replace(a_series([1.0, 2.0, 3.0]), project="p")
    site.write(SiteInputs(records=[], now=NOW, series=[series]), tmp_path / "site")
    (packed,) = tmp_path.glob("site/data/history/*.csv.gz")
    once = packed.read_bytes()
    packed.unlink()

    site.write(SiteInputs(records=[], now=NOW, series=[series]), tmp_path / "site")

    assert packed.read_bytes() == once
    assert gzip.decompress(once).decode() == history_csv([series])


def kept(series: Series) -> dict[str, Any]:
    """What the script keeps of one series."""
    script = points_script([series]).removeprefix("corebound.keep(").removesuffix(");\n")
    (points,) = json.loads(script).values()
    return dict(points)


def bounded(value: float | None, low: float, high: float) -> Series:
    return replace(
        a_series([1.0]),
        points=HistoryPoints.of([replace(a_point(day=1), value=value, bounds=(low, high))]),
    )


@given(
    value=st.floats(1e-280, 1e280),
    below=st.floats(0.5, 1),
    above=st.floats(1, 2),
)
def test_the_script_holds_figures_and_bounds_to_four_digits(
    value: float, below: float, above: float
) -> None:
    points = kept(bounded(value, value * below, value * above))

    (y,), (low,), (high,), unit = points["y"], points["low"], points["high"], points["u"]
    told = [y * unit, (y - low) * unit, (y + high) * unit]
    assert told == pytest.approx([value, value * below, value * above], rel=1e-4)


def test_the_script_has_null_where_there_is_no_figure_and_no_bounds_where_none_has_any() -> None:
    lost = kept(bounded(None, 1.0, 2.0))
    alone = kept(
        replace(a_series([1.0]), points=HistoryPoints.of([replace(a_point(day=1), bounds=None)]))
    )

    assert (lost["y"], lost["low"], lost["high"]) == ([None], [None], [None])
    assert (alone["low"], alone["high"]) == ([], [])


@pytest.mark.parametrize("value", [5e-324, 1.7e308])
def test_the_script_is_json_however_far_figures_lie(value: float) -> None:
    points = kept(bounded(value, -math.inf, math.inf))

    assert (points["low"], points["high"]) == ([None], [None])
    assert math.isfinite(points["u"])


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_points_lie_where_the_levels_of_the_same_figures_do(scale: Any) -> None:
    axis = Axis(low=1.0, high=10.0, scale=scale, ticks=(2.0, 5.0))
    values = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0]
    dots = tuple(Dot(x=0.5, value=value, low=None, high=None) for value in values)
    grid = HistoryChart(
        tracks=(SeriesTrack(mode="m", dash=0, runs=(dots,), missing=(), levels=()),),
        axis=axis,
        marks=(),
        borders=(),
        alt_text="",
    )

    drawn = history_svg(grid)

    ticks = drawn.partition('class="grid" d="')[2].partition('"')[0]
    lines = [line.partition("H")[0].split()[1] for line in ticks.split("M")[1:]]
    places = drawn.partition('class="run m" d="')[2].partition('"')[0]
    heights = [anchor.partition("h")[0].split()[1] for anchor in places.split("M")[1:]]
    assert heights == ["1000", "1000", *lines, "0", "0"]
