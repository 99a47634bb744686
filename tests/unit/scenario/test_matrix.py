"""Expanding a matrix into cells, and the cells that entries, baselines and claims name."""

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec.structs import replace

from corebound.analysis.scenario_result import analyse_scenario
from corebound.analysis.wording import full_name
from corebound.machine.topology import CpuId
from corebound.report.inputs import PageContext
from corebound.report.scenario.page import scenario_page
from corebound.scenario.cell import Binding, Cell, Threads, framework_of
from corebound.scenario.loader import load
from corebound.scenario.matrix import (
    Key,
    baseline_of,
    baselines_of,
    claim_pairs,
    expand,
    matching_cells,
    shorten_labels,
    value_of,
)
from corebound.scenario.models import Scenario, measure_for
from corebound.scenario.select import select
from support.build import a_launch, a_run, a_scenario
from support.known import known


def cells_of(**document: Any) -> tuple[Cell, ...]:
    return expand(a_scenario(**document), "a.yaml")


def keys(cells: Iterable[Cell]) -> list[str]:
    return [cell.key for cell in cells]


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        # The last axis varies fastest, in the order of the file, parameters among the others.
        (
            {"threads": [1, 2], "binding": ["none", {"cpus": "8,0-3"}]},
            (
                "threads=1,binding=none  threads=1,binding=cpus:0-3,8  "
                "threads=2,binding=none  threads=2,binding=cpus:0-3,8"
            ),
        ),
        (
            {"smt": [True, None], "parameters": {"size": [1, 2.5]}, "omp": [None]},
            (
                "smt=true,size=1,omp=default  smt=true,size=2.5,omp=default  "
                "smt=default,size=1,omp=default  smt=default,size=2.5,omp=default"
            ),
        ),
        ({"cpu_quota": [None, 0.5, 2.0]}, "cpu_quota=default  cpu_quota=0.5  cpu_quota=2"),
        # `exclude` removes before `include` adds, which may stand alone.
        (
            {
                "binding": ["none", "node"],
                "threads": [1, 2],
                "exclude": [{"binding": "node"}],
                "include": [{"binding": "node", "threads": 2}],
            },
            "binding=none,threads=1  binding=none,threads=2  binding=node,threads=2",
        ),
        (
            {"include": [{"threads": 1}, {"threads": 2, "smt": False}]},
            "threads=1  threads=2,smt=false",
        ),
        ({}, "default"),
    ],
)
def test_a_matrix_has_these_points(matrix: dict[str, Any], expected: str) -> None:
    cells = cells_of(workload="m:f", matrix=matrix)

    assert keys(cells) == expected.split("  ")
    assert all(
        select(cells, [key]) == (cell,) for key, cell in zip(keys(cells), cells, strict=True)
    )


def test_values_on_axes_and_outside_reach_the_cells() -> None:
    sized = cells_of(
        workload="m:f", parameters={"dtype": "float32"}, matrix={"parameters": {"size": [1, 2.5]}}
    )
    quotas = cells_of(matrix={"cpu_quota": [None, 0.5, 2.0]}, baseline={"cpu_quota": 2})
    (single,) = cells_of(matrix={}, threads=3)

    assert sized[1].parameters == (("dtype", "float32"), ("size", 2.5))
    assert [cell.cpu_quota for cell in quotas] == [None, 0.5, 2]
    assert select(quotas, ["cpu_quota=0.5"]) == quotas[1:2]
    assert single.threads.rule == 3


def test_environment_variables_are_axes_and_differ_by_cell() -> None:
    cells = cells_of(
        env={"HOME": "/tmp"},
        matrix={
            "threads": [1, 2],
            "env": {"MALLOC_ARENA_MAX": [None, "1"]},
            "include": [{"threads": 2, "env": {"DEBUG": "1"}}],
        },
    )

    assert {cell.key: dict(cell.env) for cell in cells} == {
        "threads=1,env.MALLOC_ARENA_MAX=default": {"HOME": "/tmp"},
        "threads=1,env.MALLOC_ARENA_MAX=1": {"HOME": "/tmp", "MALLOC_ARENA_MAX": "1"},
        "threads=2,env.MALLOC_ARENA_MAX=default,env.DEBUG=1": {"HOME": "/tmp", "DEBUG": "1"},
        "threads=2,env.MALLOC_ARENA_MAX=1,env.DEBUG=1": {
            "HOME": "/tmp",
            "MALLOC_ARENA_MAX": "1",
            "DEBUG": "1",
        },
    }


def test_a_baseline_may_name_a_variable_that_is_not_set() -> None:
    scenario = a_scenario(
        matrix={"env": {"ARENAS": ["1", None]}}, baseline={"env": {"ARENAS": None}}
    )
    cells = expand(scenario, "a.yaml")

    assert [cell.key for cell in baselines_of(cells, cells, scenario) if cell] == [
        "env.ARENAS=default"
    ] * 2
    assert keys(select(cells, ["env.ARENAS=1"])) == ["env.ARENAS=1"]


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


def test_an_include_changes_the_names_of_the_cells_it_extends_only() -> None:
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
def test_the_framework_is_the_first_word_of_the_environment(
    environment: str, framework: str | None
) -> None:
    assert framework_of(environment) == framework


def test_an_explicit_framework_overrides_the_environments_name() -> None:
    (cell,) = cells_of(matrix={}, environment="pytorch", framework="numpy")

    assert cell.framework == "numpy"


def test_cells_have_the_line_of_their_matrix() -> None:
    text = b"schema: 1\nname: a\ntitle: T\nquestion: Q?\nworkload: m:f\nmatrix:\n  threads: [1]\n"

    (cell,) = expand(load(text, "a.yaml"), "a.yaml")
    (recorded,) = cells_of(matrix={"threads": [1]})

    assert (cell.where, recorded.where) == ("a.yaml:6", "a.yaml")


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
        ({}, "auto", (4, 4)),
        ({"iterations": 100}, 20, (4, 4)),
        ({"iterations": 5}, 5, (4, 4)),
        ({"iterations": 500, "warmup": {"iterations": 30}}, 50, (4, 4)),
        ({"launches": {"min": 2, "max": 3}}, "auto", (2, 3)),
    ],
)
def test_the_default_quick_profile_never_measures_more(
    measure: dict[str, Any], iterations: int | str, launches: tuple[int, int]
) -> None:
    cells = measure_for(a_scenario(measure=measure), "quick")

    assert (cells.iterations, (cells.launches.min, cells.launches.max)) == (iterations, launches)


SCENARIO = a_scenario(
    matrix={
        "parameters": {"model": ["small", "large"]},
        "workers": [1, 2],
        "threads": ["default", "per-core"],
    },
    profiles={"quick": {"only": [{"workers": 2, "parameters": {"model": "small"}}]}},
)


def test_a_label_leaves_out_axes_with_one_value_under_the_profile_and_keys_stay() -> None:
    cells, all_cells = expand(SCENARIO, "s.yaml", "quick"), expand(SCENARIO, "s.yaml")

    assert [full_name(cell) for cell in cells] == ["default threads", "one thread per core"]
    assert [cell.label for cell in cells] == ["default", "per-core"]
    assert cells[0].key == "model=small,workers=2,threads=default"
    assert set(keys(cells)) < set(keys(all_cells))
    assert set(cells) < set(all_cells)


def test_every_label_shows_the_axes_that_vary() -> None:
    names = {full_name(cell) for cell in expand(SCENARIO, "s.yaml")}

    assert len(names) == 8
    assert "model small, 1 worker, default threads" in names


def test_labels_of_selected_cells_distinguish_them_and_that_of_a_single_cell_is_complete() -> None:
    def labels(only: str) -> list[str]:
        selected = select(expand(SCENARIO, "s.yaml"), [only])
        return [cell.label for cell in shorten_labels(selected)]

    assert labels("threads=default,workers=2") == ["small", "large"]
    assert labels("threads=default,workers=2,model=small") == ["small, 2, default"]


def test_a_page_shows_values_that_all_cells_share_once() -> None:
    run = replace(a_run(scenarios=(SCENARIO,)), profile="quick")
    # As records of a corebound that named cells in full have them.
    cells = [replace(cell, hidden_axes=()) for cell in expand(SCENARIO, "s.yaml", "quick")]
    launches = [a_launch(cell=cell, position=place) for place, cell in enumerate(cells)]

    result = analyse_scenario(run, run.scenarios[0], launches)
    page = scenario_page(
        result, PageContext(now="2026-03-14T09:26:53+00:00"), findings=(), records_file="r.jsonl"
    )

    names = [full_name(cell_result.cell) for cell_result in result.cells]
    assert names == ["default threads", "one thread per core"]
    assert page.hero.context.startswith("model small, 2 workers, on ")


FOUR: dict[str, Any] = {"binding": ["none", "node"], "threads": ["default", 2]}


def baselines(scenario: Scenario) -> dict[str, str | None]:
    cells = expand(scenario, "a.yaml")
    pairs = zip(cells, baselines_of(cells, cells, scenario), strict=True)
    return {cell.key: baseline.key if baseline else None for cell, baseline in pairs}


NONE_2 = {"exclude": [{"binding": "none", "threads": 2}]}


@pytest.mark.parametrize(
    ("baseline", "changes", "expected"),
    [
        # Of none-default, none-2, node-default and node-2, where they are not excluded.
        (None, {}, ["none-default"] * 4),
        ({"binding": "node", "threads": 2}, {}, ["node-2"] * 4),
        ({"binding": "none"}, {}, ["none-default", "none-2"] * 2),
        ({"binding": "none"}, NONE_2, ["none-default", "none-default", None]),
    ],
)
def test_a_baseline_equals_its_cell_on_the_axes_it_does_not_name(
    baseline: dict[str, Any] | None, changes: dict[str, Any], expected: list[str | None]
) -> None:
    named = {} if baseline is None else {"baseline": baseline}

    pairs = baselines(a_scenario(matrix={**FOUR, **changes}, **named))

    assert [*pairs.values()] == [
        one and f"binding={one.replace('-', ',threads=')}" for one in expected
    ]


def test_a_baseline_that_names_no_axis_makes_each_cell_its_own_baseline() -> None:
    scenario = a_scenario(matrix={"threads": [1, 2]}, smt=True, baseline={"smt": True})
    cells = expand(scenario, "a.yaml")

    assert [baseline_of(cell, cells, scenario) for cell in cells] == list(cells)
    assert baseline_of(cells[1], cells[:1], scenario) is None


@pytest.mark.parametrize("cells", [20, 200])
def test_finding_baselines_takes_linear_time(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Looked for cell by cell, the baselines of a night's 2,000 cells took 20 s.
    values_read = 0

    def counting(cell: Cell, key: Key) -> str:
        nonlocal values_read
        values_read += 1
        return value_of(cell, key)

    monkeypatch.setattr("corebound.scenario.matrix.value_of", counting)
    matrix = {"binding": ["none", "node"], "threads": list(range(1, cells // 2 + 1))}
    scenario = a_scenario(matrix=matrix, baseline={"binding": "none"})
    all_cells = expand(scenario, "a.yaml")

    baselines_of(all_cells, all_cells, scenario)

    # For `binding` to find the baselines, half of them; for `threads`, of those and of all.
    assert values_read == cells + cells // 2 + cells


def test_entries_match_settings_that_are_not_on_an_axis() -> None:
    scenario = a_scenario(matrix=FOUR, smt=True, baseline={"smt": True, "threads": 2})
    cells = expand(scenario, "a.yaml")

    assert keys(matching_cells(known(scenario.baseline), cells)) == [
        "binding=none,threads=2",
        "binding=node,threads=2",
    ]


@pytest.mark.parametrize(
    ("faster", "than", "expected"),
    [
        (
            {"binding": "node"},
            {"binding": "none"},
            [
                ("node,threads=default", "none,threads=default"),
                ("node,threads=2", "none,threads=2"),
            ],
        ),
        (
            {"binding": "node", "threads": 2},
            {"binding": "none", "threads": "default"},
            [("node,threads=2", "none,threads=default")],
        ),
    ],
)
def test_claims_pair_cells_that_are_equal_on_the_axes_neither_side_names(
    faster: dict[str, Any], than: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    scenario = a_scenario(matrix=FOUR, claims=[{"says": "x", "faster": faster, "than": than}])

    pairs = claim_pairs(scenario.claims[0], expand(scenario, "a.yaml"))

    assert [(one.key, other.key) for one, other in pairs] == [
        (f"binding={one}", f"binding={other}") for one, other in expected
    ]
