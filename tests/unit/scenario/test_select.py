"""Which cells `--only` selects."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from corebound.errors import InputError
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import expand
from corebound.scenario.select import filter_cells, matches_expression, select
from support.build import a_scenario
from support.texts import in_order


def cells_of(**document: Any) -> tuple[Cell, ...]:
    return expand(a_scenario(**document), "a.yaml")


def keys(cells: Iterable[Cell]) -> list[str]:
    return [cell.key for cell in cells]


CELLS = (
    *cells_of(matrix={"binding": ["none", {"cpus": "0,2"}], "threads": [1, 2]}),
    *cells_of(name="gemm", workload="m:f", matrix={"parameters": {"size": [8]}}),
)


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ([], [cell.key for cell in CELLS]),
        (["threads=2"], ["binding=none,threads=2", "binding=cpus:0,2,threads=2"]),
        (["binding=cpus:0,2,threads=1"], ["binding=cpus:0,2,threads=1"]),
        (["binding!=none,threads!=1"], ["binding=cpus:0,2,threads=2", "size=8"]),
        (["scenario=ge*"], ["size=8"]),
        (["size=8", "threads=1,binding=none"], ["binding=none,threads=1", "size=8"]),
        (["gemm[size=8]"], ["size=8"]),
    ],
)
def test_only_selects_cells(only: list[str], expected: list[str]) -> None:
    assert keys(select(CELLS, only)) == expected


@pytest.mark.parametrize(
    ("axis", "value", "written"),
    [
        ("wait_policy", None, ["null", "~", "default"]),
        ("smt", True, ["true", "True"]),
        ("binding", {"cpus": "0-3"}, ["{cpus: 0-3}", "{cpus: '0,1,2-3'}", "cpus:0-3"]),
        ("threads", "default", ["default", "'default'", '"default"']),
        ("size", 1.5, ["1.5", "1.50", "15e-1"]),
        ("size", "a,b", ["a,b", "'a,b'"]),
        ("size", "null", ["'null'", "null"]),
        ("mode", False, ["false", "FALSE"]),
    ],
)
def test_every_value_can_be_selected_as_its_file_has_it(
    axis: str, value: object, written: list[str]
) -> None:
    is_setting = axis in {"wait_policy", "smt", "binding", "threads"}
    values = [value, {"smt": False, "threads": 1, "wait_policy": "active"}.get(axis, "none")]
    own = {axis: values} if is_setting else {"parameters": {axis: values}}
    cells = cells_of(workload="m:f", matrix=own)

    for text in written:
        assert select(cells, [f"{axis}={text}"]) == cells[:1]
        assert select(cells, [f"{axis}!={text}"]) == cells[1:]


@given(text=st.text(max_size=30), is_value=st.booleans())
@example(text="2026-13-45", is_value=True)
def test_any_expression_selects_cells_or_is_rejected(text: str, *, is_value: bool) -> None:
    only = [f"binding={text}", f"binding={{cpus: {text}}}"] if is_value else [text]

    with suppress(InputError):
        assert select(CELLS, only)


@pytest.mark.parametrize(
    ("only", "facts"),
    [
        ("thread=1", ("axis `thread`", "threads?")),
        ("zeal=1", ("axis `zeal`", "binding, threads, size, scenario")),
        ("threads=3", ("no cell has threads=3", "1, 2")),
        ("scenario=resnet*", ("no cell has scenario=resnet*", "a-scenario, gemm")),
        ("binding", ("`binding` is not", "axis=value, axis!=value or scenario=NAME")),
        ("", ("`` is not", "axis=value")),
        ("size=8,threads=1", ("no cell matches", "fewer terms")),
    ],
)
def test_an_invalid_expression_lists_the_valid_choices(only: str, facts: tuple[str, ...]) -> None:
    with pytest.raises(InputError) as caught:
        select(CELLS, [only])

    assert in_order(str(caught.value), f"--only {only}: ", *facts)


def test_an_expression_may_match_cells_of_some_scenarios_only() -> None:
    ours, theirs, without = (
        cells_of(name="ours", matrix={"threads": [1, 8]}),
        cells_of(name="theirs", matrix={"threads": [1, 2]}),
        cells_of(name="without", workload="m:f", matrix={"parameters": {"size": [8]}}),
    )
    only = ["threads!=8"]

    apart = [*filter_cells(ours, only), *filter_cells(theirs, only), *filter_cells(without, only)]

    assert keys(apart) == ["threads=1", "threads=1", "threads=2", "size=8"]
    assert apart == [*select((*ours, *theirs, *without), only)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("threads=1", True),
        ("threads!=8", True),
        ("threads=2", False),
        ("zeal=1", False),
        ("zeal!=1", True),
        ("no term", False),
        ("scenario=a-*,threads!=2", True),
        ("scenario!=a-*", False),
        ("binding=none,threads=1", True),
        ("a-scenario[binding=none,threads=1]", True),
    ],
)
def test_a_cell_matches_an_expression(expression: str, *, expected: bool) -> None:
    assert matches_expression(CELLS[0], expression) == expected


def test_a_key_selects_its_cell_only() -> None:
    plain, more = cells_of(matrix={"include": [{"threads": 1}, {"threads": 1, "smt": True}]})

    assert matches_expression(more, plain.key)
    assert (
        filter_cells((plain, more), [plain.key]) == select((plain, more), [plain.key]) == (plain,)
    )


@given(st.sampled_from(CELLS))
def test_a_cells_key_and_id_select_that_cell(cell: Cell) -> None:
    assert select(CELLS, [cell.key]) == select(CELLS, [cell.id]) == (cell,)
