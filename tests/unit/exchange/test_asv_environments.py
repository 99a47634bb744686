"""asv's environment, machine and requirement names: equal ones share a series."""

import json
from pathlib import Path
from typing import Any

import pytest

from corebound.errors import InputError
from corebound.records import history_files
from corebound.records.history import Series
from support.asv_projects import TIME, import_asv, read_project, result_file, result_tree
from support.known import known
from support.texts import in_order

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


def test_a_renamed_environment_continues_its_series(tmp_path: Path) -> None:
    # As a CI's Python that is `…/python` first and `…/python2` later.
    found = read_project(
        result_tree(tmp_path, *nights("python", "python", "python2"), benchmarks=TIME)
    )

    (series,) = found.series
    assert series.cell == "environment=python"
    assert series.points.measured == (1e9, 2e9, 3e9)


@pytest.mark.parametrize(
    ("change", "untold", "expected"),
    [
        # Another Python, other packages, other variables, another machine.
        ({"python": "3.12"}, (), {"a": 1, "b": 1}),
        ({"requirements": {"numpy": "2"}}, (), {"a": 1, "b": 1}),
        ({"env_vars": {"THREADS": "1"}}, (), {"a": 1, "b": 1}),
        ({"params": {"machine": "m"}}, (), {"a": 1, "b": 1}),
        # What files do not say is no reason to join them, but asv's variables are new.
        ({}, ("python",), {"a": 1, "b": 1}),
        ({}, ("requirements",), {"a": 1, "b": 1}),
        ({}, ("env_vars",), {"a": 2}),
    ],
)
def test_environments_whose_details_differ_or_lack_stay_separate(
    tmp_path: Path, change: dict[str, Any], untold: tuple[str, ...], expected: dict[str, int]
) -> None:
    one, other = nights("a", "b")
    for name in untold:
        del one[name]
        if name != "env_vars":
            del other[name]

    found = read_project(result_tree(tmp_path, one, other | change, benchmarks=TIME))

    assert cells(found.series) == {f"environment={name}": n for name, n in expected.items()}


def test_environments_measured_at_one_commit_stay_separate(tmp_path: Path) -> None:
    # Django's asv measures each commit under conda and under virtualenv, of the same Python.
    first, second, third = nights("conda", "conda", "conda")
    beside = second | {"env_name": "virtualenv"}

    found = read_project(result_tree(tmp_path, first, second, beside, third, benchmarks=TIME))

    assert cells(found.series) == {"environment=conda": 3, "environment=virtualenv": 1}


def test_each_parameter_combination_continues_its_own_series(tmp_path: Path) -> None:
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


def test_an_environment_renamed_between_imports_continues(tmp_path: Path) -> None:
    *before, tonight, tomorrow = nights("a", "a", "b", "b")
    tree = result_tree(tmp_path, *before, benchmarks=TIME)
    import_asv(tree)
    for name, document in (("8-b", tonight), ("9-b", tomorrow)):
        (tree / "results" / "box" / f"{name}.json").write_text(json.dumps(document))
        import_asv(tree)

    assert kept(tree) == {"environment=a": 4}


def test_two_stored_series_of_one_environment_are_merged(tmp_path: Path) -> None:
    # Each was imported while the other's files were not there.
    early, late = nights("b", "a")
    records = ("--records", str(tmp_path / "records"))
    import_asv(result_tree(tmp_path / "1", late), *records)
    import_asv(result_tree(tmp_path / "2", early), *records)
    assert kept(tmp_path) == {"environment=a": 1, "environment=b": 1}

    import_asv(result_tree(tmp_path / "3", early, late), *records)

    assert kept(tmp_path) == {"environment=b": 2}


def test_separate_environments_stay_separate_in_later_imports(tmp_path: Path) -> None:
    first, second = nights("conda", "conda")
    tree = result_tree(tmp_path, first, first | {"env_name": "virtualenv"}, benchmarks=TIME)
    import_asv(tree)
    third = nights("conda", "conda", "virtualenv")[2]
    for name, document in (("8-c", second), ("9-v", third)):
        (tree / "results" / "box" / f"{name}.json").write_text(json.dumps(document))
    import_asv(tree)

    assert kept(tree) == {"environment=conda": 2, "environment=virtualenv": 2}


def test_unprintable_names_continue_like_any_other(tmp_path: Path) -> None:
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
        document
        | {
            "env_name": f"virtualenv-py{python}-numpy-pip+pack_age{version}-six1",
            "python": python,
            "requirements": {"numpy": "", "pip+pack/age": version, "six": "1"},
        }
        for version, document in zip(each, nights(*each), strict=True)
    ]


SIX = ("1.0", "1.0.1", "1.1", "2.0", "2.0.0.1", "3")


def test_a_requirement_under_test_is_one_series_across_its_versions(tmp_path: Path) -> None:
    tree = result_tree(tmp_path, *versions(*SIX), *versions(*SIX, python="3.12"), benchmarks=TIME)

    apart = read_project(tree)
    followed = read_project(tree, under_test=("pip+pack/age",))

    assert set(cells(apart.series).values()) == {1}
    assert cells(followed.series) == {
        "environment=virtualenv-py3.11-numpy-six1": 6,
        "environment=virtualenv-py3.12-numpy-six1": 6,
    }
    for series in followed.series:
        subjects = [one.commit.subject for one in series.points if one.commit is not None]
        assert subjects == [f"pip+pack/age {version}" for version in SIX]


def test_an_environment_with_a_custom_name_continues(tmp_path: Path) -> None:
    files = [document | {"env_name": f"nightly-{at}"} for at, document in enumerate(versions(*SIX))]

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
def test_only_the_requirement_under_test_leaves_the_name(
    tmp_path: Path, environment: str, name: str
) -> None:
    one, *_ = nights(environment, requirements={"foo": "1"})

    found = read_project(result_tree(tmp_path, one, benchmarks=TIME), under_test=("foo",))

    assert cells(found.series) == {f"environment={name}": 1}


def test_a_requirement_with_a_version_for_each_commit_is_reported(tmp_path: Path) -> None:
    tree = result_tree(tmp_path, *versions(*SIX), benchmarks=TIME)

    imported = import_asv(tree)
    followed = import_asv(tree, "--project", "other", "--under-test", "pip+pack/age")

    assert in_order(imported.stderr, "each commit", "another pip+pack/age")
    assert "--under-test pip+pack/age" in imported.stderr
    assert "1 series of 6 points" in followed.stdout
    assert followed.stderr == ""


@pytest.mark.parametrize("several", [SIX[:4], ("1", "1", "2", "3", "4", "5")])
def test_few_or_shared_versions_are_an_ordinary_requirement(
    tmp_path: Path, several: tuple[str, ...]
) -> None:
    imported = import_asv(result_tree(tmp_path, *versions(*several), benchmarks=TIME))

    assert imported.stderr == ""


def test_a_further_import_under_test_continues_the_series(tmp_path: Path) -> None:
    *before, tonight = versions(*SIX)
    tree = result_tree(tmp_path, *before, benchmarks=TIME)
    import_asv(tree, "--under-test", "pip+pack/age")
    (tree / "results" / "box" / "9-night.json").write_text(json.dumps(tonight))

    said = import_asv(tree, "--under-test", "pip+pack/age").stdout

    assert "; 1 new" in said
    assert kept(tree) == {"environment=virtualenv-py3.11-numpy-six1": 6}


@pytest.mark.parametrize(
    ("required", "fix"),
    [
        ({"numpy": "2", "six": "1"}, "They require numpy, six."),
        ({}, "The files have no requirements"),
    ],
)
def test_an_unknown_requirement_under_test_is_rejected(
    tmp_path: Path, required: dict[str, str], fix: str
) -> None:
    tree = result_tree(tmp_path, *nights("a", requirements=required), benchmarks=TIME)

    with pytest.raises(InputError) as raised:
        read_project(tree, under_test=("nunpy",))

    assert "'nunpy'" in raised.value.what
    assert known(raised.value.fix).startswith(fix)


def test_a_renamed_package_is_followed_under_both_names(tmp_path: Path) -> None:
    first, second = nights("py3-pip+foo1", "py3-foo2")
    files = (first | {"requirements": {"pip+foo": "1"}}, second | {"requirements": {"foo": "2"}})

    found = read_project(
        result_tree(tmp_path, *files, benchmarks=TIME), under_test=("pip+foo", "foo")
    )

    assert cells(found.series) == {"environment=py3": 2}


def test_several_versions_of_one_commit_are_reported(tmp_path: Path) -> None:
    files = [document | {"commit_hash": "f" * 40} for document in versions(*SIX)]

    imported = import_asv(
        result_tree(tmp_path, *files, benchmarks=TIME), "--under-test", "pip+pack/age"
    )

    said = "1 of 1 commits were measured with several versions of pip+pack/age"
    assert said in imported.stderr
