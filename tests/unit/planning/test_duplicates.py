"""Specifies which cells of a scenario are the same on a host, and which of them is measured."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.machine.topology import Topology
from corebound.planning.duplicates import mark_duplicates
from corebound.planning.host_support import HostCapabilities
from corebound.planning.plan import PlannedCell, plan_cells
from corebound.scenario.compared_axis import with_compared_axis
from corebound.scenario.matrix import expand
from corebound.scenario.models import PROFILES, measure_for
from support.build import a_host, a_scenario
from support.known import known

TWO_CORES = a_host(cores_per_node=2)


def planned(host: Topology = TWO_CORES, **scenario: Any) -> tuple[PlannedCell, ...]:
    loaded = a_scenario(**scenario)
    cells = expand(loaded, "a.yaml")
    environments = {cell.environment for cell in cells}
    capabilities = HostCapabilities(
        topology=host,
        tools=frozenset({"taskset", "numactl", "java"}),
        pythons={name: f"/{name}/bin/python3" for name in environments},
    )
    cells_on_host = plan_cells(loaded, cells, capabilities, folder="/s", profile=None, seed=1)
    return mark_duplicates(loaded, cells_on_host, host)


def duplicates(host: Topology = TWO_CORES, **scenario: Any) -> dict[str, str]:
    """Each duplicate by its label, with the label of the cell that is measured."""
    return {
        one.cell.label: one.duplicate_of.label
        for one in planned(host, **scenario)
        if one.duplicate_of is not None
    }


def of_axis(axis: str, *values: Any, **scenario: Any) -> dict[str, str]:
    """The duplicates among cells that differ on one axis, on two cores without SMT."""
    return duplicates(matrix={axis: list(values)}, **scenario)


def test_a_cell_bound_to_all_allowed_cpus_is_the_same_as_an_unbound_one() -> None:
    assert of_axis("binding", "none", "physical-cores", "one-cpu", "node") == {
        "physical-cores": "none",
        "node": "none",
    }


def test_only_allowed_cpus_count() -> None:
    host = a_host(cores_per_node=4, allowed=frozenset({0, 1}))

    assert duplicates(host, matrix={"binding": ["none", {"cpus": "0-1"}]}) == {"cpus:0-1": "none"}


def test_thread_counts_are_compared_as_resolved() -> None:
    assert of_axis("threads", 1, 2, "per-core", "host-cores") == {
        "per-core": "2",
        "host-cores": "2",
    }


def test_memory_policies_differ_even_on_one_node() -> None:
    policies = ("default", "local", "bind", "preferred", "interleave")

    assert of_axis("memory", *policies) == {}
    assert duplicates(matrix={"memory": ["bind", "local"], "binding": ["none", "node"]}) == {
        "bind, node": "bind, none",
        "local, node": "local, none",
    }


def test_taskset_and_numactl_bind_alike_but_openmp_binds_each_thread() -> None:
    backends = of_axis("backend", "taskset", "numactl", "openmp", binding="one-cpu")

    assert backends == {"numactl": "taskset"}


def test_a_later_binding_matters_unless_it_allows_all_cpus() -> None:
    bindings = {"binding": ["none", "node", "one-cpu"]}

    assert duplicates(matrix={"bind": ["before-start", "after-start"], **bindings}) == {
        "before-start, node": "before-start, none",
        "after-start, none": "before-start, none",
        "after-start, node": "before-start, none",
    }


@pytest.mark.parametrize(
    "axis",
    [
        {"workers": [1, 2]},
        {"wait_policy": ["active", "passive"]},
        {"parameters": {"repeat": [1, 2]}},
        {"environment": ["numpy", "numpy-1"], "framework": ["numpy"]},
        {"environment": ["project"], "commit": ["main", "v1"]},
        {"omp": [1, 2]},
        {"intra_op": [1, 2], "framework": ["pytorch"], "environment": ["pytorch"]},
    ],
)
def test_other_settings_differ(axis: dict[str, Any]) -> None:
    assert duplicates(matrix=axis, workload="steps:short") == {}


def test_the_baseline_is_measured_if_it_is_one_of_them_and_the_first_cell_otherwise() -> None:
    found = duplicates(
        matrix={"binding": ["none", "node"], "threads": [2, "per-core", 1]},
        baseline={"binding": "node", "threads": "per-core"},
    )

    assert found == {
        "none, 2": "node, per-core",
        "none, per-core": "node, per-core",
        "node, 2": "node, per-core",
    }
    assert of_axis("binding", "node", "physical-cores", baseline=None) == {"physical-cores": "node"}


@pytest.mark.parametrize(
    ("axis", "values", "measured"),
    [("binding", ("none", "node"), "each"), ("commit", ("v1", "v2"), "once")],
)
def test_two_values_that_a_comparison_names_are_measured_apart(
    axis: str, values: tuple[str, str], measured: str
) -> None:
    scenario = a_scenario(environment="project", profiles={"quick": {"duplicates": "once"}})

    compared = with_compared_axis(scenario, (axis,), values, "a.yaml", suffix=".compared")

    assert {measure_for(compared, profile).duplicates for profile in PROFILES} == {measured}


SERVER: dict[str, Any] = {
    "workload": "served-classifier",
    "framework": "torchserve",
    "environment": "torchserve",
    "parameters": {"model": "tiny", "image": 32, "concurrency": 1},
}


def test_servers_are_the_same_if_the_cpus_of_their_workers_are() -> None:
    bindings = ["none", "node", "launcher"]

    assert of_axis("binding", *bindings, workers=2, **SERVER) == {"node": "none"}


HOSTS = st.builds(
    a_host,
    nodes=st.integers(1, 2),
    cores_per_node=st.integers(1, 3),
    cpus_per_core=st.integers(1, 2),
)
MATRICES = st.fixed_dictionaries(
    {
        "binding": st.permutations(
            ["none", "one-cpu", "physical-cores", "logical-cpus", "node", "socket", "per-worker"]
        ),
        "threads": st.permutations(["default", 1, 2, 4, "per-core", "per-cpu", "host-cores"]),
        "workers": st.sampled_from([[1], [2, 1]]),
    }
)


@given(host=HOSTS, matrix=MATRICES)
def test_duplicates_have_the_launch_of_the_measured_cell(
    host: Topology, matrix: dict[str, Any]
) -> None:
    cells = planned(host, matrix=matrix)
    by_key = {one.cell.key: one for one in cells}

    for one in cells:
        if one.duplicate_of is None:
            continue
        measured = by_key[one.duplicate_of.key]
        assert measured.duplicate_of is None
        assert known(one.placement).slots == known(measured.placement).slots
        assert one.requests == measured.requests
        assert [command.env for command in one.commands] == [
            command.env for command in measured.commands
        ]


@given(host=HOSTS, matrix=MATRICES)
def test_no_two_measured_cells_have_the_same_command(
    host: Topology, matrix: dict[str, Any]
) -> None:
    launches = [
        (one.commands, str(one.requests))
        for one in planned(host, matrix=matrix)
        if one.duplicate_of is None and one.unfit is None
    ]

    assert len(set(launches)) == len(launches)
