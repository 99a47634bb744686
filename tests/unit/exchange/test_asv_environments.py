"""asv's environment, machine and requirement names: equal ones share a series."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from corebound.errors import InputError
from corebound.records import history_files
from corebound.records.history import Series
from support.asv_projects import TIME, import_asv, read_project, result_file, result_tree

DAY_MS = 86_400_000


def nights(*names: str, **changes: Any) -> list[dict[str, Any]]:
    """A night in each of these environments, oldest first."""
    return [
        result_file(
            {"time_it": [[float(number + 1)], []]},
            env_name=name,
            commit_hash=f"{number:040x}",
            date=1_600_000_000_000 + number * DAY_MS,
        )
        | changes
        for number, name in enumerate(names)
    ]


def cells(series: tuple[Series, ...]) -> dict[str, int]:
    """How many points each has."""
    return {one.cell: len(one.points) for one in series}


def test_an_environment_that_only_got_another_name_goes_on(tmp_path: Path) -> None:
    # As a CI's Python that is `…/python` first and `…/python2` later.
    found = read_project(
        result_tree(tmp_path, *nights("python", "python", "python2"), benchmarks=TIME)
    )

    (series,) = found.series
    assert series.cell == "environment=python"
    assert series.points.measured == (1e9, 2e9, 3e9)


@pytest.mark.parametrize(
    "change",
    [{"python": "3.12"}, {"requirements": {"numpy": "2"}}, {"env_vars": {"THREADS": "1"}}],
)
def test_another_python_other_packages_or_variables_are_another_environment(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    one, other = nights("a", "b")

    found = read_project(result_tree(tmp_path, one, other | change, benchmarks=TIME))

    assert cells(found.series) == {"environment=a": 1, "environment=b": 1}


@pytest.mark.parametrize("untold", ["python", "requirements"])
def test_files_that_do_not_tell_what_an_environment_is_keep_its_name(
    tmp_path: Path, untold: str
) -> None:
    files = nights("a", "b")
    for one in files:
        del one[untold]

    found = read_project(result_tree(tmp_path, *files, benchmarks=TIME))

    assert cells(found.series) == {"environment=a": 1, "environment=b": 1}


def test_an_older_asv_that_knew_of_no_variables_had_none(tmp_path: Path) -> None:
    old, new = nights("a", "b")
    del old["env_vars"]

    assert cells(read_project(result_tree(tmp_path, old, new, benchmarks=TIME)).series) == {
        "environment=a": 2
    }


def test_environments_that_were_measured_side_by_side_stay_apart(tmp_path: Path) -> None:
    # Django's asv measures each commit under conda and under virtualenv, of the same Python.
    first, second, third = nights("conda", "conda", "conda")
    beside = second | {"env_name": "virtualenv"}

    found = read_project(result_tree(tmp_path, first, second, beside, third, benchmarks=TIME))

    assert cells(found.series) == {"environment=conda": 3, "environment=virtualenv": 1}


def test_machines_have_environments_of_their_own(tmp_path: Path) -> None:
    one, other = nights("a", "b")

    found = read_project(
        result_tree(tmp_path, one, other | {"params": {"machine": "m"}}, benchmarks=TIME)
    )

    assert cells(found.series) == {"environment=a": 1, "environment=b": 1}


def test_combinations_of_parameters_go_on_each_by_itself(tmp_path: Path) -> None:
    # Two of them are written alike, so their places are behind them.
    row = {"time_it": [[1.0, 2.0, 3.0, 4.0], [["1,param2=2", "1"], ["3", "2,param2=3"]]]}

    found = read_project(result_tree(tmp_path, *nights("a", "b", results=row), benchmarks=TIME))

    assert cells(found.series) == {
        "param1=1,param2=2,param2=3,environment=a (0)": 2,
        "param1=1,param2=2,param2=2,param2=3,environment=a": 2,
        "param1=1,param2=3,environment=a": 2,
        "param1=1,param2=2,param2=3,environment=a (3)": 2,
    }


def kept(folder: Path) -> dict[str, int]:
    return cells(history_files.read_all(folder / "records")[0])


def test_an_environment_that_gets_another_name_tonight_goes_on(tmp_path: Path) -> None:
    *before, tonight, tomorrow = nights("a", "a", "b", "b")
    tree = result_tree(tmp_path, *before, benchmarks=TIME)
    import_asv(tree)
    for name, told in (("8-b", tonight), ("9-b", tomorrow)):
        (tree / "results" / "box" / f"{name}.json").write_text(json.dumps(told))
        import_asv(tree)

    assert kept(tree) == {"environment=a": 4}


def test_what_was_kept_as_two_series_becomes_one(tmp_path: Path) -> None:
    # Each was imported while the other's files were not there.
    early, late = nights("b", "a")
    records = ("--records", str(tmp_path / "records"))
    import_asv(result_tree(tmp_path / "1", late), *records)
    import_asv(result_tree(tmp_path / "2", early), *records)
    assert kept(tmp_path) == {"environment=a": 1, "environment=b": 1}

    import_asv(result_tree(tmp_path / "3", early, late), *records)

    assert kept(tmp_path) == {"environment=b": 2}


def test_nights_of_environments_side_by_side_stay_apart_one_after_another(tmp_path: Path) -> None:
    first, second = nights("conda", "conda")
    tree = result_tree(tmp_path, first, first | {"env_name": "virtualenv"}, benchmarks=TIME)
    import_asv(tree)
    third = nights("conda", "conda", "virtualenv")[2]
    for name, told in (("8-c", second), ("9-v", third)):
        (tree / "results" / "box" / f"{name}.json").write_text(json.dumps(told))
    import_asv(tree)

    assert kept(tree) == {"environment=conda": 2, "environment=virtualenv": 2}


def test_names_that_cannot_be_shown_go_on_as_any_others(tmp_path: Path) -> None:
    # Half of a character, and one too long.
    long = "x" * 500
    tree = result_tree(tmp_path, *nights("\ud800", long, long), benchmarks=TIME)

    import_asv(tree)
    said = import_asv(tree).stdout

    assert [*kept(tree).values()] == [3]
    assert "; 0 new" in said


def versions(*each: str, python: str = "3.11") -> list[dict[str, Any]]:
    """A commit measured with each of these versions of the package, as asv names them."""
    return [
        told
        | {
            "env_name": f"virtualenv-py{python}-numpy-pip+pack_age{version}-six1",
            "python": python,
            "requirements": {"numpy": "", "pip+pack/age": version, "six": "1"},
        }
        for version, told in zip(each, nights(*each), strict=True)
    ]


SIX = ("1.0", "1.0.1", "1.1", "2.0", "2.0.0.1", "3")


def test_what_is_under_test_is_followed_across_its_versions(tmp_path: Path) -> None:
    tree = result_tree(tmp_path, *versions(*SIX), *versions(*SIX, python="3.12"), benchmarks=TIME)

    apart = read_project(tree)
    followed = read_project(tree, under_test=("pip+pack/age",))

    assert set(cells(apart.series).values()) == {1}
    assert cells(followed.series) == {
        "environment=virtualenv-py3.11-numpy-six1": 6,
        "environment=virtualenv-py3.12-numpy-six1": 6,
    }


def test_a_name_that_asv_did_not_make_goes_on_all_the_same(tmp_path: Path) -> None:
    files = [told | {"env_name": f"nightly-{at}"} for at, told in enumerate(versions(*SIX))]

    found = read_project(
        result_tree(tmp_path, *files, benchmarks=TIME), under_test=("pip+pack/age",)
    )

    assert cells(found.series) == {"environment=nightly-0": 6}


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        ("py3-foo1-foo10", "py3-foo10"),
        ("py3-foo10", "py3-foo10"),
        ("py3-foo1", "py3"),
        ("foo1", "foo1"),
    ],
)
def test_of_an_environments_name_that_requirement_alone_is_left_out(
    tmp_path: Path, environment: str, name: str
) -> None:
    one, *_ = nights(environment, requirements={"foo": "1"})

    found = read_project(result_tree(tmp_path, one, benchmarks=TIME), under_test=("foo",))

    assert cells(found.series) == {f"environment={name}": 1}


def test_a_version_for_each_commit_is_told_with_what_would_follow_it(tmp_path: Path) -> None:
    tree = result_tree(tmp_path, *versions(*SIX), benchmarks=TIME)

    told = import_asv(tree)
    followed = import_asv(tree, "--project", "other", "--under-test", "pip+pack/age")

    assert "each commit was measured with another pip+pack/age" in told.stderr
    assert "--under-test pip+pack/age" in told.stderr
    assert "1 series of 6 points" in followed.stdout
    assert followed.stderr == ""


@pytest.mark.parametrize("several", [SIX[:4], ("1", "1", "2", "3", "4", "5")])
def test_versions_that_are_few_or_of_several_commits_are_those_of_a_package_beside(
    tmp_path: Path, several: tuple[str, ...]
) -> None:
    told = import_asv(result_tree(tmp_path, *versions(*several), benchmarks=TIME))

    assert told.stderr == ""


def test_one_more_night_under_test_goes_on(tmp_path: Path) -> None:
    *before, tonight = versions(*SIX)
    tree = result_tree(tmp_path, *before, benchmarks=TIME)
    import_asv(tree, "--under-test", "pip+pack/age")
    (tree / "results" / "box" / "9-night.json").write_text(json.dumps(tonight))

    said = import_asv(tree, "--under-test", "pip+pack/age").stdout

    assert "; 1 new" in said
    assert kept(tree) == {"environment=virtualenv-py3.11-numpy-six1": 6}


@pytest.mark.parametrize(
    ("required", "fix"),
    [({"numpy": "2", "six": "1"}, "They require numpy, six."), ({}, "They require nothing;")],
)
def test_what_is_no_requirement_cannot_be_under_test(
    tmp_path: Path, required: dict[str, str], fix: str
) -> None:
    tree = result_tree(tmp_path, *nights("a", requirements=required), benchmarks=TIME)

    with pytest.raises(InputError) as raised:
        read_project(tree, under_test=("nunpy",))

    assert "'nunpy'" in raised.value.what
    assert raised.value.fix is not None
    assert raised.value.fix.startswith(fix)


def test_a_package_that_got_another_name_is_followed_by_both(tmp_path: Path) -> None:
    first, second = nights("py3-pip+foo1", "py3-foo2")
    files = (
        first | {"requirements": {"pip+foo": "1"}},
        second | {"requirements": {"foo": "2"}},
    )

    found = read_project(
        result_tree(tmp_path, *files, benchmarks=TIME), under_test=("pip+foo", "foo")
    )

    assert cells(found.series) == {"environment=py3": 2}


def test_which_version_a_commit_was_measured_with_stands_where_its_subject_does(
    tmp_path: Path,
) -> None:
    found = read_project(
        result_tree(tmp_path, *versions(*SIX), benchmarks=TIME), under_test=("pip+pack/age",)
    )

    (series,) = found.series
    subjects = [one.commit.subject for one in series.points if one.commit is not None]
    assert subjects == [f"pip+pack/age {version}" for version in SIX]


def test_several_versions_of_one_commit_are_no_history_of_it(tmp_path: Path) -> None:
    files = [told | {"commit_hash": "f" * 40} for told in versions(*SIX)]

    told = import_asv(
        result_tree(tmp_path, *files, benchmarks=TIME), "--under-test", "pip+pack/age"
    )

    said = "1 of 1 commits were measured with several versions of pip+pack/age"
    assert said in told.stderr
