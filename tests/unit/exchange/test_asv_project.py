"""Reading asv result trees: points, series, skipped files and repeated imports."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.errors import Fault, InputError
from corebound.exchange import history_import
from corebound.exchange.asv import layout, project, reader, results
from corebound.exchange.asv.environments import MergeOptions
from corebound.exchange.asv.series import Project, SeriesBuilder
from corebound.exchange.reading import Unreadable
from corebound.records import history_files
from support.asv_projects import (
    DATE_MS,
    SHA,
    TIME,
    a_tree,
    by_cell,
    only_points,
    result_file,
    result_tree,
)

NO_PROJECT = Project(layout=layout.AsvLayout(name="p", results=Path()), benchmarks={}, commits={})


def read(folder: Path) -> project.AsvResults:
    def show(done: int, total: int) -> None:
        assert 0 <= done <= total

    return project.read(folder, name=None, repo=None, progress=show)


def test_seconds_become_nanoseconds_with_their_interval_and_samples(tmp_path: Path) -> None:
    row = [[0.25], [], "v1", None, None, [0.2], [0.3], None, None, None, None, [[0.2, 0.3]]]
    tree = result_tree(tmp_path, result_file({"time_it": row}), benchmarks=TIME)

    (series,) = read(tree).series

    (point,) = series.points
    assert (series.unit, point.value, point.missing) == ("ns", 0.25e9, None)
    assert (point.bounds, point.launches) == ((0.2e9, 0.3e9), (0.2e9, 0.3e9))
    assert (point.at, point.commit and point.commit.sha) == ("2021-11-19T22:48:15Z", SHA)
    assert series.id == "trees/box/time_it[environment=virtualenv-py3.11]"


def test_units_and_source_are_those_of_benchmarks_json_or_of_the_name(tmp_path: Path) -> None:
    source = "def time_it():\n\tsort(rows)  # <b>"
    about = {
        "time_it": {"unit": "seconds", "code": source},
        "mem_it": {"unit": "bytes", "code": ["no text"]},
        "track_it": {"unit": "rows per s"},
    }
    row = result_file({name: [[7], []] for name in (*about, "peakmem_it", "suite.S.time_other")})

    found = read(result_tree(tmp_path, row, benchmarks=about)).series

    assert {one.scenario: (one.unit, one.points[0].value, one.code) for one in found} == {
        "time_it": ("ns", 7e9, source),
        "mem_it": ("bytes", 7, None),
        "track_it": ("rows per s", 7, None),
        "peakmem_it": ("bytes", 7, None),
        "suite.S.time_other": ("ns", 7e9, None),
    }
    assert history_files.decode(history_files.encode(found)) == found


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "failed"),
        (math.nan, "skipped, or the value is NaN"),
        (math.inf, "the value is infinite"),
        (10**400, "the value is infinite"),
        (0, "0 seconds: only values above 0 can be compared"),
        (-1.5, "-1.5 seconds: only values above 0 can be compared"),
        ("fast", "'fast' is not a number"),
        (True, "'True' is not a number"),
    ],
)
def test_a_missing_value_has_a_reason(tmp_path: Path, value: object, why: str) -> None:
    tree = result_tree(tmp_path, result_file({"time_it": [[value], []]}), benchmarks=TIME)

    (point,) = only_points(read(tree))

    assert (point.value, point.missing) == (None, why)


def test_an_infinite_or_incomplete_interval_is_dropped(tmp_path: Path) -> None:
    row = [[1.0, 1.0, 1.0], [["1", "2", "3"]], "v", None, None,
           [-math.inf, None, 0.5], [math.inf, 2.0, 2.0]]  # fmt: skip
    tree = result_tree(tmp_path, result_file({"time_it": row}), benchmarks=TIME)

    found = [one.points[0].bounds for one in read(tree).series]

    assert found == [None, None, (0.5e9, 2e9)]


PRODUCT = [["10", "20"], ["'a'", "'b'"]]
NO_RESULT = "no result"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        # The last parameter varies fastest.
        ([1.0, 2.0, 3.0, 4.0], [1e9, 2e9, 3e9, 4e9]),
        ([1.0, 2.0, 3.0], [1e9, 2e9, 3e9, NO_RESULT]),
        (None, ["failed"] * 4),
    ],
)
def test_values_follow_the_product_of_parameters(
    tmp_path: Path, values: list[float] | None, expected: list[object]
) -> None:
    about = {"time_it": {"unit": "seconds", "param_names": ["n", "kind"]}}
    tree = result_tree(tmp_path, result_file({"time_it": [values, PRODUCT]}), benchmarks=about)

    cells = by_cell(read(tree))

    assert [*cells] == ["n=10,kind=a", "n=10,kind=b", "n=20,kind=a", "n=20,kind=b"]
    for series, value in zip(cells.values(), expected, strict=True):
        (point,) = series.points
        assert point.value == value or str(value) in (point.missing or "")


@pytest.mark.parametrize(
    ("values", "cells"),
    [
        (["'1'", "1"], ["param1='1'", "param1=1"]),
        (["f", "f"], ["param1=f (0)", "param1=f (1)"]),
        (["<class 'int'>"], ["param1=int"]),
        # An array as NumPy printed it once, and one as it does; two of one file stay apart.
        (["[ 0.   0.5 -1. ] eV"], ["param1=[0. 0.5 -1.] eV"]),
        (["[0. 0.5 -1.] eV"], ["param1=[0. 0.5 -1.] eV"]),
        (["[ 1.]", "[1.]"], ["param1=[ 1.]", "param1=[1.]"]),
        (["1  2"], ["param1=1  2"]),
    ],
)
def test_different_parameter_values_stay_different(
    tmp_path: Path, values: list[str], cells: list[str]
) -> None:
    tree = result_tree(
        tmp_path, result_file({"time_it": [[1.0] * len(values), [values]]}), benchmarks=TIME
    )

    assert list(by_cell(read(tree))) == cells


def test_shortened_values_still_differ(tmp_path: Path) -> None:
    values = ["x" * 5000 + "1", "x" * 5000 + "2", "\x1b[31m", "\x1b[32m"]
    tree = result_tree(tmp_path, result_file({"time_it": [[1.0] * 4, [values]]}), benchmarks=TIME)

    cells = list(by_cell(read(tree)))

    assert len(set(cells)) == 4
    assert all(cell.isprintable() and len(cell) < 300 for cell in cells)


def test_version_1_is_read_with_numbers_and_objects(tmp_path: Path) -> None:
    stats = {"ci_99": [0.9, 1.1], "q_25": 1, "q_75": 1}
    results = {
        "time_bare": 0.5,
        "time_failed": None,
        "time_none": {"result": None, "params": [["1", "2", "3"]]},
        "time_one": {"result": [1.0], "stats": [stats], "params": [], "samples": [[1.0, 1.0]]},
        "time_many": {"result": [1.0, None], "params": [["1", "2"]], "stats": [stats, None]},
    }
    document = {
        "version": 1, "commit_hash": SHA, "date": DATE_MS, "python": "2.7",
        "requirements": {"numpy": "1.8", "six": None}, "params": {"machine": "box"},
        "results": results, "profiles": {},
    }  # fmt: skip
    tree = result_tree(tmp_path, document)

    found = {(one.scenario, one.cell): one.points[0] for one in read(tree).series}

    where = "environment=py2.7-numpy1.8-six"
    assert found["time_bare", where].value == 0.5e9
    assert found["time_failed", where].missing == "failed"
    none = [one.missing for (name, _), one in found.items() if name == "time_none"]
    assert none == ["failed"] * 3
    assert found["time_one", where].bounds == (0.9e9, 1.1e9)
    assert found["time_one", where].launches == (1e9, 1e9)
    assert found["time_many", f"param1=1,{where}"].value == 1e9
    assert found["time_many", f"param1=2,{where}"].missing == "failed"


def test_points_are_in_the_order_of_commit_dates(tmp_path: Path) -> None:
    dates = [DATE_MS + 2_000, DATE_MS, DATE_MS + 1_000]
    files = [
        result_file({"time_it": [[float(number)], []]}, date=date, commit_hash=f"{number}" * 40)
        for number, date in enumerate(dates, start=1)
    ]

    points = only_points(read(result_tree(tmp_path, *files, benchmarks=TIME)))

    assert [point.value for point in points] == [2e9, 3e9, 1e9]


def versions(found: project.AsvResults) -> list[str]:
    return [dict(point.environment_key)["benchmark"] for point in only_points(found)]


def nights(*versions: str | None) -> list[dict[str, Any]]:
    return [
        result_file(
            {"time_it": [[1.0], [], version]}, date=DATE_MS + day, commit_hash=f"{day:040x}"
        )
        for day, version in zip(itertools.count(0, 1000), versions, strict=False)
    ]


@pytest.mark.parametrize(
    ("told", "known"),
    [
        (["a" * 64, "b" * 64], ["a" * 12, "b" * 12]),
        ([None, "one", None, "two", None], ["one", "one", "two", "two", ""]),
    ],
)
def test_another_benchmark_version_is_an_environment_change_and_a_missing_one_is_none(
    tmp_path: Path, told: list[str | None], known: list[str]
) -> None:
    tree = result_tree(tmp_path, *nights(*told), benchmarks=TIME)

    assert versions(read(tree)) == known


def test_another_machine_description_is_an_environment_change(tmp_path: Path) -> None:
    tree = a_tree(tmp_path)

    (point,) = only_points(read(tree))

    assert point.environment_key == (("cpu", "a CPU"), ("os", "Linux"), ("benchmark", ""))


def test_environments_are_separate_series(tmp_path: Path) -> None:
    files = [
        result_file({"time_it": [[1.0], []]}, env_name=f"virtualenv-py3.{minor}")
        for minor in (10, 11)
    ]

    found = read(result_tree(tmp_path, *files, benchmarks=TIME))

    assert [one.cell for one in found.series] == [
        "environment=virtualenv-py3.10",
        "environment=virtualenv-py3.11",
    ]


def configured(folder: Path, **configuration: object) -> project.AsvResults:
    """The results of two benchmarks of a project with this configuration."""
    tree = result_tree(folder, result_file({"time_it": [[1.0], []], "size.time_all": [[1.0], []]}))
    (tree / "asv.conf.json").write_text(json.dumps({"project": "p", **configuration}))
    return read(tree)


def test_asv_conf_gives_margins_importance_and_links_of_commits(tmp_path: Path) -> None:
    found = configured(
        tmp_path,
        regressions_thresholds={".*it": 0.1, "time_i": 0.2},
        secondary_benchmarks=["size\\."],
        show_commit_url="https://example.org/commit/",
    )

    assert {one.scenario: (one.margin, one.importance) for one in found.series} == {
        "time_it": (0.2, "primary"), "size.time_all": (0.02, "secondary"),
    }  # fmt: skip
    assert {one.commit_url for one in found.series} == {"https://example.org/commit/"}
    assert {one.confidence for one in found.series} == {0.99}


@pytest.mark.parametrize("patterns", ["size", ["("], [1], {"size": 1}])
def test_patterns_that_are_none_are_an_error(tmp_path: Path, patterns: object) -> None:
    with pytest.raises(InputError, match="secondary_benchmarks"):
        configured(tmp_path, secondary_benchmarks=patterns)


@pytest.mark.parametrize("url", ["javascript:alert(1)//", "https://example.org/ x", 7])
def test_only_a_web_address_becomes_a_link(tmp_path: Path, url: object) -> None:
    assert configured(tmp_path, show_commit_url=url).series[0].commit_url is None


@pytest.mark.parametrize("named", [".", "asv.conf.json", "results"])
def test_a_project_is_named_by_its_folder_its_configuration_or_its_results(
    tmp_path: Path, named: str
) -> None:
    tree = a_tree(tmp_path)

    assert read(tree / named).project == "trees"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b'{"commit_hash": "a', "truncated JSON"),
        (b"\xff\xfe", "is empty"),
        (b"[]", "no result file"),
        (b"{}", "no result file"),
        (json.dumps(result_file({}, version=3)).encode(), "version 3"),
        (json.dumps(result_file({}, commit_hash=None)).encode(), "damaged"),
        (json.dumps(result_file({"x": 3})).encode(), "damaged"),
        (
            json.dumps(result_file({"x": [[1.0], ["1"] * 2, 3]}, result_columns=7)).encode(),
            "damaged",
        ),
        (json.dumps(result_file({"x": [{"a": 3}, []]})).encode(), "damaged"),
        (json.dumps(result_file({"x": [None, [["1"] * 100] * 9]})).encode(), "combinations"),
    ],
)
def test_a_damaged_file_is_rejected_with_a_reason(tmp_path: Path, data: bytes, says: str) -> None:
    tree = result_tree(tmp_path, {})
    (tree / "results" / "box" / "00000000-env.json").write_bytes(data)

    with pytest.raises(InputError, match=says):
        read(tree)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
        max_leaves=12,
    ),
    st.sampled_from(["results", "params", "requirements", "date", "env_name", "commit_hash"]),
    st.sampled_from([1, 2]),
)
def test_any_file_is_read_or_rejected(value: object, key: str, version: int) -> None:
    whole: dict[str, Any] = {"time_it": [[1.0], [], "v"]} if version == 2 else {"time_it": 1.0}
    data = json.dumps(result_file(whole, version=version) | {key: value}).encode()
    gathered = SeriesBuilder(NO_PROJECT)
    try:
        gathered.add(results.read(data))
    except Unreadable:
        return
    read_back = history_files.decode(history_files.encode(gathered.series()))
    assert all(one.points for one in read_back)


@given(st.lists(st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.floats())))
def test_any_row_is_read_or_rejected(row: list[object]) -> None:
    gathered = SeriesBuilder(NO_PROJECT)

    damaged = gathered.add(results.read(json.dumps(result_file({"time_it": row})).encode()))

    series = gathered.series()
    assert bool(damaged) != bool(series)
    assert history_files.decode(history_files.encode(series)) == series


def test_damaged_files_are_reported_and_the_rest_is_read_if_there_is_any(tmp_path: Path) -> None:
    tree = a_tree(tmp_path)
    torn = tree / "results" / "box" / "torn.json"
    torn.write_text('{"commit_hash": "')
    (tmp_path / "empty" / "results").mkdir(parents=True)

    found = read(tree)

    assert (found.files, [fault.file for fault in found.faults]) == (1, [str(torn)])
    with pytest.raises(InputError, match="no result files"):
        read(tmp_path / "empty" / "results")
    with pytest.raises(InputError, match="no result file can be read"):
        read(result_tree(tmp_path / "bad", {"version": 2}))


def test_importing_twice_changes_nothing(tmp_path: Path) -> None:
    tree = result_tree(tmp_path, *nights("v", "v"), benchmarks=TIME)
    records = tmp_path / "records"
    first = history_import.keep("trees", read(tree).series, records)
    bytes_then = first.file.read_bytes()

    again = history_import.keep("trees", read(tree).series, records)

    assert (first.added, again.added) == (2, 0)
    assert again.file.read_bytes() == bytes_then


def test_importing_more_files_keeps_points_of_deleted_files(tmp_path: Path) -> None:
    one, two, three = nights("v", "v", None)
    records = tmp_path / "records"
    history_import.keep(
        "trees", read(result_tree(tmp_path / "1", one, two, benchmarks=TIME)).series, records
    )
    changed = two | {"results": {"time_it": [[2.0], [], "v"]}}

    now = history_import.keep(
        "trees", read(result_tree(tmp_path / "2", changed, three, benchmarks=TIME)).series, records
    )

    (series,), _ = history_files.read_all(records)
    assert now.added == 1
    assert [point.value for point in series.points] == [1e9, 2e9, 1e9]


def test_unchanged_files_are_not_read_again(tmp_path: Path) -> None:
    files = [
        result_file({"time_it": [[1.0], []]}),
        result_file({"time_it": [[2.0], []]}, date=DATE_MS + 1),
    ]
    tree = result_tree(tmp_path, *files)
    first, records = read(tree), tmp_path / "records"
    history_import.keep(first.project, first.series, records)
    project.keep_sources(records, first)

    again = project.read(
        tree, name=None, repo=None, progress=lambda _done, _of: None, records=records
    )

    assert (len(first.sources), again.files, again.series) == (2, 2, ())


def test_with_other_settings_all_files_are_read_again(tmp_path: Path) -> None:
    tree = a_tree(tmp_path, benchmarks=None)
    before = read(tree).settings
    (tree / "results" / "benchmarks.json").write_text(json.dumps(TIME))

    assert read(tree).settings != before


def test_files_are_read_one_at_a_time(tmp_path: Path) -> None:
    # A history is gigabytes when it is unpacked; its files are not held together.
    tree = result_tree(tmp_path, *(result_file({"time_it": [[1.0], []]}) for _ in range(2)))
    faults: list[Fault] = []
    found = reader.unread(tree / "results", {}, faults)
    files = reader.read_each(found, MergeOptions(), lambda _done, _of: None, faults)
    next(files)
    found.files[1].unlink()

    assert (list(files), [fault.file for fault in faults]) == ([], [str(found.files[1])])


def test_a_file_s_commit_is_found_without_parsing_it(tmp_path: Path) -> None:
    document = result_file({"time_it": [[math.nan], []]}, commit_hash="b" * 40)
    tree = result_tree(tmp_path, document)

    assert reader.unread(tree / "results", {}, []).commits == {"b" * 40}


def on_days(*results: dict[str, Any]) -> list[dict[str, Any]]:
    """Files of one commit a day."""
    return [
        result_file(results_of_day, commit_hash=f"{day:040}", date=DATE_MS + day * 86_400_000)
        for day, results_of_day in enumerate(results)
    ]


def figures(found: project.AsvResults) -> dict[str, list[float | None]]:
    """Those of each benchmark and its parameters, as they stand in the files."""
    return {
        f"{one.scenario} {one.cell.rpartition(',')[0]}".strip(): [p.value for p in one.points]
        for one in found.series
    }


def test_files_may_have_different_benchmarks_and_parameters_in_any_order(tmp_path: Path) -> None:
    a, b, c = "mem_a", "mem_b", "mem_c"
    files = on_days(
        {a: [[1], []], b: [[2], []], c: [[1, 2], [["10", "20"]]]},
        {b: [[3], []], a: [[4], []], c: [[3, 4, 5], [["5", "10", "20"]]]},
        {b: [[5], []], c: [[6, 7], [["10", "20"]]]},
        {a: [[6], []]},
    )

    assert figures(read(result_tree(tmp_path, *files))) == {
        a: [1, 4, 6], b: [2, 3, 5],
        f"{c} param1=10": [1, 4, 6], f"{c} param1=20": [2, 5, 7], f"{c} param1=5": [3],
    }  # fmt: skip


def test_of_several_files_of_a_commit_the_last_value_counts(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"mem_a": [[1], []]}, {"mem_a": [[2], []], "mem_b": [[3], []]}, {"mem_a": [[None], []]},
    ]  # fmt: skip

    assert figures(read(result_tree(tmp_path, *map(result_file, rows)))) == {
        "mem_a": [2], "mem_b": [3],
    }  # fmt: skip


@pytest.mark.parametrize(
    "damaged",
    [
        # Each is seen to be damaged when some of it was read already.
        [[3], [], "v", None, None, [1.0], ["high"]],
        ["three", [], "v", None, None, [1.0], [9.0]],
    ],
)
def test_a_damaged_benchmark_is_skipped_without_shifting_others(
    tmp_path: Path, damaged: list[object]
) -> None:
    files = on_days(
        {"mem_a": [[1], []], "mem_b": [[2], []]},
        {"mem_a": damaged, "mem_b": [[4], []]},
        {"mem_a": [[5], []], "mem_b": [[6], []]},
    )

    found = read(result_tree(tmp_path, *files, benchmarks={"mem_a": {}, "mem_b": {}}))

    assert figures(found) == {"mem_a": [1, 5], "mem_b": [2, 4, 6]}
    assert {point.bounds for one in found.series for point in one.points} == {None}
    (fault,) = found.faults
    assert "1 of 2 benchmarks" in fault.what
