"""Result files of other tools as series: real files of each, and odd ones."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corebound.errors import InputError
from corebound.exchange import result_files
from corebound.exchange.reading import Unreadable
from corebound.exchange.result_files import Context
from corebound.records.history import Series
from corebound.workflow.import_results import READERS, Tool
from support.commands import corebound
from support.paths import ROOT

DATA = ROOT / "tests" / "data" / "results"
# Written by pytest-benchmark 5.3, google-benchmark 1.9, hyperfine 1.15 and Criterion 0.3.6. The
# others have the shape of public files.
FILES: dict[Tool, str] = {
    "pytest-benchmark": "pytest-benchmark.json",
    "google-benchmark": "google-benchmark.json",
    "hyperfine": "hyperfine.json",
    "criterion": "criterion",
    "github-action-benchmark": "data.js",
    "bencher": "bencher.json",
}


def read(tool: Tool, *paths: Path, **context: Any) -> dict[str, Series]:
    """The series of files, by benchmark and cell."""
    files = result_files.read_all(
        paths or (DATA / FILES[tool],),
        READERS[tool],
        Context(project="p", **context),
        lambda _done, _of: None,
    )
    assert not files.faults
    return {f"{series.scenario}[{series.cell}]": series for series in files.series}


def test_the_rounds_of_pytest_benchmark_are_one_launch() -> None:
    series = read("pytest-benchmark")

    assert set(series) == {
        "test_b.py::test_sum[rows=10]",
        "test_b.py::test_sum[rows=1000]",
        "test_b.py::test_group[default]",
    }
    (point,) = series["test_b.py::test_sum[rows=10]"].points
    # The median of its 19,578 rounds, 2.0168e-07 s.
    assert list(point.launches) == pytest.approx([201.68], abs=0.01)
    assert point.bounds is None
    assert point.commit is not None
    assert point.commit.sha.startswith("0123456789")
    assert ("python", "CPython 3.11.7") in point.environment_key


def test_each_run_of_hyperfine_is_a_launch() -> None:
    series = read("hyperfine", at="2026-01-02T03:04:05Z")

    (point,) = series["seq 1[n=1]"].points
    assert len(point.launches) == 8
    assert point.launches[1] == pytest.approx(1_147_103)
    assert point.bounds is not None
    assert point.bounds[0] < point.launches[0] < point.bounds[1] * 10


def test_the_repetitions_of_google_benchmark_are_one_launch() -> None:
    series = read("google-benchmark")

    # Real times of 432.9, 585.8 and another repetition.
    (point,) = series["sum_million[arguments=10]"].points
    rows = json.loads((DATA / FILES["google-benchmark"]).read_text())["benchmarks"]
    times = sorted(
        row["real_time"]
        for row in rows
        if row["run_name"] == "sum_million/10" and row["run_type"] == "iteration"
    )
    assert point.launches == (times[1],)
    (skipped,) = series["skipped[default]"].points
    assert skipped.missing == "failed: no such device"


def test_the_median_of_aggregates_stands_for_repetitions_that_were_not_written() -> None:
    file = DATA / "google-benchmark-aggregates.json"

    series = read("google-benchmark", file)

    rows = json.loads(file.read_text())["benchmarks"]
    median = next(row["real_time"] for row in rows if row["name"] == "sum_million/10_median")
    (point,) = series["sum_million[arguments=10]"].points
    assert point.launches == (median,)


def test_the_median_of_criterion_is_one_launch() -> None:
    series = read("criterion")

    # A benchmark of a group has its parameter; the folder of this group is `Fib_by size`.
    assert set(series) == {"fib 15[default]", "Fib/by size/loop[input=20]"}
    (point,) = series["fib 15[default]"].points
    assert point.launches == pytest.approx((1328.126,), abs=0.001)
    assert point.bounds is None


def test_a_history_of_github_action_benchmark_has_a_point_for_each_commit() -> None:
    series = read("github-action-benchmark")

    rust = series["sum[suite=Rust]"]
    # Two runs of one commit on one day are two launches.
    assert [point.launches for point in rust.points] == [(1500,), (1600, 1700)]
    assert rust.points[0].commit is not None
    assert rust.points[0].commit.subject == "Fuse"
    assert rust.commit_url == "https://example.org/x/commit/"
    assert series["t.py::test_sum[suite=Python]"].more_is_better
    wait = series["wait[suite=Own]"]
    assert wait.unit == "ns"
    assert wait.points[0].value == pytest.approx(2.5e6)
    assert series["size[suite=Own]"].unit == "kB"


@pytest.mark.parametrize(
    ("tool", "unit", "stored", "is_rate"),
    [
        ("go", "ns/op\t     344 B/op\t       3 allocs/op", "ns", False),
        ("go", "MB/s", "MB/s", True),
        ("go", "allocs/op", "allocs/op", False),
        ("customSmallerIsBetter", "MB/s", "MB/s", False),
        ("customBiggerIsBetter", "points", "points", True),
    ],
)
def test_units_of_github_action_benchmark_give_the_direction(
    tmp_path: Path, tool: str, unit: str, stored: str, is_rate: bool
) -> None:
    commit = {"id": "0" * 40, "message": "Fuse", "timestamp": "2026-01-02T03:04:05Z"}
    benches = [{"name": "sum", "value": 2.0, "unit": unit}]
    entry = {"commit": commit, "date": 1767323045000, "tool": tool, "benches": benches}
    file = tmp_path / "data.js"
    file.write_text(f"window.BENCHMARK_DATA = {json.dumps({'entries': {'S': [entry]}})};")

    (series,) = read("github-action-benchmark", file).values()

    assert (series.unit, series.more_is_better) == (stored, is_rate)
    assert series.points[0].value == 2.0


def test_a_table_is_answered_with_the_format_that_can_be_read(tmp_path: Path) -> None:
    file = tmp_path / "out.csv"
    file.write_text('name,iterations,real_time\n"BM_sort/1024",10,2.5\n')

    with pytest.raises(InputError, match="Write JSON with the tool"):
        read("google-benchmark", file)


def test_each_measure_of_bencher_is_a_series() -> None:
    series = read("bencher", at="2026-01-02T03:04:05Z")

    assert series["sum[measure=latency]"].unit == "ns"
    assert series["save[measure=throughput]"].more_is_better
    assert series["save[measure=heap]"].unit == "heap"
    assert series["sum[measure=latency]"].points[0].bounds is None


def test_files_of_one_commit_and_day_are_launches_of_one_point(tmp_path: Path) -> None:
    document = json.loads((DATA / FILES["pytest-benchmark"]).read_text())
    paths = []
    for number, minute in enumerate((10, 20, 30)):
        for benchmark in document["benchmarks"]:
            benchmark["stats"]["median"] = 1e-6 * (number + 1)
        document["datetime"] = f"2026-01-02T03:{minute}:00"
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(document))

    (point,) = read("pytest-benchmark", *paths)["test_b.py::test_group[default]"].points

    assert list(point.launches) == pytest.approx([1000, 2000, 3000])
    # The cube root of 6.
    assert point.value == pytest.approx(1817.12, abs=0.01)
    assert point.bounds is not None
    assert point.at == "2026-01-02T03:10:00Z"


def test_a_planted_slow_down_is_a_regression_of_its_commit(tmp_path: Path) -> None:
    document = json.loads((DATA / FILES["pytest-benchmark"]).read_text())
    noise = random.Random(5)  # no secret
    files = []
    for night in range(40):
        document["commit_info"]["id"] = f"{night:040x}"
        document["datetime"] = f"2026-{1 + night // 28:02}-{1 + night % 28:02}T03:00:00"
        for benchmark in document["benchmarks"]:
            step = 1.3 if night >= 25 and "group" in benchmark["name"] else 1.0
            benchmark["stats"]["median"] = 1e-3 * step * noise.gauss(1, 0.01)
        files.append(f"{night}.json")
        (tmp_path / files[-1]).write_text(json.dumps(document))

    corebound(tmp_path, "import", "pytest-benchmark", *files, in_process=True)
    listed = corebound(tmp_path, "regressions", "--all", "--json", in_process=True)

    (entry,) = json.loads(listed.out)["commits"]
    assert entry["first_bad"]["commit"] == f"{25:040x}"
    assert entry["regressions"]["largest"] == pytest.approx(1.3, abs=0.02)


def test_a_folder_stands_for_the_files_below_it_and_an_empty_one_is_an_error(
    tmp_path: Path,
) -> None:
    folder = tmp_path / ".benchmarks" / "Linux-CPython"
    folder.mkdir(parents=True)

    empty = corebound(tmp_path, "import", "pytest-benchmark", ".benchmarks", in_process=True)
    shutil.copy(DATA / FILES["pytest-benchmark"], folder / "0001.json")
    shutil.copy(DATA / FILES["pytest-benchmark"], folder / "0002.json")
    imported = corebound(
        tmp_path, "import", "pytest-benchmark", ".benchmarks", "--json", in_process=True
    )

    assert empty.code == 2
    assert "no JSON file in this folder" in empty.err
    assert json.loads(imported.out)["files"] == 2


def test_what_a_file_does_not_say_comes_from_the_user_or_its_last_change(tmp_path: Path) -> None:
    file = tmp_path / "times.json"
    shutil.copy(DATA / FILES["hyperfine"], file)
    os.utime(file, (0, 0))

    (point,) = read("hyperfine", file)["seq 1[n=1]"].points
    series = read("hyperfine", file, host="box", at="2026-01-02T03:04:05Z")["seq 1[n=1]"]

    assert point.at == "1970-01-01T00:00:00Z"
    assert (series.host, series.points[0].at) == ("box", "2026-01-02T03:04:05Z")


@pytest.mark.parametrize("tool", FILES)
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"{}x", b'{"a": 1}', b"null", b"\xff\xfe"])
def test_another_file_is_one_error(tool: Tool, data: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "x" / "new"
    folder.mkdir(parents=True)
    file = folder / "estimates.json"
    file.write_bytes(data)

    with pytest.raises(InputError):
        read(tool, tmp_path if tool == "criterion" else file)


@pytest.mark.parametrize("tool", FILES)
def test_a_missing_file_is_one_error(tool: Tool, tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read(tool, tmp_path / "none")


def test_files_that_cannot_be_read_are_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{")

    files = result_files.read_all(
        [bad, DATA / FILES["hyperfine"]],
        READERS["hyperfine"],
        Context(project="p"),
        lambda _done, _of: None,
    )

    assert (files.files, [fault.file for fault in files.faults]) == (1, [str(bad)])


_ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value of a document."""
    items = (
        value.items() if isinstance(value, dict)
        else enumerate(value[:2]) if isinstance(value, list)
        else ()
    )  # fmt: skip
    return [path, *(place for name, inner in items for place in _places(inner, (*path, name)))]


@pytest.mark.parametrize("tool", FILES)
@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
def test_any_value_anywhere_is_read_or_rejected(
    tool: Tool, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / f"odd-{tool}"
    source = DATA / FILES[tool]
    if not folder.exists():
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder)
    file = folder
    if source.is_dir():
        name = data.draw(st.sampled_from(["estimates.json", "benchmark.json"]))
        for each in ("estimates.json", "benchmark.json"):
            inside = f"fib 15/new/{each}"
            shutil.copy(source / inside, folder / inside)
        file = folder / f"fib 15/new/{name}"
        text = file.read_text()
    else:
        text = source.read_text().removeprefix("window.BENCHMARK_DATA = ")
    document = [json.loads(text)]
    *parents, last = data.draw(st.sampled_from(_places(document)[1:]))
    part: Any = document
    for name in parents:
        part = part[name]
    part[last] = data.draw(_ODD)
    file.write_text(json.dumps(document[0]))

    try:
        series = READERS[tool](folder, Context(project="p", modified_at="2026-01-02T03:04:05Z"))
    except Unreadable:
        return
    for one in series:
        assert one.scenario.isprintable()
        assert all(point.value is None or point.value > 0 for point in one.points)
