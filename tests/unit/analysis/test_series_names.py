"""Specifies the names of series, parameter by parameter, and their order."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.analysis.change_history import build_change_history
from corebound.analysis.series_names import (
    axes,
    cell_name,
    environments,
    long_environments,
    natural_sort_key,
    parameters,
    shared_axes,
    short_cell_names,
)
from corebound.records.history import Series
from support.build import a_series

# As asv names environments: of a project with dozens of requirements.
LONG = "environment=conda-py3.7-astropy-bqplot0.12.6-catboost-certifi2019.6.16-cython-graphene"


def of(*cells: str) -> list[Series]:
    return [a_series([1.0], project="p", scenario="b", cell=cell) for cell in cells]


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("n=1,m=2", ("n=1", "m=2")),
        ("(m, n)=100, 5,variant=d,environment=py3",
         ("(m, n)=100, 5", "variant=d", "environment=py3")),
        ("shape=(1, 2),kind=x", ("shape=(1, 2)", "kind=x")),
        ("call=f(a=1, b=2),kind=x", ("call=f(a=1, b=2)", "kind=x")),
        ("text='a, b=c',kind=x", ("text='a, b=c'", "kind=x")),
        # An apostrophe begins no quotation that never ends, nor a smile a bracket.
        ("text=don't,kind=x", ("text=don't", "kind=x")),
        ("text=:(,kind=x", ("text=:(", "kind=x")),
        ("'fits', 10", ("'fits'", "10")),
        ("default", ()),
    ],
)  # fmt: skip
def test_commas_in_names_and_values_do_not_split_parameters(
    cell: str, told: tuple[str, ...]
) -> None:
    assert axes(cell) == told


@given(cell=st.text(max_size=40))
def test_splitting_a_cell_loses_only_blanks_beside_commas(cell: str) -> None:
    if cell != "default":
        bare = "".join(cell.split()).replace(",", "")
        assert "".join("".join(axes(cell)).split()).replace(",", "") == bare


def test_shared_parameters_are_in_the_title_only() -> None:
    cells = of("(m, n)=100, 5,v=d,environment=py3", "(m, n)=9, 2,v=d,environment=py3")

    assert shared_axes(cells) == "v=d, environment=py3"
    assert short_cell_names(cells) == ("(m, n)=100, 5", "(m, n)=9, 2")


def test_parameters_are_sorted_numbers_first_by_size() -> None:
    cells = of(*(f"n={n},k=a" for n in (10, 2, "None", 1e-3, "-1", 100_000_000, 50_000_000)))

    assert [one.cell for one in sorted(cells, key=natural_sort_key)] == [
        f"n={n},k=a" for n in ("-1", 1e-3, 2, 10, 50_000_000, 100_000_000, "None")
    ]


@given(cells=st.lists(st.text(max_size=20)))
def test_any_cells_have_an_order(cells: list[str]) -> None:
    places = sorted(natural_sort_key(one) for one in of(*cells))

    assert all(one <= other for one, other in itertools.pairwise(places))


def test_a_long_environment_name_is_shortened_at_a_requirement() -> None:
    (one,) = of(f"n=1,{LONG}")

    assert shared_axes([one]) == "n=1, environment=conda-py3.7-astropy…"
    assert environments([one]) == {LONG.removeprefix("environment="): "conda-py3.7-astropy…"}


def test_a_single_cell_is_named_by_all_its_parameters() -> None:
    one, other = of(f"n=1,kind='a, b',{LONG}", "default")
    shown = long_environments([one, other])

    name, _, environment = cell_name(one, shown).rpartition(", ")
    assert (name, environment) == ("n=1, kind='a, b'", "environment=conda-py3.7-astropy…")
    assert cell_name(other, shown) == ""


def test_an_environment_s_name_depends_only_on_its_project() -> None:
    """Pages are remembered a project, whatever else is imported."""
    one, other = (
        a_series([1.0, 1.0], project=project, scenario="b", cell=f"{LONG}-{project}")
        for project in "pq"
    )

    assert build_change_history([one, other]).label(one).name == "environment=conda-py3.7-astropy…"


def test_environments_with_equal_short_names_are_numbered() -> None:
    first, second = of(f"{LONG}-a", f"{LONG}-b")

    assert short_cell_names([first, second]) == (
        "environment=conda-py3.7-astropy… (1)",
        "environment=conda-py3.7-astropy… (2)",
    )


def test_a_short_name_of_an_environment_stays_whole() -> None:
    (one,) = of("n=1,environment=virtualenv-py3.12-numpy")

    assert shared_axes([one]) == "n=1, environment=virtualenv-py3.12-numpy"
    assert parameters(one) == "n=1"
