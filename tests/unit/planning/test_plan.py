"""Specifies which launches of a block alternate: those that can be paused, with their baseline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.planning.plan import (
    MOST_INTERLEAVED,
    HostCapabilities,
    PlannedCell,
    interleave_groups,
    plan_cells,
)
from corebound.scenario.matrix import baselines_of, expand
from support.build import a_host, a_scenario


def block(**scenario: Any) -> tuple[tuple[PlannedCell, ...], dict[str, str]]:
    """Every cell of a scenario on a host of eight CPUs, and whom each is compared with."""
    loaded = a_scenario(**scenario)
    host = HostCapabilities(
        topology=a_host(nodes=2, cores_per_node=4),
        tools=frozenset({"taskset", "numactl"}),
        pythons={loaded.environment or "host": "/usr/bin/python3"},
        gpus=("0",),
    )
    cells = expand(loaded, "a.yaml")
    planned = plan_cells(loaded, cells, host, folder="/suite", profile=None, seed=1)
    baselines = baselines_of(cells, cells, loaded)
    pairs = zip(cells, baselines, strict=True)
    return planned, {cell.key: base.key for cell, base in pairs if base is not None}


def parted(**scenario: Any) -> list[list[str]]:
    return [[cell.cell.label for cell in group] for group in interleave_groups(*block(**scenario))]


def sides(*names: str, **scenario: Any) -> dict[str, Any]:
    """A scenario of cells that differ in one parameter."""
    return {
        "matrix": {"parameters": {"side": list(names)}},
        "baseline": {"parameters": {"side": names[0]}},
        **scenario,
    }


def test_cells_alternate_with_their_baseline() -> None:
    assert parted(**sides("a", "b", "c")) == [["a", "b", "c"]]


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ("binding", ["none", "one-cpu"]),
        ("threads", [1, 2]),
        ("wait_policy", ["active", "passive"]),
    ],
)
def test_cells_that_are_placed_differently_alternate_only_on_request(
    axis: str, values: list[Any]
) -> None:
    both = {"matrix": {axis: values}, "baseline": {axis: values[0]}}
    one, other = map(str, values)

    assert parted(**both) == [[one], [other]]
    assert parted(**both, measure={"alternate": "always"}) == [[one, other]]


@pytest.mark.parametrize("framework", ["numpy", "pytorch", "tensorflow", "mindspore"])
@pytest.mark.parametrize("requested", [{"threads": 2}, {"threads": 1, "workers": 2}])
def test_thread_pools_and_several_workers_alternate(
    framework: str, requested: dict[str, Any]
) -> None:
    requested = {"environment": framework, "framework": framework, **requested}

    assert parted(**sides("a", "b", **requested)) == [["a", "b"]]


def test_cells_that_compute_on_gpus_alternate_only_on_request() -> None:
    torch = {"environment": "pytorch", "framework": "pytorch", "gpus": 1}

    assert parted(**sides("a", "b", **torch)) == [["a"], ["b"]]
    assert parted(**sides("a", "b", **torch, measure={"alternate": "always"})) == [["a", "b"]]


def test_a_cell_that_ran_while_it_was_paused_is_launched_on_its_own() -> None:
    planned, baselines = block(**sides("a", "b", "c"))

    groups = interleave_groups(planned, baselines, unpausable={planned[1].cell.key})

    assert [[cell.cell.label for cell in group] for group in groups] == [["a", "c"], ["b"]]


def test_alternate_never_disables_alternation() -> None:
    assert parted(**sides("a", "b", measure={"alternate": "never"})) == [["a"], ["b"]]


def test_a_cell_whose_baseline_is_not_in_the_block_is_launched_on_its_own() -> None:
    planned, baselines = block(**sides("a", "b", "c"))

    assert [len(cell) for cell in interleave_groups(planned[1:], baselines)] == [1, 1]


names = st.lists(st.sampled_from("abcdefghijklmnop"), min_size=1, max_size=16, unique=True)


@given(order=names, data=st.data())
def test_every_cell_is_in_one_group_and_no_group_is_too_large(
    order: Sequence[str], data: st.DataObject
) -> None:
    planned, baselines = block(**sides(*order))
    some = data.draw(st.permutations(planned))

    groups = interleave_groups(some, baselines)

    assert sorted(cell.cell.key for group in groups for cell in group) == sorted(
        cell.cell.key for cell in planned
    )
    assert max(map(len, groups)) == min(len(order), MOST_INTERLEAVED)
    for group in groups:
        assert [cell for cell in some if cell in group] == list(group)
