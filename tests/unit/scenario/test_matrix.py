"""A matrix becomes cells, and cells find their baseline, their claims and who asks for them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.errors import InputError
from corebound.machine.topology import CpuId
from corebound.scenario.cell import Binding, Cell, Threads, framework_of
from corebound.scenario.loader import load
from corebound.scenario.matrix import Key, expand, matching_cells, value_of
from corebound.scenario.models import Scenario, measure_for
from corebound.scenario.select import (
    baseline_of,
    baselines_of,
    claim_pairs,
    filter_cells,
    matches_expression,
    select,
)
from support.build import a_scenario


def cells_of(**document: Any) -> tuple[Cell, ...]:
    return expand(a_scenario(**document), "a.yaml")


def keys(cells: Iterable[Cell]) -> list[str]:
    return [cell.key for cell in cells]


def test_the_last_axis_varies_fastest_in_the_order_of_the_file() -> None:
    cells = cells_of(matrix={"threads": [1, "per-core"], "binding": ["none", {"cpus": "8,0-3"}]})

    assert keys(cells) == [
        "threads=1,binding=none",
        "threads=1,binding=cpus:0-3,8",
        "threads=per-core,binding=none",
        "threads=per-core,binding=cpus:0-3,8",
    ]


def test_parameters_are_axes_where_they_stand_among_the_others() -> None:
    matrix = {"smt": [True, None], "parameters": {"size": [1, 2.5]}, "omp": [None]}

    cells = cells_of(workload="m:f", parameters={"dtype": "float32"}, matrix=matrix)

    assert keys(cells) == [
        "smt=true,size=1,omp=default",
        "smt=true,size=2.5,omp=default",
        "smt=default,size=1,omp=default",
        "smt=default,size=2.5,omp=default",
    ]
    assert cells[1].parameters == (("dtype", "float32"), ("size", 2.5))


def test_a_scenario_without_a_matrix_is_one_cell() -> None:
    (cell,) = cells_of(matrix={}, threads=3)

    assert (cell.key, cell.threads.rule) == ("default", 3)


def test_include_and_exclude_work_as_in_github_actions() -> None:
    # The example of GitHub Docs, "Running variations of jobs in a workflow".
    cells = cells_of(
        workload="m:f",
        matrix={
            "parameters": {"fruit": ["apple", "pear"], "animal": ["cat", "dog"]},
            "include": [
                {"parameters": {"color": "green"}},
                {"parameters": {"color": "pink", "animal": "cat"}},
                {"parameters": {"fruit": "apple", "shape": "circle"}},
                {"parameters": {"fruit": "banana"}},
                {"parameters": {"fruit": "banana", "animal": "cat"}},
            ],
        },
    )

    assert [dict(cell.parameters) for cell in cells] == [
        {"fruit": "apple", "animal": "cat", "color": "pink", "shape": "circle"},
        {"fruit": "apple", "animal": "dog", "color": "green", "shape": "circle"},
        {"fruit": "pear", "animal": "cat", "color": "pink"},
        {"fruit": "pear", "animal": "dog", "color": "green"},
        {"fruit": "banana"},
        {"fruit": "banana", "animal": "cat"},
    ]


def test_exclude_takes_out_whatever_has_all_it_names_before_include_adds() -> None:
    cells = cells_of(
        matrix={
            "binding": ["none", "node"],
            "threads": [1, 2],
            "exclude": [{"binding": "node"}],
            "include": [{"binding": "node", "threads": 2}],
        }
    )

    assert keys(cells) == [
        "binding=none,threads=1",
        "binding=none,threads=2",
        "binding=node,threads=2",
    ]


def test_include_alone_lists_the_cells() -> None:
    cells = cells_of(matrix={"include": [{"threads": 1}, {"threads": 2, "smt": False}]})

    assert keys(cells) == ["threads=1", "threads=2,smt=false"]


def test_only_the_cells_that_an_include_widens_change_their_names() -> None:
    cells = cells_of(
        matrix={
            "binding": ["none", "node"],
            "include": [{"binding": "node", "wait_policy": "active"}],
        }
    )

    assert keys(cells) == ["binding=none", "binding=node,wait_policy=active"]
    assert cells[1].env == (("OMP_WAIT_POLICY", "ACTIVE"),)


def test_every_setting_reaches_the_cell() -> None:
    (cell,) = cells_of(
        matrix={},
        binding={"cpus": "0-1,4"},
        smt=False,
        avoid_cpu0=True,
        core_kind="performance",
        memory="bind",
        backend="numactl",
        bind="after-start",
        threads="host-cores",
        omp=1,
        mkl=2,
        intra_op=3,
        inter_op=4,
        wait_policy="passive",
        allocator="jemalloc",
        workers=2,
        environment="pytorch-2.12",
        env={"A": "b"},
    )

    assert cell.binding == Binding(
        mode="cpus",
        cpus=(CpuId(0), CpuId(1), CpuId(4)),
        smt=False,
        avoid_cpu0=True,
        core_kind="performance",
        memory="bind",
        backend="numactl",
        moment="after-start",
    )
    assert cell.threads == Threads(rule="host-cores", omp=1, mkl=2, intra_op=3, inter_op=4)
    assert cell.env == (
        ("A", "b"),
        ("OMP_WAIT_POLICY", "PASSIVE"),
        ("LD_PRELOAD", "libjemalloc.so.2"),
    )
    assert (cell.workers, cell.framework, cell.environment) == (2, "pytorch", "pytorch-2.12")


@pytest.mark.parametrize(
    ("environment", "framework"),
    [
        ("host", "none"),
        ("numpy", "numpy"),
        ("pytorch-2.12", "pytorch"),
        ("tensorflow-nightly", "tensorflow"),
        ("mindspore", "mindspore"),
        ("none", None),
        ("torch", None),
        ("pytorchish", None),
    ],
)
def test_the_framework_is_the_leading_word_of_the_environment(
    environment: str, framework: str | None
) -> None:
    assert framework_of(environment) == framework


def test_a_framework_that_is_written_comes_before_the_environments_name() -> None:
    (cell,) = cells_of(matrix={}, environment="pytorch", framework="numpy")

    assert cell.framework == "numpy"


def test_cells_know_the_line_that_their_matrix_begins_on() -> None:
    text = b"schema: 1\nname: a\ntitle: T\nquestion: Q?\nworkload: m:f\nmatrix:\n  threads: [1]\n"

    (cell,) = expand(load(text, "a.yaml"), "a.yaml")
    (recorded,) = cells_of(matrix={"threads": [1]})

    assert (cell.where, recorded.where) == ("a.yaml:6", "a.yaml")


FOUR: dict[str, Any] = {"binding": ["none", "node"], "threads": ["default", 2]}


def baselines(scenario: Scenario) -> dict[str, str | None]:
    cells = expand(scenario, "a.yaml")
    found = zip(cells, baselines_of(cells, cells, scenario), strict=True)
    return {cell.key: baseline.key if baseline else None for cell, baseline in found}


def test_a_baseline_that_names_every_axis_is_one_cell_for_all() -> None:
    found = baselines(a_scenario(matrix=FOUR, baseline={"binding": "node", "threads": 2}))

    assert set(found.values()) == {"binding=node,threads=2"}


def test_a_baseline_is_alike_on_the_axes_it_does_not_name() -> None:
    assert baselines(a_scenario(matrix=FOUR, baseline={"binding": "none"})) == {
        "binding=none,threads=default": "binding=none,threads=default",
        "binding=none,threads=2": "binding=none,threads=2",
        "binding=node,threads=default": "binding=none,threads=default",
        "binding=node,threads=2": "binding=none,threads=2",
    }


def test_the_baseline_is_the_first_cell_where_none_is_named() -> None:
    assert set(baselines(a_scenario(matrix=FOUR)).values()) == {"binding=none,threads=default"}


def test_a_cell_whose_baseline_was_excluded_has_none() -> None:
    matrix = {**FOUR, "exclude": [{"binding": "none", "threads": 2}]}

    found = baselines(a_scenario(matrix=matrix, baseline={"binding": "none"}))

    assert found["binding=node,threads=2"] is None


def test_a_baseline_that_names_no_axis_leaves_each_cell_to_itself() -> None:
    scenario = a_scenario(matrix={"threads": [1, 2]}, smt=True, baseline={"smt": True})
    cells = expand(scenario, "a.yaml")

    assert [baseline_of(cell, cells, scenario) for cell in cells] == list(cells)
    assert baseline_of(cells[1], cells[:1], scenario) is None


@pytest.mark.parametrize("cells", [20, 200])
def test_a_cell_is_looked_at_as_often_however_many_there_are(
    cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Looked for cell by cell, the baselines of a night's 2,000 cells took 20 s.
    looked = 0

    def counting(cell: Cell, key: Key) -> str:
        nonlocal looked
        looked += 1
        return value_of(cell, key)

    for module in ("matrix", "select"):
        monkeypatch.setattr(f"corebound.scenario.{module}.value_of", counting)
    matrix = {"binding": ["none", "node"], "threads": list(range(1, cells // 2 + 1))}
    scenario = a_scenario(matrix=matrix, baseline={"binding": "none"})
    every = expand(scenario, "a.yaml")

    baselines_of(every, every, scenario)

    # For `binding` to find the baselines, half of them; for `threads`, of those and of all.
    assert looked == cells + cells // 2 + cells


def test_entries_match_what_cells_were_told_also_off_the_axes() -> None:
    scenario = a_scenario(matrix=FOUR, smt=True, baseline={"smt": True, "threads": 2})
    cells = expand(scenario, "a.yaml")
    assert scenario.baseline is not None

    assert keys(matching_cells(scenario.baseline, cells)) == [
        "binding=none,threads=2",
        "binding=node,threads=2",
    ]


def test_claims_pair_cells_that_are_alike_where_neither_side_says_anything() -> None:
    claim = {"says": "x", "faster": {"binding": "node"}, "than": {"binding": "none"}}
    scenario = a_scenario(matrix=FOUR, claims=[claim])

    pairs = claim_pairs(scenario.claims[0], expand(scenario, "a.yaml"))

    assert [(one.key, other.key) for one, other in pairs] == [
        ("binding=node,threads=default", "binding=none,threads=default"),
        ("binding=node,threads=2", "binding=none,threads=2"),
    ]


def test_a_claim_may_compare_across_what_only_one_side_names() -> None:
    claim = {
        "says": "x",
        "faster": {"binding": "node", "threads": 2},
        "than": {"binding": "none", "threads": "default"},
    }
    scenario = a_scenario(matrix=FOUR, claims=[claim])

    ((one, other),) = claim_pairs(scenario.claims[0], expand(scenario, "a.yaml"))

    assert (one.key, other.key) == ("binding=node,threads=2", "binding=none,threads=default")


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
def test_only_chooses_cells(only: list[str], expected: list[str]) -> None:
    assert keys(select(CELLS, only)) == expected


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
                "--only binding: `binding` is no term.\n"
                "  Write axis=value, axis!=value or scenario=NAME, parted by commas."
            ),
        ),
        (
            "",
            (
                "--only : `` is no term.\n"
                "  Write axis=value, axis!=value or scenario=NAME, parted by commas."
            ),
        ),
        ("size=8,threads=1", "--only size=8,threads=1: no cell fits it.\n  Ask for less at once."),
    ],
)
def test_only_says_what_there_is_to_choose_from(only: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        select(CELLS, [only])

    assert str(caught.value) == message


def test_what_a_run_of_several_was_asked_for_is_told_of_each_scenario() -> None:
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
def test_a_cell_fits_what_it_is_asked_by(expression: str, *, expected: bool) -> None:
    assert matches_expression(CELLS[0], expression) == expected


def test_a_key_asks_for_its_cell_alone() -> None:
    plain, more = cells_of(matrix={"include": [{"threads": 1}, {"threads": 1, "smt": True}]})

    assert matches_expression(more, plain.key)
    assert (
        filter_cells((plain, more), [plain.key]) == select((plain, more), [plain.key]) == (plain,)
    )


@given(st.text(max_size=30))
def test_only_chooses_cells_or_raises_what_it_promises(only: str) -> None:
    with suppress(InputError):
        assert select(CELLS, [only])


@given(st.sampled_from(CELLS))
def test_a_cells_key_and_id_choose_that_cell(cell: Cell) -> None:
    assert select(CELLS, [cell.key]) == select(CELLS, [cell.id]) == (cell,)


def test_a_profile_changes_only_what_it_names() -> None:
    scenario = a_scenario(
        measure={"iterations": 50, "launches": {"min": 4, "max": 8, "until_relative_ci": 0.1}},
        profiles={"quick": {"launches": {"max": 5}}, "nightly": {"margin": 0.01}},
    )

    quick, nightly = measure_for(scenario, "quick"), measure_for(scenario, "nightly")

    assert (quick.iterations, quick.launches.min, quick.launches.max) == (50, 4, 5)
    assert quick.launches.until_relative_ci == 0.1
    assert (nightly.margin, nightly.launches) == (0.01, scenario.measure.launches)


@pytest.mark.parametrize(
    ("measure", "iterations", "launches"),
    [
        ({}, 20, (4, 4)),
        ({"iterations": 5}, 5, (4, 4)),
        ({"iterations": 500, "warmup": {"iterations": 30}}, 50, (4, 4)),
        ({"launches": {"min": 2, "max": 3}}, 20, (2, 3)),
    ],
)
def test_quick_never_asks_for_more_where_the_scenario_does_not_say(
    measure: dict[str, Any], iterations: int, launches: tuple[int, int]
) -> None:
    found = measure_for(a_scenario(measure=measure), "quick")

    assert (found.iterations, (found.launches.min, found.launches.max)) == (iterations, launches)
