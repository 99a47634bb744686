"""Specifies which configurations are worth trying, and in which order."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.errors import InputError
from corebound.planning.candidates import (
    Choice,
    SearchSpace,
    choices,
    include_entries,
    search_space,
)
from corebound.scenario.loader import load
from corebound.scenario.matrix import expand
from corebound.scenario.runtimes import Framework
from support.build import a_host


def of(
    framework: Framework = "pytorch",
    *,
    nodes: int = 1,
    cores: int = 4,
    vary: bool = False,
    layers: tuple[str, ...] = (),
) -> tuple[Choice, ...]:
    host = a_host(nodes=nodes, cores_per_node=cores)
    return choices(host, framework, vary_workers=vary, workers=1, blas_layers=layers)


def test_the_default_comes_first_the_launcher_second_and_fewer_threads_last() -> None:
    first, second, *_ = of("pytorch")
    bound = [choice["threads"] for choice in of(cores=8) if choice["binding"] == "physical-cores"]

    assert first == {"binding": "none", "threads": "default", "wait_policy": None, "workers": 1}
    assert second["binding"] == "launcher"
    # Thread counts are halved down to one.
    assert {choice["threads"] for choice in of(cores=8)} == {"default", "per-core", 4, 2, 1}
    assert (bound[0], bound[-3:]) == ("per-core", [4, 2, 1])
    # Workers share the cores only for throughput.
    assert {choice["workers"] for choice in of(cores=4)} == {1}
    assert {choice["workers"] for choice in of(cores=4, vary=True)} == {1, 2, 4}


@pytest.mark.parametrize(
    ("framework", "layers", "reads"),
    [
        ("pytorch", (), True),
        ("none", (), False),
        # NumPy, if its BLAS has OpenMP.
        ("numpy", (), False),
        ("numpy", ("pthreads",), False),
        ("numpy", ("sequential", "tbb"), False),
        ("numpy", ("intel",), True),
        ("numpy", ("gnu",), True),
        ("numpy", ("pthreads", "intel"), True),
        ("numpy", ("openmp",), True),
    ],
)
def test_wait_policies_are_tried_only_where_a_framework_reads_them(
    framework: Framework, layers: tuple[str, ...], *, reads: bool
) -> None:
    policies = {choice["wait_policy"] for choice in of(framework, layers=layers)}

    assert policies == ({None, "active", "passive"} if reads else {None})


@given(
    nodes=st.integers(1, 4),
    cores=st.integers(1, 64),
    framework=st.sampled_from(["none", "numpy", "pytorch", "torchserve", "litserve", "fastapi"]),
    vary=st.booleans(),
)
def test_no_candidate_appears_twice(
    nodes: int, cores: int, framework: Framework, vary: bool
) -> None:
    found = of(framework, nodes=nodes, cores=cores, vary=vary)

    assert len({tuple(sorted(map(repr, choice.items()))) for choice in found}) == len(found)


def test_entries_have_all_keys_and_parameters_in_their_section() -> None:
    entries = include_entries(
        [{"binding": "none"}, {"parameters.batch": 8}],
        {"binding": "node", "parameters.batch": 1},
        ("binding", "parameters.batch"),
    )

    assert entries == [
        {"binding": "none", "parameters": {"batch": 1}},
        {"binding": "node", "parameters": {"batch": 8}},
    ]


def space(workload: str, cores: int = 8, **objective: Any) -> SearchSpace:
    """What is tried for a workload, by default for the time of a command."""
    text = f"schema: 1\nname: a\ntitle: T\nquestion: Q?\nworkload: {workload}\n"
    scenario = load(text.encode(), "f.yaml")
    return search_space(
        scenario,
        expand(scenario, "f.yaml"),
        a_host(cores_per_node=cores),
        vary=(),
        profile=None,
        **{"objective": "latency", "bound_ms": None, **objective},
    )


def server_space(workload: str) -> SearchSpace:
    """What is tried for a rate of a server on four cores."""
    text = f"\n{workload}parameters: {{concurrency: 2}}"
    return space(text, cores=4, objective="rate", bound_ms=50.0)


@pytest.mark.parametrize(
    ("words", "counts"), [('"{port}", "{workers}"', {1, 2, 4}), ('"{port}"', {1})]
)
def test_workers_vary_only_if_the_command_of_a_server_takes_their_number(
    words: str, counts: set[int]
) -> None:
    server = f"  server: {{command: [serve, {words}]}}\n"

    found = server_space(server + '  requests: {url: "http://127.0.0.1:{port}/"}\n').found

    assert {choice["workers"] for choice in found} == counts


@pytest.mark.parametrize(
    ("workload", "follows", "varies"),
    [
        ("{command: [work]}", False, False),
        ("{command: [work]}", True, True),
        ('{command: [work, -t, "{threads}"]}', False, True),
        ('{command: [work]}\nenv: {WORKERS: "{threads}"}', False, True),
        ("{command: [work]}\nthreads: 2", False, True),
        ("{command: [work]}\nmatrix: {threads: [1, 2]}", False, True),
        ("{command: [work]}\nmatrix: {binding: [none, one-cpu]}", False, False),
        ("{command: [python, train.py]}\nframework: numpy", False, True),
        ("{command: [python, train.py]}\nenvironment: pytorch", False, True),
        ("{command: [work]}\nmatrix: {include: [{threads: 1}, {threads: 2}]}", False, True),
        ("training:setup", False, True),
    ],
)
def test_threads_vary_only_where_a_command_takes_or_follows_them(
    workload: str, *, follows: bool, varies: bool
) -> None:
    found = space(workload, follows_threads=follows)

    assert found.varies_threads == varies
    assert ("threads" in found.keys) == varies


def test_without_threads_a_command_is_tried_on_fewer_cpus() -> None:
    found = space("{command: [work]}", follows_threads=False).found

    bindings = [choice["binding"] for choice in found]
    assert bindings[0] == "none"
    assert {"one-cpu", "physical-cores"} < {*map(str, bindings)}
    assert {"cpus": "0-3"} in bindings
    assert {"cpus": "0-1"} in bindings
    assert len(bindings) == len({str(binding) for binding in bindings})


def test_a_running_service_cannot_be_tuned() -> None:
    with pytest.raises(InputError, match="runs already"):
        server_space('  requests: {url: "http://127.0.0.1:8000/"}\n')
