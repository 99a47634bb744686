"""Reading pyperf files, and the commands that reproduce their benchmarks."""

import gzip
import json
import shlex
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.exchange import pyperf
from corebound.exchange.reading import Unreadable
from corebound.exchange.result_files import Context
from corebound.exchange.run_export import exported_cells
from corebound.records.history import HistoryPoint, Series
from corebound.scenario.matrix import expand
from support.build import a_launch, a_run, a_scenario
from support.known import known


def a_suite(*runs: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    about = {"name": "sum", "unit": "second", "date": "2026-01-02 03:04:05.678", "hostname": "box"}
    return {"version": "1.0", "benchmarks": [{"metadata": about | metadata, "runs": list(runs)}]}


def the_point(suite: dict[str, Any]) -> HistoryPoint:
    (series,) = read(json.dumps(suite).encode())
    return series.points[0]


def read(data: bytes, **context: Any) -> list[Series]:
    """All series of a file; the first error of a row is raised."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "bench.json"
        file.write_bytes(data)
        items = [*pyperf.read(file, Context(project="p", **context))]
    for error in (item for item in items if isinstance(item, Unreadable)):
        raise error
    return [item for item in items if isinstance(item, Series)]


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
        ([{"values": [0.0]}], "only values above 0 can be compared"),
    ],
)
def test_a_missing_value_has_a_reason(runs: list[dict[str, Any]], why: str) -> None:
    point = the_point(a_suite(*runs))

    assert (point.value, point.launches, point.missing) == (None, (), why)


def test_the_commit_comes_from_the_metadata() -> None:
    point = the_point(a_suite({"values": [1.0]}, commit_id="abc1234", corebound_dirty="yes"))

    assert (known(point.commit).sha, known(point.commit).dirty) == ("abc1234", True)


def test_the_users_host_and_time_replace_those_of_the_file() -> None:
    data = json.dumps(a_suite({"values": [1.0]})).encode()

    (series,) = read(data, host="ci", at="2026-02-01T00:00:00Z")

    assert (series.host, series.host_name) == ("ci", "ci")
    assert series.points[0].at == "2026-02-01T00:00:00Z"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"{", "truncated JSON"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "pointer of Git LFS"),
        (b'{"a": 1}', "not a pyperf file"),
        (b'{"version": "1.0", "benchmarks": []}', "not a pyperf file"),
        (b'{"version": 6, "benchmarks": [1]}', "format 6"),
        (b'{"version": "1.0", "benchmarks": [1]}', "damaged"),
        (b"\x1f\x8b\x08torn", "damaged gzip"),
        (gzip.compress(b"[" * 10, mtime=0)[:-4], "damaged gzip"),
        (json.dumps(a_suite({"values": [1.0]}, date="once")).encode(), "is not a time"),
        (json.dumps(a_suite({"values": [1.0]}, unit="parsec")).encode(), "damaged"),
        (json.dumps(a_suite()).encode(), "no run"),
    ],
)
def test_an_unreadable_file_is_rejected_with_a_reason(data: bytes, says: str) -> None:
    with pytest.raises(Unreadable, match=says):
        read(data)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=8,
    ),
    st.sampled_from(["values", "metadata", "runs"]),
)
def test_any_file_is_read_or_rejected(value: object, key: str) -> None:
    suite = a_suite({"values": [1.0, 2.0]})
    benchmark = suite["benchmarks"][0]
    (benchmark["runs"][0] if key == "values" else benchmark)[key] = value
    try:
        read(json.dumps(suite).encode())
    except Unreadable:
        return


@pytest.mark.parametrize(
    "command",
    [
        *("rm -rf /", "corebound run a.yaml 'open", "corebound run a\x1b.yaml", ""),
        *(7, None, ["corebound", "run"]),
    ],
)
def test_what_is_no_command_of_corebound_is_not_shown_as_one(command: object) -> None:
    about = {"name": "timeit", "date": "2026-01-02 03:04:05", "corebound_command": command}
    document = {"version": "1.0", "benchmarks": [{"metadata": about, "runs": [{"values": [1.0]}]}]}

    (series,) = read(json.dumps(document).encode())

    assert series.reproduce == ()


def test_an_export_of_corebound_is_reproduced_by_corebound() -> None:
    scenario = a_scenario()
    run = a_run(scenarios=(scenario,))
    launches = tuple(a_launch(cell=cell) for cell in expand(scenario, "a.yaml"))

    text = pyperf.suite([*exported_cells(run, launches)])
    one, _ = read(text.encode())

    assert shlex.join(one.reproduce) == (
        f"corebound run {run.scenarios[0].path} --only binding=none"
    )
