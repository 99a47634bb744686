"""The CSV of histories: a line for each point, whatever characters its names have."""

import csv
import io

from msgspec.structs import replace

from corebound.analysis.history_csv import history_csv
from corebound.records.history import ANCHORED, HistoryPoints
from support.build import a_point, a_series
from support.known import known


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
    assert line["commit"] == known(point.commit).sha


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


def test_beside_a_ratio_to_an_anchor_both_values_have_columns() -> None:
    points = HistoryPoints.of([a_point(1.25, sides=(5.0, 4.0)), a_point(None, day=1)])
    others = a_series([1.0], scenario="other")
    anchored = replace(a_series([1.0]), host=ANCHORED, points=points)

    lines = read(history_csv([anchored, others]))

    assert [(line["figure of HEAD"], line["figure of anchor"]) for line in lines] == [
        ("5", "4"), ("", ""), ("", ""),
    ]  # fmt: skip
    assert "figure of HEAD" not in read(history_csv([others]))[0]


def test_text_that_a_spreadsheet_would_run_is_inert() -> None:
    series = replace(a_series([1.0]), cell="=1+1", host="@SUM(A1)")

    (line,) = read(history_csv([series]))

    assert (line["cell"], line["host"]) == ("'=1+1", "'@SUM(A1)")
