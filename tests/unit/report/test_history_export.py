"""Histories for machines: what a point holds comes back from its line, or from the script."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from pathlib import Path
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
from support.report_sample import NOW


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
        says="",
    )

    drawn = history_svg(grid)

    ticks = drawn.partition('class="grid" d="')[2].partition('"')[0]
    lines = [line.partition("H")[0].split()[1] for line in ticks.split("M")[1:]]
    places = drawn.partition('class="run m" d="')[2].partition('"')[0]
    heights = [anchor.partition("h")[0].split()[1] for anchor in places.split("M")[1:]]
    assert heights == ["1000", "1000", *lines, "0", "0"]
