"""Result files of other tools as series: real files of each, and odd ones."""

import json
import math
import os
import random
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corebound.errors import InputError
from corebound.exchange import result_files
from corebound.exchange.importers import IMPORTERS, Tool
from corebound.exchange.reading import Unreadable, label, parse_json
from corebound.exchange.result_files import Context
from corebound.records import history_files
from corebound.records.history import Series, is_failure
from support.commands import corebound
from support.examples import examples
from support.known import known
from support.paths import ROOT
from support.repositories import git
from support.texts import in_order

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
        IMPORTERS[tool].read,
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
    assert known(point.commit).sha.startswith("0123456789")
    assert ("python", "CPython 3.11.7") in point.environment_key


def test_each_run_of_hyperfine_is_a_launch() -> None:
    series = read("hyperfine", at="2026-01-02T03:04:05Z")

    (point,) = series["seq 1[n=1]"].points
    assert len(point.launches) == 8
    assert point.launches[1] == pytest.approx(1_147_103)
    assert known(point.bounds)[0] < point.launches[0] < known(point.bounds)[1] * 10


def test_the_repetitions_of_google_benchmark_are_one_launch_as_their_median_is() -> None:
    series = read("google-benchmark")
    file = DATA / "google-benchmark-aggregates.json"
    aggregates = read("google-benchmark", file)

    # Real times of 432.9, 585.8 and another repetition.
    name = "sum_million[arguments=10]"
    rows = json.loads((DATA / FILES["google-benchmark"]).read_text())["benchmarks"]
    times = sorted(
        row["real_time"]
        for row in rows
        if row["run_name"] == "sum_million/10" and row["run_type"] == "iteration"
    )
    assert series[name].points[0].launches == (times[1],)
    (skipped,) = series["skipped[default]"].points
    assert in_order(skipped.missing, "failed: ", "no such device")
    # Where repetitions were not written.
    told = json.loads(file.read_text())["benchmarks"]
    median = next(row["real_time"] for row in told if row["name"] == "sum_million/10_median")
    assert aggregates[name].points[0].launches == (median,)


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
    assert known(rust.points[0].commit).subject == "Fuse"
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
    assert "no file *.json" in empty.err
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
def test_another_or_a_missing_file_is_one_error(tool: Tool, tmp_path: Path) -> None:
    folder = tmp_path / "x" / "new"
    folder.mkdir(parents=True)
    file = folder / "estimates.json"
    for data in (b"", b"{", b"[]", b"{}x", b'{"a": 1}', b"null", b"\xff\xfe"):
        file.write_bytes(data)
        with pytest.raises(InputError):
            read(tool, tmp_path if tool == "criterion" else file)
    with pytest.raises(InputError):
        read(tool, tmp_path / "none")


def test_files_that_cannot_be_read_are_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{")

    files = result_files.read_all(
        [bad, DATA / FILES["hyperfine"]],
        IMPORTERS["hyperfine"].read,
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
@settings(examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
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
        items = [
            *IMPORTERS[tool].read(folder, Context(project="p", modified_at="2026-01-02T03:04:05Z"))
        ]
    except Unreadable:
        return
    for one in (item for item in items if isinstance(item, Series)):
        assert one.scenario.isprintable()
        assert all(point.value is None or point.value > 0 for point in one.points)


def history(tmp_path: Path, *units: tuple[str, str, float]) -> Path:
    """A data.js with 20 commits for each (tool, unit, value)."""
    entries = []
    for number, (tool, unit, value) in enumerate(one for one in units for _ in range(20)):
        commit = {"id": f"{number:040x}", "message": "m", "timestamp": at(number)}
        benches = [{"name": "sum", "unit": unit, "value": value * (1 + number % 5 / 1000)}]
        moment = datetime.fromisoformat(at(number)).timestamp() * 1000
        entries.append({"commit": commit, "date": moment, "tool": tool, "benches": benches})
    file = tmp_path / "data.js"
    file.write_text(f"window.BENCHMARK_DATA = {json.dumps({'entries': {'S': entries}})}")
    return file


def at(number: int) -> str:
    return f"2026-{1 + number // 28:02}-{1 + number % 28:02}T03:00:00+00:00"


SMALLER, BIGGER = "customSmallerIsBetter", "customBiggerIsBetter"


@pytest.mark.parametrize(
    ("units", "series"),
    [
        (((SMALLER, "median ms", 50.0), (SMALLER, "ms", 50.0)), 1),
        (((SMALLER, "ms", 50.0), (SMALLER, "median ms", 50.0)), 1),
        (((SMALLER, "us", 5e4), (SMALLER, "s", 0.05)), 1),
        (((SMALLER, "B", 1e6), (SMALLER, "KiB", 1e6 / 1024)), 1),
        (((SMALLER, "B", 1e6), (SMALLER, "KB", 1e6 / 1024)), 1),
        (((SMALLER, "MB", 1.0), (SMALLER, "MiB", 1e6 / 2**20)), 1),
        (((BIGGER, "ops/s", 2e5), (BIGGER, "kops/sec", 200.0)), 1),
        (((BIGGER, "MB/s", 1.0), (BIGGER, "B/s", 1e6)), 1),
        (((BIGGER, "ops/s", 20.0), (SMALLER, "ms", 50.0)), 2),
        (((SMALLER, "points", 20.0), (SMALLER, "ms", 50.0)), 2),
        (((SMALLER, "points", 20.0), (BIGGER, "points", 50.0)), 2),
        (((SMALLER, "Mb", 20.0), (SMALLER, "MB", 50.0)), 2),
    ],
)
def test_a_unit_continues_its_series_or_does_not_convert_and_that_is_said_once(
    tmp_path: Path, units: tuple[tuple[str, str, float], ...], series: int
) -> None:
    history(tmp_path, *units)

    imported = imports(tmp_path, "github-action-benchmark", "data.js")
    again = imports(tmp_path, "github-action-benchmark", "data.js")

    assert (imported["series"], imported["figures"]) == (series, 40)
    assert ["do not convert" in fault["what"] for fault in imported["faults"]] == [True] * (
        series - 1
    )
    assert (again["series"], again["added"], again["faults"]) == (series, 0, [])
    assert not changes(tmp_path)


def test_a_history_that_was_cut_continues_the_series_of_its_unit(tmp_path: Path) -> None:
    whole = ((BIGGER, "ops/s", 20.0), (SMALLER, "ms", 50.0))
    history(tmp_path, *whole)
    imports(tmp_path, "github-action-benchmark", "data.js")
    document = json.loads((tmp_path / "data.js").read_text().partition("=")[2])
    document["entries"]["S"] = document["entries"]["S"][30:]
    (tmp_path / "data.js").write_text(json.dumps(document))

    cut = imports(tmp_path, "github-action-benchmark", "data.js")

    assert (cut["series"], cut["points"], cut["faults"]) == (2, 40, [])


def test_two_units_of_one_name_in_every_run_stay_two_series(tmp_path: Path) -> None:
    file = history(tmp_path, (SMALLER, "B/op", 300.0), (SMALLER, "B/op", 300.0))
    document = json.loads(file.read_text().partition("=")[2])
    entries = document["entries"]["S"]
    for number, entry in enumerate(entries):
        other = {"name": "sum", "unit": "ns/op", "value": 50.0}
        entry["benches"].insert(number % 2, other)
    file.write_text(json.dumps(document))
    first = imports(tmp_path, "github-action-benchmark", "data.js")
    document["entries"]["S"] = entries[11:]
    file.write_text(json.dumps(document))

    again = imports(tmp_path, "github-action-benchmark", "data.js")

    assert (first["series"], first["figures"], len(first["faults"])) == (2, 80, 1)
    assert (again["series"], again["figures"], again["faults"]) == (2, 80, [])
    assert not changes(tmp_path)


def imports(folder: Path, tool: str, *arguments: str) -> Any:
    done = corebound(folder, "import", tool, *arguments, "--json", in_process=True)
    return json.loads(done.out)


def changes(folder: Path) -> Any:
    return json.loads(corebound(folder, "regressions", "--all", "--json", in_process=True).out)[
        "commits"
    ]


LONG = "x" * 250


def hyperfine(command: str, **more: Any) -> dict[str, Any]:
    return {"command": command, "times": [0.1, 0.11], **more}


def pytest_row(name: str, **more: Any) -> dict[str, Any]:
    stats = {"median": 0.1}
    return {"name": name, "fullname": f"t.py::{name}", "options": {}, "stats": stats, **more}


def gbench_row(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "run_name": name, "real_time": 10.0, "time_unit": "ns", **more}


def document_of(tool: Tool, rows: list[Any]) -> Any:
    """A file of a tool with these rows."""
    match tool:
        case "hyperfine":
            return {"results": rows}
        case "pytest-benchmark":
            info = {"id": "a" * 40, "time": "2026-01-01T00:00:00+01:00"}
            machine = {"node": "box"}
            moment = "2026-01-02T03:04:05"
            return {
                "machine_info": machine, "commit_info": info, "benchmarks": rows,
                "datetime": moment,
            }  # fmt: skip
        case "google-benchmark":
            return {"context": {"host_name": "box"}, "benchmarks": rows}
        case "pyperf":
            return {"version": "1.0", "benchmarks": rows}
        case "bencher":
            return dict(rows)
        case _:
            commit = {"id": "a" * 40, "message": "m"}
            entry = {"commit": commit, "date": 1.7e12, "tool": "cargo", "benches": rows}
            return {"entries": {"S": [entry]}}


def read_document(tmp_path: Path, document: Any, tool: Tool) -> result_files.ResultFiles:
    file = tmp_path / "f.json"
    file.write_text(json.dumps(document))
    return result_files.read_all(
        [file], IMPORTERS[tool].read, Context(project="p"), lambda _done, _of: None
    )


def rows_of(tool: Tool, *names: str) -> list[Any]:
    """A row of a tool for each name."""
    date = "2026-01-02 03:04:05"
    makers: dict[str, Callable[[str], Any]] = {
        "hyperfine": hyperfine,
        "pytest-benchmark": lambda name: pytest_row(f"test[{name}]"),
        "google-benchmark": gbench_row,
        "pyperf": lambda name: {
            "metadata": {"name": name, "date": date}, "runs": [{"values": [0.1]}],
        },
        "bencher": lambda name: (name, {"latency": {"value": 3.0}}),
        "github-action-benchmark": lambda name: {"name": name, "unit": "ns", "value": 3.0},
    }  # fmt: skip
    return [*map(makers[tool], names)]


ROWS: tuple[Tool, ...] = (
    "hyperfine", "pytest-benchmark", "google-benchmark", "pyperf", "bencher",
    "github-action-benchmark",
)  # fmt: skip


@pytest.mark.parametrize("tool", ROWS)
def test_names_that_differ_anywhere_are_different_series(tmp_path: Path, tool: Tool) -> None:
    for pair in (
        (f"{LONG}one", f"{LONG}two"),
        ("a\x1bb", "a\x07b"),
        (f"{'y' * 199}a", f"{'y' * 199}b"),
        (f"A/{LONG}1", f"A/{LONG}2"),
    ):
        files = read_document(tmp_path, document_of(tool, rows_of(tool, *pair)), tool)

        assert len({series.id for series in files.series}) == 2
        assert all(len(series.id) < 600 and series.id.isprintable() for series in files.series)


@given(names=st.sets(st.text(min_size=1, max_size=6).map(lambda end: LONG + end), min_size=2))
def test_labels_differ_as_names_do(names: set[str]) -> None:
    assert len(set(map(label, names))) == len(names)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": "x,y"}, {"a": "x;y"}),
        ({"a": "x=y"}, {"a": "x:y"}),
        ({"a": "x;y,z"}, {"a": "x;y;z"}),
        ({"a": "1,b=2"}, {"a": "1", "b": "2"}),
    ],
)
def test_parameters_that_differ_are_different_cells(
    one: dict[str, str], other: dict[str, str]
) -> None:
    assert result_files.key_of(one) != result_files.key_of(other)


def test_parameters_of_pytest_that_look_alike_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    rows = [
        pytest_row("t[a]", params={"x": "same"}, param="a"),
        pytest_row("t[b]", params={"x": "same"}, param="b"),
        pytest_row("u[f0]", params={"f": "UNSERIALIZABLE[<f at 0x7f01>]"}, param="f0"),
        pytest_row("v[1]", params={"n": 1}, param="1"),
    ]

    files = read_document(tmp_path, document_of("pytest-benchmark", rows), "pytest-benchmark")

    assert {series.cell for series in files.series} == {"param=a", "param=b", "param=f0", "n=1"}


def test_a_repeated_argument_name_of_google_benchmark_is_no_loss(tmp_path: Path) -> None:
    rows = rows_of("google-benchmark", "BM/n:1/n:3", "BM/n:2/n:3")

    files = read_document(tmp_path, document_of("google-benchmark", rows), "google-benchmark")

    assert len(files.series) == 2


@pytest.mark.parametrize("tool", ROWS)
def test_a_row_that_is_none_does_not_cost_the_others(tmp_path: Path, tool: Tool) -> None:
    bad: Any
    for bad in (None, 3, "x", [], {}, {"name": []}):
        rows = rows_of(tool, "good", "fine")
        rows.insert(1, ("bad", bad) if tool == "bencher" else bad)

        files = read_document(tmp_path, document_of(tool, rows), tool)

        assert len([series for series in files.series if series.points.value_count]) == 2
        assert files.files == 1
        # Bencher's measures are an object, and an empty one has none to miss.
        is_none = bad == {} or (tool == "bencher" and not isinstance(bad, dict))
        assert len(files.faults) == 1 or is_none


@pytest.mark.parametrize("tool", ROWS)
@pytest.mark.parametrize("value", [None, "fast", [], {}, float("nan"), float("inf"), 0, -1, True])
def test_a_value_that_is_none_is_a_missing_point_with_a_reason(
    tmp_path: Path, tool: Tool, value: Any
) -> None:
    rows = rows_of(tool, "good", "bad")
    bad: Any = rows[1]
    match tool:
        case "hyperfine":
            bad["times"] = [0.1, value]
        case "pytest-benchmark":
            bad["stats"]["median"] = value
        case "google-benchmark":
            bad["real_time"] = value
        case "pyperf":
            bad["runs"][0]["values"] = [0.1, value, 0.1]
        case "bencher":
            bad[1]["latency"]["value"] = value
        case _:
            bad["value"] = value

    files = read_document(tmp_path, document_of(tool, rows), tool)

    names = {series.points[0].value is not None for series in files.series}
    odd = value != 0 and not isinstance(value, int) and value != math.inf
    if value is True or (tool == "pyperf" and value in (0, -1)):
        return  # Python's JSON has no other number for true, and a median may leave these out
    assert len(files.series) == 2
    assert names == {True, False}
    (missing,) = (one.points[0].missing for one in files.series if one.points[0].missing)
    assert is_failure(missing) == (value not in (0, -1) if isinstance(value, int) else True)
    assert [("bad" in fault.what) for fault in files.faults] == ([True] if odd else [])


@pytest.mark.parametrize(
    ("codes", "reason"),
    [
        ([0, 0], None),
        ([], None),
        (None, None),
        ([1, 1], "exit code 1"),
        ([0, 2], "exit code 2 in 1 of 2 runs"),
        ([None, 0], "ended by a signal in 1 of 2 runs"),
        ([139, None], "exit code 139"),
    ],
)
def test_a_command_of_hyperfine_that_failed_has_no_result(
    tmp_path: Path, codes: object, reason: str | None
) -> None:
    document = document_of("hyperfine", [hyperfine("a", exit_codes=codes)])

    (point,) = read_document(tmp_path, document, "hyperfine").series[0].points

    assert point.missing == reason
    assert (point.value is None) == (reason is not None)


@pytest.mark.parametrize(
    ("more", "missing"),
    [
        ({"skipped": True, "skip_message": "no AVX512", "real_time": 0.0}, "skipped: no AVX512"),
        ({"error_occurred": True, "error_message": "lost"}, "failed: lost"),
        ({"error_occurred": True}, "failed: no reason"),
    ],
)
def test_a_benchmark_that_google_benchmark_left_out_keeps_its_reason(
    tmp_path: Path, more: dict[str, Any], missing: str
) -> None:
    rows = [gbench_row("BM_a"), gbench_row("BM_b", **more)]

    files = read_document(tmp_path, document_of("google-benchmark", rows), "google-benchmark")

    assert [series.points[0].missing for series in files.series] == [None, missing]
    assert not files.faults


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"results": [\n{"iterations": 1,000,000}]}', "line 2 column 18"),
        ('{"a": 1,5e+01}', "line 1 column 9"),
        ('{"rms": 2%}', "line 1 column 10"),
        ('{"a": b}', "line 1 column 7"),
        # Numbers that JSON does not have, in the wrong place.
        *((text, "JSON") for text in ("{nan: 1}", "[1 nan]", "{inf: NaN}", "nan nan")),
        ("[Infinity: 2]", "JSON"),
    ],
)
def test_what_a_tool_wrote_wrongly_is_not_called_a_bad_copy(text: str, told: str) -> None:
    with pytest.raises(Unreadable, match=told) as caught:
        parse_json(text.encode())

    assert "opy" not in caught.value.fix or told == "JSON"


@given(cut=st.integers(1, 60))
def test_a_truncated_document_is_called_truncated(cut: int) -> None:
    whole = b'{"a": [1.5e-3, true, null, "b\\u00e9\\n", {"c": -12, "d": []}], "e": 1}'

    with pytest.raises(Unreadable, match="truncated"):
        parse_json(whole[: -min(cut, len(whole) - 1)])


@pytest.mark.parametrize("number", ["nan", "-nan", "inf", "-inf", "NaN", "-Infinity", "-nan(ind)"])
def test_numbers_that_json_does_not_have_are_read(number: str) -> None:
    document = parse_json(f'{{"a": {number}, "b": [{number}, 1], "{number}": "nan, inf"}}'.encode())

    assert not math.isfinite(document["a"])
    assert document["b"][1] == 1
    assert document[number] == "nan, inf"


def test_bytes_that_are_no_text_do_not_cost_a_file() -> None:
    assert parse_json(b'{"caf\xe9": 1}') == {"caf\ufffd": 1}


@pytest.mark.parametrize("tool", IMPORTERS)
def test_a_pipe_or_a_device_is_an_error_at_once(tmp_path: Path, tool: Tool) -> None:
    folder = tmp_path / "criterion" / "new"
    folder.mkdir(parents=True)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    os.mkfifo(folder / "estimates.json")

    for name in ("fifo", "zero", "criterion"):
        if (name == "criterion") == (tool == "criterion"):
            with pytest.raises(InputError, match="not a regular file"):
                read(tool, tmp_path / name)


def test_a_pipe_in_a_folder_does_not_cost_the_other_files(tmp_path: Path) -> None:
    shutil.copy(DATA / FILES["hyperfine"], tmp_path / "times.json")
    os.mkfifo(tmp_path / "fifo.json")

    imported = imports(tmp_path, "hyperfine", ".")

    assert (imported["files"], len(imported["faults"])) == (1, 1)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "https://a b", 3, None])
def test_only_addresses_of_the_web_become_links(tmp_path: Path, url: object) -> None:
    rows = rows_of("github-action-benchmark", "a")
    document = {"repoUrl": url, **document_of("github-action-benchmark", rows)}

    (series,) = read_document(tmp_path, document, "github-action-benchmark").series

    assert series.commit_url is None


def test_a_commit_of_pytest_benchmark_has_its_own_time(tmp_path: Path) -> None:
    document = document_of("pytest-benchmark", rows_of("pytest-benchmark", "a"))

    (point,) = read_document(tmp_path, document, "pytest-benchmark").series[0].points

    assert point.at == "2026-01-02T03:04:05Z"
    assert known(point.commit).committed_at == "2025-12-31T23:00:00Z"


def test_a_clone_in_the_current_folder_gives_commits_their_subjects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-01T00:00:00Z")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "Fuse the loops")
    sha = git(tmp_path, "rev-parse", "HEAD").strip()
    document = document_of("pytest-benchmark", rows_of("pytest-benchmark", "a", "b"))
    document["commit_info"] = {"id": sha, "dirty": True}
    (tmp_path / "f.json").write_text(json.dumps(document))

    stored = imports(tmp_path, "pytest-benchmark", "f.json")["file"]

    for series in history_files.read(tmp_path / stored):
        commit = known(series.points[0].commit)
        assert (commit.sha, commit.subject, commit.dirty) == (sha, "Fuse the loops", True)
        assert commit.committed_at == "2026-01-01T00:00:00Z"
