"""Which cells `--only` selects."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.errors import InputError
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import expand
from corebound.scenario.select import filter_cells, matches_expression, select
from support.build import a_scenario


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


@given(st.text(max_size=12))
def test_any_text_of_a_value_is_selected_or_refused(text: str) -> None:
    with suppress(InputError):
        select(CELLS, [f"binding={text}", f"binding={{cpus: {text}}}"])


@pytest.mark.parametrize(
    ("only", "message"),
    [
        (
            "thread=1",
            "--only thread=1: no cell has an axis `thread`.\n  Did you mean threads?",
        ),
        (
            "zeal=1",
            (
                "--only zeal=1: no cell has an axis `zeal`.\n"
                "  There are: binding, threads, size, scenario."
            ),
        ),
        ("threads=3", "--only threads=3: no cell has threads=3.\n  There are: 1, 2."),
        (
            "scenario=resnet*",
            (
                "--only scenario=resnet*: no cell has scenario=resnet*.\n"
                "  There are: a-scenario, gemm."
            ),
        ),
        (
            "binding",
            (
                "--only binding: `binding` is not a valid term.\n"
                "  Write axis=value, axis!=value or scenario=NAME, separated by commas."
            ),
        ),
        (
            "",
            (
                "--only : `` is not a valid term.\n"
                "  Write axis=value, axis!=value or scenario=NAME, separated by commas."
            ),
        ),
        ("size=8,threads=1", "--only size=8,threads=1: no cell matches it.\n  Use fewer terms."),
    ],
)
def test_an_invalid_expression_lists_the_valid_choices(only: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        select(CELLS, [only])

    assert str(caught.value) == message


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


@given(st.text(max_size=30))
def test_any_expression_selects_cells_or_is_rejected(only: str) -> None:
    with suppress(InputError):
        assert select(CELLS, [only])


@given(st.sampled_from(CELLS))
def test_a_cells_key_and_id_select_that_cell(cell: Cell) -> None:
    assert select(CELLS, [cell.key]) == select(CELLS, [cell.id]) == (cell,)
