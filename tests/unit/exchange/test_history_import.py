"""Merging imported series with earlier imports, under one name and without duplicates."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.exchange import history_import
from corebound.exchange.history_import import merge
from corebound.exchange.points import complete_environments, merge_pair
from corebound.records import history_files
from corebound.records.history import INCOMPARABLE, HistoryPoints, Series, incomparable
from support.asv_projects import TIME, import_asv, result_file, result_tree
from support.build import a_point, a_series


def points_of(days: list[int], versions: list[str]) -> HistoryPoints:
    """One each day, with all that a point may have and may lack."""
    return HistoryPoints.of(
        replace(
            a_point(None if day % 3 == 0 else 1e6 + day, day=day),
            bounds=(1e6, 2e6) if day % 3 == 1 else None,
            launches=(1e6, 1.5e6) if day % 5 == 1 else (),
            missing="it failed" if day % 3 == 0 else None,
            environment_key=(("cpu", "a"), ("benchmark", version)),
        )
        for day, version in zip(days, versions, strict=False)
    )


@given(
    before=st.sets(st.integers(0, 20), min_size=1),
    now=st.sets(st.integers(0, 24), min_size=1),
    versions=st.lists(st.sampled_from(["", "v1", "v2"]), min_size=40, max_size=40),
)
def test_appended_points_merge_like_any_others(
    before: set[int], now: set[int], versions: list[str]
) -> None:
    # As it was kept: each point with the version of the next that tells one.
    old = a_series([], points=complete_environments(points_of(sorted(before), versions)))
    new = a_series([], points=points_of(sorted(now), versions[20:]), title="a new name")

    (found,) = merge([old], [new])

    assert found == merge_pair(old, new)


def test_a_series_without_new_points_stays() -> None:
    one, other = a_series([1e6]), a_series([2e6], scenario="other")
    more = replace(one, points=HistoryPoints.of([a_point(3e6, day=1)]))

    found = merge([one, other], [more])

    assert found == (replace(one, points=HistoryPoints.of([*one.points, *more.points])), other)


def test_an_unchanged_history_is_neither_read_nor_rewritten_and_a_replaced_one_counted_anew(
    tmp_path: Path,
) -> None:
    series = a_series([1e6, None, 2e6], project="trees")
    first = history_import.keep("trees", [series], tmp_path)
    before = first.file.stat()
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(history_files, "read")
        now = history_import.keep("trees", (), tmp_path)

    assert now == replace(first, added=0)
    assert (now.series, now.points, now.values) == (1, 3, 2)
    after = first.file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    history_files.keep("trees", [a_series([1e6], project="trees")], tmp_path)
    assert history_import.keep("trees", (), tmp_path).points == 1


def test_series_that_share_columns_share_them_with_one_more_point() -> None:
    first = a_series([1e6], cell="n=1")
    points = replace(a_series([2e6]), cell="n=2").points
    shared = HistoryPoints(
        moments=first.points.moments,
        values=points.values,
        environment_keys=first.points.environment_keys,
    )
    later = HistoryPoints.of([a_point(3e6, day=1)])
    stored = [first, replace(first, cell="n=2", points=shared)]

    one, two = merge(stored, [replace(series, points=later) for series in stored])

    assert one.points.moments is two.points.moments
    assert one.points.environment_keys is two.points.environment_keys
    assert (one.points.measured, two.points.measured) == ((1e6, 3e6), (2e6, 3e6))


def test_a_series_in_several_files_has_all_points() -> None:
    whole = a_series([1e6, 2e6, 3e6])
    parts = [replace(whole, points=whole.points[at : at + 1]) for at in (2, 0, 1)]

    first = merge((), parts)

    assert first == (whole,)
    assert merge(first, parts) == (whole,)


def test_reasons_for_missing_values_are_counted_by_kind(tmp_path: Path) -> None:
    why = (incomparable("-2.88 %"), incomparable("0 %"), "failed: OSError: no space")
    points = HistoryPoints.of(
        replace(a_point(None, day=day), missing=reason) for day, reason in enumerate(why)
    )

    summary = history_import.keep("trees", [a_series([], points=points, project="trees")], tmp_path)

    assert summary.reasons == ((INCOMPARABLE, 2), (why[2], 1))


DAY_MS = 86_400_000
WHERE = ",environment=virtualenv-py3.11"
NAME = "suite.run_it"


def about(*params: str, unit: str = "seconds") -> dict[str, Any]:
    """What benchmarks.json says, and of another benchmark the same every night."""
    return TIME | {NAME: {"unit": unit, "param_names": [*params], "pretty_name": "Run it"}}


def a_night(number: int, *figures: Any, params: list[list[str]], gone: bool = False) -> Any:
    results: dict[str, Any] = {"time_it": [[1.0 + number], []]}
    if not gone:
        results[NAME] = [[*figures], params]
    date = 1_600_000_000_000 + number * DAY_MS
    return result_file(results, commit_hash=f"{number + 1:040x}", date=date)


def nights(
    numbers: range, *, params: tuple[str, ...] = ("1", "2"), gone: bool = False
) -> list[dict[str, Any]]:
    """Nights of a parameter's values; a figure for each, which is another every night."""
    return [
        a_night(at, *(at + n / 10 for n, _ in enumerate(params, 1)), params=[[*params]], gone=gone)
        for at in numbers
    ]


def then(tree: Path, benchmarks: Any, *files: dict[str, Any]) -> None:
    """A night later: other files, and benchmarks.json as it is then."""
    folder = tree / "results" / "box"
    for one in files:
        (folder / f"{one['date']}-night.json").write_text(json.dumps(one))
    (tree / "results" / "benchmarks.json").write_text(json.dumps(benchmarks))
    import_asv(tree)


def series(folder: Path) -> tuple[Series, ...]:
    """Those of the benchmark that is named anew."""
    return tuple(
        one for one in history_files.read_all(folder / "records")[0] if one.scenario == NAME
    )


def kept(folder: Path) -> dict[str, int]:
    """How many points each has."""
    return {one.cell.removesuffix(WHERE): len(one.points) for one in series(folder)}


def test_a_parameter_that_is_renamed_is_the_same_as_in_an_import_of_all_at_once(
    tmp_path: Path,
) -> None:
    before, after = nights(range(5)), nights(range(5, 7))
    nightly = result_tree(tmp_path / "nightly", *before, benchmarks=about("old"))
    import_asv(nightly)
    for one in after:
        then(nightly, about("new"), one)
    once = result_tree(tmp_path / "once", *before, *after, benchmarks=about("new"))
    import_asv(once)

    assert kept(nightly) == {"new=1": 7, "new=2": 7}
    assert series(nightly) == series(once)


@pytest.mark.parametrize(
    ("params", "files", "names"),
    [
        (("k",), nights(range(5)), {"k=1": 5, "k=2": 5}),
        ((), [a_night(at, 0.1 * at + 1, params=[]) for at in range(5)], {WHERE[1:]: 5}),
    ],
)
def test_a_benchmark_that_is_removed_keeps_its_names_and_its_unit(
    tmp_path: Path, params: tuple[str, ...], files: list[Any], names: dict[str, int]
) -> None:
    tree = result_tree(tmp_path, *files, benchmarks=about(*params))
    import_asv(tree)
    before = series(tree)
    for at in (5, 6):
        # Each night another benchmark is there, so that all is read anew.
        then(tree, TIME | {f"time_{at}": {}}, *nights(range(at, at + 1), gone=True))

    assert kept(tree) == names
    assert {one.unit for one in series(tree)} == {"ns"}
    assert series(tree) == before

    configuration = tree / "asv.conf.json"
    configuration.write_text(
        configuration.read_text().replace("{", '{"show_commit_url": "https://forge.test/",', 1)
    )
    then(tree, TIME)
    assert {one.commit_url for one in series(tree)} == {"https://forge.test/"}


@pytest.mark.parametrize(("name", "unit"), [("time_run", "ms"), ("track_run", "seconds")])
def test_values_of_a_removed_benchmark_keep_their_unit(
    tmp_path: Path, name: str, unit: str
) -> None:
    # Its name says that it is in seconds, or nothing.
    files = [
        result_file({name: [[0.1 + at], [["1"]]]}, commit_hash=f"{at + 1:040x}", date=at * DAY_MS)
        for at in range(1, 4)
    ]
    known = {name: {"unit": unit, "param_names": ["k"]}}
    tree = result_tree(tmp_path, *files, benchmarks=TIME | known)
    import_asv(tree)
    before = history_files.read_all(tree / "records")[0]

    then(tree, TIME)

    assert history_files.read_all(tree / "records")[0] == before


def test_a_benchmark_that_returns_continues_its_series_and_is_named(tmp_path: Path) -> None:
    known, unknown = (
        result_tree(tmp_path / name, *nights(range(5)), benchmarks=benchmarks)
        for name, benchmarks in (("known", about("k")), ("unknown", TIME))
    )
    for tree in (known, unknown):
        import_asv(tree)
    assert kept(unknown) == {"param1=1": 5, "param1=2": 5}
    then(known, TIME, *nights(range(5, 6), gone=True))

    for tree in (known, unknown):
        then(tree, about("k"), *nights(range(6, 8)))

        assert kept(tree) == {"k=1": 7, "k=2": 7}
        assert {one.unit for one in series(tree)} == {"ns"}


def test_an_added_parameter_does_not_duplicate_earlier_points(tmp_path: Path) -> None:
    tree = result_tree(tmp_path, *nights(range(5)), benchmarks=about("n"))
    import_asv(tree)

    tonight = a_night(5, 7.0, 8.0, params=[["1", "2"], ["x"]])
    then(tree, about("n", "m"), tonight)

    assert kept(tree) == {"param1=1": 5, "param1=2": 5, "n=1,m=x": 1, "n=2,m=x": 1}


def test_equal_results_continue_under_the_same_parameter_value(tmp_path: Path) -> None:
    constant = [a_night(at, 4.0, None, 4.0, params=[["1", "2", "3"]]) for at in range(4)]
    tree = result_tree(tmp_path, *constant, benchmarks=about("k"))
    import_asv(tree)

    then(tree, about("j"))

    assert kept(tree) == {"j=1": 4, "j=2": 4, "j=3": 4}

    then(tree, TIME)

    assert kept(tree) == {"j=1": 4, "j=2": 4, "j=3": 4}
    assert [one.points.measured for one in series(tree)] == [(4e9,) * 4, (), (4e9,) * 4]


def test_reordered_parameters_are_matched_by_their_results(tmp_path: Path) -> None:
    one, other = (
        [a_night(at, at + 0.1, at + 0.2, params=params) for at in range(4)]
        for params in ([["1", "2"], ["x"]], [["x"], ["1", "2"]])
    )
    tree = result_tree(tmp_path, *one, benchmarks=about("k", "m"))
    import_asv(tree)
    for number, document in enumerate(other):
        (tree / "results" / "box" / f"{number:08}-env.json").write_text(json.dumps(document))

    then(tree, about("m", "k"))

    assert kept(tree) == {"m=x,k=1": 4, "m=x,k=2": 4}


def test_a_stored_series_with_an_additional_point_or_a_different_value_stays(
    tmp_path: Path,
) -> None:
    more, differs = (
        result_tree(tmp_path / name, *nights(range(5)), benchmarks=about("old"))
        for name in ("more", "differs")
    )
    for tree in (more, differs):
        import_asv(tree)
    (more / "results" / "box" / "00000002-env.json").unlink()
    again = a_night(0, 9.0, 0.2, params=[["1", "2"]])
    (differs / "results" / "box" / "00000000-env.json").write_text(json.dumps(again))

    for tree in (more, differs):
        then(tree, about("new"))

    assert kept(more) == {"old=1": 5, "old=2": 5, "new=1": 4, "new=2": 4}
    assert kept(differs) == {"old=1": 5, "new=1": 5, "new=2": 5}


def test_equal_results_elsewhere_are_not_matched(tmp_path: Path) -> None:
    files = nights(range(3))
    tree = result_tree(tmp_path, *files, benchmarks=about("k"))
    import_asv(tree)
    for number, one in enumerate(files):
        other = one | {"env_name": "conda", "python": "3.12"}
        other["results"] = one["results"] | {"time_other": one["results"][NAME]}
        (tree / "results" / "box" / f"{number:08}-env.json").write_text(json.dumps(other))

    then(tree, about("j"))

    own = {one.cell for one in series(tree)}
    assert own == {f"k={at}{WHERE}" for at in "12"} | {f"j={at},environment=conda" for at in "12"}


def test_a_new_parameter_value_is_not_matched_with_an_unmeasured_one(tmp_path: Path) -> None:
    tree = result_tree(tmp_path, *nights(range(5)), benchmarks=about("k"))
    import_asv(tree)

    then(tree, about("k"), *nights(range(5, 6), params=("3", "4")))

    assert kept(tree) == {"k=1": 5, "k=2": 5, "k=3": 1, "k=4": 1}


def test_a_stored_series_in_another_unit_is_converted(tmp_path: Path) -> None:
    # As versions stored it that did not understand the unit.
    old = a_series([50.0, 51.0], project="trees", unit="median ms")
    later = [a_point(52e6, day=3), a_point(53e6, day=4)]
    new = replace(a_series([], project="trees"), points=HistoryPoints.of(later))
    history_import.keep("trees", [old], tmp_path)

    kept = history_import.keep("trees", [new], tmp_path)

    (series,) = history_files.read(kept.file)
    assert series.unit == "ns"
    assert series.points.measured == pytest.approx((50e6, 51e6, 52e6, 53e6))
    assert not kept.unit_changes


def test_a_corrected_unit_replaces_the_stored_one(tmp_path: Path) -> None:
    # All points are read again, so none is left in the old unit.
    old = a_series([50.0, 51.0], project="trees", unit="points")
    history_import.keep("trees", [old], tmp_path)

    kept = history_import.keep("trees", [replace(old, unit="bytes")], tmp_path)

    (series,) = history_files.read(kept.file)
    assert (series.unit, series.cell, series.points.measured) == ("bytes", old.cell, (50.0, 51.0))
