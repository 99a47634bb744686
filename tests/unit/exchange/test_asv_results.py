"""The result files of public asv projects: machines, layouts and damaged entries."""

import contextlib
import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from corebound.errors import InputError
from corebound.exchange.asv import project, results
from corebound.exchange.asv.environments import cells_of
from corebound.exchange.reading import Unreadable
from support.asv_projects import (
    TIME,
    a_tree,
    by_cell,
    import_asv,
    only_points,
    read_project,
    result_file,
    result_tree,
)
from support.texts import in_order

NAN = math.nan


def moved(tree: Path, to: str) -> Path:
    """The tree's results in another folder, without its configuration."""
    (tree / "asv.conf.json").unlink()
    target = tree / to
    target.parent.mkdir(parents=True, exist_ok=True)
    (tree / "results").rename(target)
    return tree


@pytest.mark.parametrize(
    ("to", "named"),
    [
        ("project/results", "project"),
        ("project/results", "project/results"),
        ("project/.asv/results", "project"),
        ("project/.asv/results", "project/.asv"),
        ("project/.asv/results", "project/.asv/results"),
        ("project/results", "project/results/box"),
    ],
)
def test_results_are_found_without_a_configuration_and_named_by_their_project(
    tmp_path: Path, to: str, named: str
) -> None:
    about = {"track_it": {"unit": "particles/s", "param_names": ["threads"]}}
    tree = result_tree(tmp_path, result_file({"track_it": [[1.0], [["4"]]]}), benchmarks=about)
    (tree / "results" / "box" / "machine.json").write_text('{"machine": "box", "version": 1}')

    found = read_project(moved(tree, to) / named)

    (series,) = found.series
    assert (found.project, series.unit, series.cell.split(",")[0]) == (
        "project",
        "particles/s",
        "threads=4",
    )


def test_published_pages_beside_the_results_are_ignored(tmp_path: Path) -> None:
    tree = moved(a_tree(tmp_path), ".asv/results")
    page = tree / ".asv" / "html" / "graphs" / "summary" / "time_it.json"
    page.parent.mkdir(parents=True)
    page.write_text("[[1, 2.0]]")

    assert [read_project(tree / named).faults for named in (".", ".asv")] == [(), ()]


def test_a_configuration_is_found_one_folder_down_and_from_results_two_folders_down(
    tmp_path: Path,
) -> None:
    a_tree(tmp_path / "clone" / "asv_bench")
    tree = a_tree(tmp_path / "tree")
    (tree / ".asv").mkdir()
    (tree / "results").rename(tree / ".asv" / "results")
    # It may begin with a byte order mark.
    configuration = '{"project": "marked", // so\n"results_dir": ".asv/results"}'
    (tree / "asv.conf.json").write_bytes(b"\xef\xbb\xbf" + configuration.encode())

    found = read_project(tmp_path / "clone")

    assert (found.project, found.files) == ("trees", 1)
    assert read_project(tree / ".asv" / "results").project == "marked"


def test_of_two_configurations_one_must_be_named(tmp_path: Path) -> None:
    for name in ("one", "two"):
        a_tree(tmp_path / name, benchmarks=None)

    with pytest.raises(InputError, match=r"one/asv\.conf\.json, two/asv\.conf\.json"):
        read_project(tmp_path)


def test_guessed_units_and_benchmarks_missing_from_benchmarks_json_are_reported(
    tmp_path: Path,
) -> None:
    (fault,) = read_project(a_tree(tmp_path / "guessed", benchmarks=None)).faults
    two = result_file({"time_it": [[1.0], []], "time_old": [[1.0], []]})

    assert fault.file.endswith("benchmarks.json")
    assert "benchmark names" in fault.what
    assert read_project(result_tree(tmp_path, two, benchmarks=TIME)).removed == {"time_old"}


@pytest.mark.parametrize(
    ("repo", "address"),
    [
        ("https://github.com/someone/thing.git", "https://github.com/someone/thing/commit/"),
        ("git@github.com:someone/thing.git", "https://github.com/someone/thing/commit/"),
        ("git://github.com/someone/thing", "https://github.com/someone/thing/commit/"),
        ("https://gitlab.com/group/sub/thing/", "https://gitlab.com/group/sub/thing/-/commit/"),
        ("https://example.org/thing.git", None),
        ("https://github.com/some one/thing", None),
        ("..", None),
    ],
)
def test_commits_link_to_the_repository_s_host(
    tmp_path: Path, repo: str, address: str | None
) -> None:
    tree = a_tree(tmp_path, benchmarks=None)
    (tree / "asv.conf.json").write_text(json.dumps({"repo": repo}))

    assert read_project(tree).series[0].commit_url == address


def test_an_unreadable_repository_is_skipped_unless_the_user_named_it(tmp_path: Path) -> None:
    tree = a_tree(tmp_path)
    (tree / "asv.conf.json").write_text('{"repo": "."}')
    (tree / "objects").mkdir()

    found = read_project(tree)

    assert (found.files, found.unknown) == (1, None)
    assert [fault.file for fault in found.faults] == [str(tree)]
    with pytest.raises(InputError, match="git cannot read it"):
        project.read(tree, name=None, repo=tmp_path, progress=lambda _done, _of: None)


def runners(*names: str) -> list[dict[str, Any]]:
    """A night of each machine."""
    return [
        result_file(
            {"time_it": [[1.0], []]},
            commit_hash=f"{number}" * 40,
            params={"machine": name, "cpu": "EPYC"},
            date=1_600_000_000_000 + number * 86_400_000,
        )
        for number, name in enumerate(names)
    ]


def test_machines_renamed_each_run_can_be_merged(tmp_path: Path) -> None:
    tree = result_tree(tmp_path, *runners("fv-az1-1", "fv-az2-7"), benchmarks=TIME)

    assert [one.host for one in read_project(tree).series] == ["fv-az1-1", "fv-az2-7"]
    (series,) = read_project(tree, machine="hosted").series
    assert (series.host, len(series.points)) == ("hosted", 2)
    assert read_project(tree).settings != read_project(tree, machine="hosted").settings


@pytest.mark.parametrize(
    ("ram", "shown"),
    [
        # The same machine by asv before 0.5, which has kB of Linux, and after, which has bytes.
        ("31990228", "32 GiB"),
        ("32757993472", "32 GiB"),
        (17179869184, "16 GiB"),
        # As the kernel sees it, and as who set the machine up wrote it.
        ("16428936", "16 GiB"),
        ("16GB", "16 GiB"),
        ("15.7 gib", "16 GiB"),
        ("512M", "0.5 GiB"),
        # No size that is sold.
        (8804682956.8, "8.2 GiB"),
        ("0GB", "0GB"),
        ("much", "much"),
        ("", ""),
        (None, ""),
        ("nan", "nan"),
        (True, "True"),
        (0, "0"),
    ],
)
def test_memory_size_is_the_same_for_every_asv_version(
    tmp_path: Path, ram: object, shown: str
) -> None:
    tree = result_tree(
        tmp_path, result_file({"time_it": [[1.0], []]}, params={"machine": "m", "ram": ram})
    )

    (point,) = only_points(read_project(tree))

    assert dict(point.environment_key)["ram"] == shown


def test_one_damaged_benchmark_does_not_drop_the_others(tmp_path: Path) -> None:
    document = result_file({"time_it": [[1.0], []], "bad": [{"x": 1}, [], "v"], "worse": 3})
    found = read_project(
        result_tree(tmp_path, document, benchmarks=TIME | {"bad": {}, "worse": {}})
    )

    assert [one.scenario for one in found.series] == ["time_it"]
    (fault,) = found.faults
    assert "2 of 3 benchmarks" in fault.what
    assert "bad" in fault.what


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        *((row, [(0.25e9, None)]) for row in ([0.25, [], "v"], [[0.25], None, "v"], [[0.25]])),
        # Three samples that differ much; a time is never negative.
        ([[12.4], [], "v", 1, 59.7, [-22.4], [40.4]], [(12.4e9, None)]),
        (
            [[NAN, 1.0], [["1", "2"]], "v", 1, 1.0, [NAN, NAN], [NAN, 2.0]],
            [(None, None), (1e9, None)],
        ),
    ],
)
def test_a_value_may_be_outside_a_list_and_an_impossible_interval_is_dropped(
    tmp_path: Path, row: list[object], expected: list[tuple[float | None, None]]
) -> None:
    tree = result_tree(tmp_path, result_file({"time_it": row}), benchmarks=TIME)

    points = [one.points[0] for one in by_cell(read_project(tree)).values()]
    assert [(point.value, point.bounds) for point in points] == expected


@pytest.mark.parametrize(
    ("data", "says", "fix"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS", "git lfs pull"),
        (b"/annex/objects/SHA256E-s1--0.json\n", "git-annex", "git annex get"),
        (b"<<<<<<< HEAD\n{}\n=======\n", "merge", "merge"),
    ],
)
def test_a_placeholder_instead_of_a_file_is_reported(data: bytes, says: str, fix: str) -> None:
    with pytest.raises(Unreadable, match=says) as caught:
        results.read(data)
    assert fix in caught.value.fix


@pytest.mark.parametrize("commit", ["a" * 200, "two\nlines", 7, ""])
def test_an_invalid_revision_is_rejected(commit: object) -> None:
    with pytest.raises(Unreadable, match="commit"):
        results.read(json.dumps(result_file({}, commit_hash=commit)).encode())


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        # Addresses are others in every process, and NumPy 2 writes its numbers in another way.
        ("<function sort at 0x7f3aa0>", "<function sort>"),
        ("<bound method A.b of <A object at 0x1F>>", "<bound method A.b of <A object>>"),
        ("np.float64(0.1)", "0.1"),
        ("np.str_('a')", "a"),
        ("numpy.int64(3)", "3"),
        ("<class 'numpy.float32'>", "numpy.float32"),
        ("np.array([1])", "np.array([1])"),
    ],
)
def test_parameter_values_are_the_same_for_every_writer(value: str, shown: str) -> None:
    assert cells_of(((value,),), ("n",), "e") == (f"n={shown},environment=e",)


def test_combinations_and_functions_with_equal_notation_stay_separate() -> None:
    # One is ("1,b=2", "3"), the other ("1", "2,b=3").
    cells = cells_of((("1,b=2", "1"), ("3", "2,b=3")), ("a", "b"), "e")
    functions = cells_of((("<f at 0x1>", "<f at 0x2>"),), ("n",), "e")

    assert len(set(cells)) == 4
    assert functions == ("n=<f at 0x1>,environment=e", "n=<f at 0x2>,environment=e")


def environments_of(*machines: dict[str, str], tmp_path: Path) -> list[dict[str, str]]:
    """What each of several nights has, whose machines are described so."""
    nights = [
        result_file(
            {"time_it": [[1.0], [], "v"]},
            commit_hash=f"{number}" * 40,
            params={"machine": "box", **params},
            date=1_600_000_000_000 + number * 86_400_000,
        )
        for number, params in enumerate(machines)
    ]
    points = only_points(read_project(result_tree(tmp_path, *nights, benchmarks=TIME)))
    return [dict(point.environment_key) for point in points]


def test_missing_machine_details_are_no_environment_change_and_known_ones_stay(
    tmp_path: Path,
) -> None:
    # asv began to tell the number of CPUs in 2019.
    missing = environments_of(
        {"cpu": "Xeon"}, {"cpu": "Xeon", "num_cpu": ""}, {"cpu": "Xeon", "num_cpu": "8"},
        tmp_path=tmp_path / "missing",
    )  # fmt: skip
    known = environments_of(
        {"os": "5"}, {}, {"cpu": "Xeon", "os": "6"}, {"cpu": "EPYC"}, tmp_path=tmp_path / "known"
    )

    assert missing == [{"cpu": "Xeon", "num_cpu": "8", "benchmark": "v"}] * 3
    assert [(one["cpu"], one.get("os")) for one in known] == [
        ("Xeon", "5"), ("Xeon", "6"), ("Xeon", "6"), ("EPYC", None),
    ]  # fmt: skip


def test_of_two_files_of_one_commit_the_last_with_a_value_counts(tmp_path: Path) -> None:
    same = [result_file({"time_it": [[value], []]}) for value in (1.0, 2.0, None)]
    found = read_project(result_tree(tmp_path, *same, benchmarks=TIME))

    assert [point.value for point in only_points(found)] == [2e9]
    assert found.duplicates == 2


def test_skipped_results_are_counted_by_reason(tmp_path: Path) -> None:
    rows = [
        {"time_it": [[1.0], []], "track_it": [[value], []], "mem_it": [[0], []]}
        for value in (0, -2.5, None, math.nan, "much")
    ]
    about = TIME | {"track_it": {"unit": "leaks"}, "mem_it": {"unit": "bytes"}}
    dated = [
        result_file(row, commit_hash=f"{at}" * 40, date=1_600_000_000_000 + at)
        for at, row in enumerate(rows)
    ]
    tree = result_tree(tmp_path, *dated, benchmarks=about)

    said = import_asv(tree).stdout.splitlines()

    counts = "10 points", "above 0", "(7)", "failed (1)", "NaN (1)", "'much'", "(1)"
    assert in_order(said[2], *counts)
    assert said[3].startswith("2 series ")
    assert json.loads(import_asv(tree, "--json").stdout)["missing"]["failed"] == 1


def test_repeated_warnings_are_counted(tmp_path: Path) -> None:
    tree = a_tree(tmp_path)
    for number in range(20):
        (tree / "results" / "box" / f"other{number:02}.json").write_text("{}")

    said = import_asv(tree).stderr.splitlines()

    assert len(said) == 4
    assert in_order(said[-1], "warning: ", "17 more", "--json")
    assert len(json.loads(import_asv(tree, "--json").stdout)["faults"]) == 20


def test_machines_renamed_each_run_are_reported(tmp_path: Path) -> None:
    tree = result_tree(tmp_path, *runners(*(f"fv-az{at}" for at in range(8))), benchmarks=TIME)

    imported = import_asv(tree)
    as_one = import_asv(tree, "--project", "other", "--machine", "hosted")

    assert "8 machines" in imported.stderr
    assert "--machine NAME" in imported.stderr
    assert in_order(imported.stdout, "8 series", "one result", "needs two")
    assert "1 series of 8 points" in as_one.stdout
    assert as_one.stderr == ""


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
of_one_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def a_tree_anew(folder: Path, *files: dict[str, Any], benchmarks: dict[str, Any]) -> Path:
    """A tree in the place of the one that the last example left there."""
    tree = folder / "tree"
    shutil.rmtree(tree, ignore_errors=True)
    return result_tree(tree, *files, benchmarks=benchmarks)


@given(
    value=ANYTHING,
    key=st.sampled_from(["unit", "param_names", "pretty_name", "type", "params", "code"]),
)
@of_one_folder
def test_any_benchmarks_json_is_read_or_reported(tmp_path: Path, value: object, key: str) -> None:
    tree = a_tree_anew(
        tmp_path, result_file({"time_it": [[1.0], [["1"]]]}), benchmarks={"time_it": {key: value}}
    )

    assert len(read_project(tree).series) == 1

    (tree / "results" / "benchmarks.json").write_text(json.dumps(value))
    assert len(read_project(tree).series) == 1


@example(value="r" * 256, key="results_dir")
@example(value="r" * 256, key="repo")
@given(
    value=ANYTHING,
    key=st.sampled_from(
        ["project", "repo", "results_dir", "show_commit_url", "regressions_thresholds", "branches"]
    ),
)
@of_one_folder
def test_any_configuration_is_read_or_rejected(tmp_path: Path, value: object, key: str) -> None:
    tree = a_tree_anew(tmp_path, result_file({"time_it": [[1.0], []]}), benchmarks=TIME)
    (tree / "asv.conf.json").write_text(json.dumps({key: value}))

    with contextlib.suppress(InputError):
        assert len(read_project(tree).series) == 1


def test_default_result_folders_replace_a_missing_configured_one(tmp_path: Path) -> None:
    tree = a_tree(tmp_path)
    (tree / "asv.conf.json").write_text('{"project": "p", "results_dir": "../elsewhere"}')

    assert read_project(tree).files == 1


@pytest.mark.parametrize("opening", [b'{"a":', b"["])
def test_deep_nesting_is_damage(opening: bytes) -> None:
    with pytest.raises(Unreadable, match="invalid JSON"):
        results.read(opening * 200_000)


def test_a_file_name_that_is_not_utf_8_is_read_and_cached(tmp_path: Path) -> None:
    tree = a_tree(tmp_path)
    box = tree / "results" / "box"
    (box / "00000000-env.json").rename(box / os.fsdecode(b"\xff-env.json"))
    (box / os.fsdecode(b"\xfe.json")).write_text("{")

    assert "1 result file\n" in import_asv(tree).stdout
    assert "1 result file\n" in import_asv(tree).stdout
