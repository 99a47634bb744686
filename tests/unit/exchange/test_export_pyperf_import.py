"""Files of pyperf, read: what a run, a value and a date become, and what is refused."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.errors import InputError
from corebound.exchange import pyperf
from corebound.exchange.reading import Unreadable
from corebound.records.history import HistoryPoint


def a_suite(*runs: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    about = {"name": "sum", "unit": "second", "date": "2026-01-02 03:04:05.678", "hostname": "box"}
    return {
        "version": "1.0",
        "benchmarks": [{"metadata": about | metadata, "runs": list(runs)}],
    }


def the_point(told: dict[str, Any]) -> HistoryPoint:
    ((series,)) = pyperf.read(json.dumps(told).encode(), "p")
    return series.points[0]


def test_a_run_gives_the_median_of_its_values_and_the_benchmark_their_geometric_mean() -> None:
    calibration = {"metadata": {"calibrate_loops": 8}, "warmups": [[1, 9.0]]}
    point = the_point(
        a_suite(calibration, {"values": [1.0, 2.0, 9.0]}, {"values": [8.0], "warmups": [[1, 99.0]]})
    )

    assert point.launches == (2e9, 8e9)
    # The square root of 2 times 8.
    assert point.value == pytest.approx(4e9)
    assert point.bounds is not None
    assert point.at == "2026-01-02T03:04:05Z"


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ([{"warmups": [[1, 1.0]]}], "no run has a value"),
        ([{"values": [0.0]}], "only a figure above 0 can be compared"),
    ],
)
def test_what_is_no_figure_says_why(runs: list[dict[str, Any]], why: str) -> None:
    point = the_point(a_suite(*runs))

    assert (point.value, point.launches, point.missing) == (None, (), why)


def test_a_commit_is_the_one_that_the_metadata_tells() -> None:
    point = the_point(a_suite({"values": [1.0]}, commit_id="abc123", corebound_dirty="yes"))

    assert point.commit is not None
    assert (point.commit.sha, point.commit.dirty) == ("abc123", True)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{", "no whole JSON"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "pointer of Git LFS"),
        (b'{"a": 1}', "no file of pyperf"),
        (b'{"version": "1.0", "benchmarks": []}', "no file of pyperf"),
        (b'{"version": 6, "benchmarks": [1]}', "format is 6"),
        (b'{"version": "1.0", "benchmarks": [1]}', "damaged"),
        (b"\x1f\x8b\x08torn", "gzip is damaged"),
        (gzip.compress(b"[" * 10)[:-4], "gzip is damaged"),
        (json.dumps(a_suite({"values": [1.0]}, date="once")).encode(), "when it was measured"),
        (json.dumps(a_suite({"values": ["x"]})).encode(), "damaged"),
        (json.dumps(a_suite({"values": [1.0]}, unit="parsec")).encode(), "damaged"),
        (json.dumps(a_suite()).encode(), "no run"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(data: bytes, says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        pyperf.read(data, "p")


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=8,
    ),
    st.sampled_from(["values", "metadata", "runs"]),
)
def test_whatever_stands_in_a_file_it_is_read_or_refused(value: object, key: str) -> None:
    told = a_suite({"values": [1.0, 2.0]})
    benchmark = told["benchmarks"][0]
    (benchmark["runs"][0] if key == "values" else benchmark)[key] = value
    try:
        pyperf.read(json.dumps(told).encode(), "p")
    except Unreadable:
        return


def test_files_that_cannot_be_read_are_named_and_the_rest_is_read(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(a_suite({"values": [1.0]})))
    bad.write_text("{")

    found = pyperf.read_all([bad, good], project="p", progress=lambda *_: None)

    assert (found.files, [fault.file for fault in found.faults]) == (1, [str(bad)])


def test_where_no_file_can_be_read_the_first_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        pyperf.read_all([tmp_path / "none.json"], project="p", progress=lambda *_: None)
