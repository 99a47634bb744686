"""Specifies which launches of a block alternate: those that can be paused, with their baseline."""

from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.planning.launch_order import (
    MOST_INTERLEAVED,
    MOST_TOGETHER,
    interleave_groups,
    start_groups,
)
from support.plans import block


def parted(*, smt: int = 1, **scenario: Any) -> list[list[str]]:
    groups = interleave_groups(*block(smt=smt, **scenario))
    return [[cell.cell.label for cell in group] for group in groups]


def sides(*names: str, **scenario: Any) -> dict[str, Any]:
    """A scenario of cells that differ in one parameter."""
    return {
        "matrix": {"parameters": {"side": list(names)}},
        "baseline": {"parameters": {"side": names[0]}},
        **scenario,
    }


@pytest.mark.parametrize(
    ("scenario", "groups"),
    [
        (sides("a", "b", "c"), [["a", "b", "c"]]),
        (sides("a", "b", measure={"alternate": "never"}), [["a"], ["b"]]),
        # With a quota they never do.
        (sides("a", "b", cpu_quota=2), [["a"], ["b"]]),
        (sides("a", "b", cpu_quota=2, measure={"alternate": "always"}), [["a"], ["b"]]),
        # Thread pools and several workers can.
        *(
            (sides("a", "b", environment=name, framework=name, **threads), [["a", "b"]])
            for name in ("numpy", "pytorch", "tensorflow", "mindspore")
            for threads in ({"threads": 2}, {"threads": 1, "workers": 2})
        ),
    ],
)
def test_cells_alternate_with_their_baseline_unless_they_cannot(
    scenario: dict[str, Any], groups: list[list[str]]
) -> None:
    assert parted(**scenario) == groups


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ("binding", ["none", "one-cpu"]),
        ("threads", [1, 2]),
        # How many threads that is depends on the framework.
        ("threads", ["default", 2]),
    ],
)
def test_cells_that_keep_other_cpus_busy_alternate_only_on_request(
    axis: str, values: list[Any]
) -> None:
    both: dict[str, Any] = {"matrix": {axis: values}, "baseline": {axis: values[0]}}
    one, other = map(str, values)

    assert parted(**both) == [[one], [other]]
    assert parted(**both, measure={"alternate": "always"}) == [[one, other]]


@pytest.mark.parametrize("framework", ["numpy", "pytorch"])
def test_as_many_threads_as_the_framework_default_alternate_with_it(framework: str) -> None:
    both: dict[str, Any] = {
        "matrix": {"threads": ["default", 4, 8]},
        "baseline": {"threads": "default"},
        "environment": framework,
        "framework": framework,
    }

    assert parted(**both) == [["default", "8"], ["4"]]
    # PyTorch has a thread for each core, OpenBLAS one for each CPU.
    assert parted(**both, smt=2) == [["default"], ["4"], ["8"]]


def test_a_cell_that_ran_while_it_was_paused_is_launched_on_its_own() -> None:
    planned, baselines = block(**sides("a", "b", "c"))

    groups = interleave_groups(planned, baselines, alone={planned[1].cell.key})

    assert [[cell.cell.label for cell in group] for group in groups] == [["a", "c"], ["b"]]


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


def starts(*, apart: Collection[str] = (), **scenario: Any) -> list[list[list[str]]]:
    """The labels of the cells that start at once, by turn."""
    function = {"workload": "steps:short", "environment": "host", **scenario}
    groups = start_groups(interleave_groups(*block(**function)), apart=apart)
    return [[[cell.cell.label for cell in turn] for turn in group] for group in groups]


THREADS: dict[str, Any] = {"matrix": {"threads": [1, 2, 4]}}


def test_cells_that_do_not_alternate_start_at_once_and_have_a_turn_each() -> None:
    assert starts(**THREADS) == [[["1"], ["2"], ["4"]]]
    # One that may not start with others does not part them.
    assert starts(**THREADS, apart={"threads=2"}) == [[["1"], ["4"]], [["2"]]]


def test_cells_that_alternate_share_a_turn_among_those_that_start_at_once() -> None:
    both: dict[str, Any] = {
        "matrix": {"binding": ["none", "node"], "parameters": {"side": ["a", "b"]}},
        "baseline": {"parameters": {"side": "a"}},
    }

    assert starts(**both) == [[["none, a", "none, b"], ["node, a", "node, b"]]]


@pytest.mark.parametrize(
    ("scenario", "sizes"),
    [
        ({"binding": "none"}, [MOST_TOGETHER, 1]),
        ({"binding": "none", "workers": 4}, [4, 4, 1]),
        ({"binding": "none", "workers": 16}, [1] * 9),
        ({"binding": "one-cpu"}, [2, 2, 2, 2, 1]),
    ],
)
def test_two_workers_for_each_cpu_that_they_import_on_start_at_once(
    scenario: dict[str, Any], sizes: list[int]
) -> None:
    found = starts(matrix={"threads": list(range(1, 10))}, **scenario)

    assert [sum(map(len, group)) for group in found] == sizes


@pytest.mark.parametrize(
    "separate",
    [{"measure": {"alternate": "never"}}, {"cpu_quota": 2}, {"workload": {"command": ["true"]}}],
)
def test_what_cannot_be_paused_or_times_its_start_starts_separately(
    separate: dict[str, Any],
) -> None:
    assert starts(**THREADS, **separate) == [[["1"]], [["2"]], [["4"]]]
