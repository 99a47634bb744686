"""What servers are told: their command, their threads, their CPUs, their traffic."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from corebound.errors import ScenarioFaults
from corebound.machine.topology import Topology
from corebound.planning.commands import command, traffic_of
from corebound.planning.models import CannotRun, Placement
from corebound.planning.placement import place
from corebound.planning.plan import HostCapabilities, plan_cells
from corebound.scenario.cell import Binding, Cell, Framework, Scalar, Threads
from corebound.scenario.loader import load
from corebound.scenario.matrix import expand
from corebound.scenario.models import Measure, WarmupIterations
from support.build import a_cell, a_host

PYTHON = "/e/bin/python"
FOUR_CORES = a_host(nodes=2, cores_per_node=2, cpus_per_core=2)


def a_server(
    *,
    binding: Binding | None = None,
    threads: Threads | None = None,
    workers: int = 2,
    framework: Framework = "torchserve",
    **parameters: Scalar,
) -> Cell:
    return replace(
        a_cell(),
        framework=framework,
        environment=framework,
        binding=binding or Binding(),
        threads=threads or Threads(),
        workers=workers,
        parameters=(("model", "resnet18"), ("image", 224), *parameters.items()),
    )


def placed(cell: Cell, host: Topology = FOUR_CORES) -> Placement:
    placement = place(cell, host)
    assert isinstance(placement, Placement)
    return placement


def test_a_server_is_one_command_that_starts_its_workers_itself() -> None:
    cell = a_server(framework="litserve")

    made = command(cell, placed(cell), 0, PYTHON)

    assert made.argv[0] == PYTHON
    assert made.argv[-2:] == ("--workers", "2")


def test_torchserve_is_started_as_its_users_start_it() -> None:
    cell = a_server()

    words = command(cell, placed(cell), 0, PYTHON).argv

    assert words[:2] == ("/e/bin/torchserve", "--start")


def test_a_server_bound_whole_is_bound_by_its_command() -> None:
    cell = a_server(binding=Binding(mode="node"))

    words = command(cell, placed(cell), 0, PYTHON).argv

    assert words[:2] == ("taskset", "-c")


def test_a_launcher_gives_each_worker_cores_of_its_own_and_binds_nothing_before() -> None:
    cell = a_server(binding=Binding(mode="launcher"))

    placement = placed(cell)

    # Four cores of two CPUs, two workers: two cores each, their first CPUs.
    assert [len(slot.cpus) for slot in placement.slots] == [2, 2]
    assert not set(placement.slots[0].cpus) & set(placement.slots[1].cpus)
    assert placement.bound
    assert command(cell, placement, 0, PYTHON).argv[0] == "/e/bin/torchserve"


def test_more_workers_than_cores_share_them_evenly() -> None:
    cell = a_server(binding=Binding(mode="launcher"), workers=4)
    two_cores = a_host(nodes=1, cores_per_node=2, cpus_per_core=1)

    assert [slot.cpus for slot in placed(cell, two_cores).slots] == [(0,), (0,), (1,), (1,)]


@pytest.mark.parametrize(("workers", "threads"), [(1, 4), (2, 2), (3, 1), (8, 1)])
def test_cores_per_worker_divides_the_cores_and_leaves_everyone_one(
    workers: int, threads: int
) -> None:
    cell = a_server(threads=Threads(rule="cores-per-worker"), workers=workers)

    placement = placed(cell)

    assert placement.threads == threads
    told = dict(command(cell, placement, 0, PYTHON).env)
    assert told["COREBOUND_SERVED_THREADS"] == told["OMP_NUM_THREADS"] == str(threads)


def test_a_server_left_to_itself_is_told_no_number_of_threads() -> None:
    cell = a_server()

    told = dict(command(cell, placed(cell), 0, PYTHON).env)

    assert not {"COREBOUND_SERVED_THREADS", "OMP_NUM_THREADS"} & told.keys()


@pytest.mark.parametrize(
    "binding",
    [
        Binding(mode="per-worker"),
        Binding(mode="node", moment="after-start"),
        Binding(mode="launcher", memory="interleave"),
    ],
)
def test_what_a_server_starts_itself_cannot_be_bound_by_us(binding: Binding) -> None:
    assert isinstance(place(a_server(binding=binding), FOUR_CORES), CannotRun)


def test_a_launcher_is_for_servers_that_have_one() -> None:
    cell = a_server(framework="litserve", binding=Binding(mode="launcher"))

    assert isinstance(place(cell, FOUR_CORES), CannotRun)


def test_an_iteration_is_a_request_and_the_warm_up_is_apart() -> None:
    measure = Measure(iterations=100, warmup=WarmupIterations(iterations=7))

    traffic = traffic_of(a_server(concurrency=5), measure, seed=3)

    assert (traffic.requests, traffic.warmup_requests, traffic.concurrency) == (100, 7, 5)


SCENARIO = """schema: 1
name: s
title: S
question: Q?
workload: image-serving
environment: torchserve
"""


def faults(text: str) -> str:
    with pytest.raises(ScenarioFaults) as caught:
        load((SCENARIO + text).encode(), "f.yaml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("{model: resnet18, image: 224}", "`traffic: closed` needs `concurrency`"),
        ("{model: resnet18, concurrency: 2}", "f.yaml:7: `image-serving` needs `image`."),
        (
            "{model: resnet18, image: 224, concurrency: 2, rate: 5.0}",
            "`rate` means nothing to `traffic: closed`",
        ),
        (
            "{model: resnet18, image: 224, traffic: poisson, rate: 5.0, client: ab}",
            "`client: ab` cannot send `traffic: poisson`",
        ),
        (
            "{model: resnet18, image: 224, traffic: multi-stream, query: 7}",
            "100 requests do not make whole queries of 7",
        ),
        (
            "{model: resnet18, image: 224, traffic: poisson, rate: 0}",
            "f.yaml:7: `rate: 0` is not what `image-serving` takes. Write a number above 0.",
        ),
        (
            "{model: resnet18, image: 224, traffic: poisson, rate: -1}",
            "f.yaml:7: `rate: -1` is not what `image-serving` takes. Write a number above 0.",
        ),
        (
            "{model: resnet18, image: 224, traffic: server, rate: 5, bound_ms: 0.0}",
            "f.yaml:7: `bound_ms: 0.0` is not what `image-serving` takes. Write a number above 0.",
        ),
        (
            "{model: resnet18, image: 224, traffic: constant, rate: 1e-320}",
            "f.yaml:7: 100 requests at 1e-320 a second do not end before the deadline of 600 s.",
        ),
    ],
)
def test_traffic_that_does_not_go_together_is_a_fault(parameters: str, said: str) -> None:
    assert said in faults(f"parameters: {parameters}\n")


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("{rate: 3.0}", "f.yaml:9: `rate` means nothing to `traffic: closed`."),
        ("{traffic: poisson}", "f.yaml:7: `concurrency` means nothing to `traffic: poisson`."),
        ("{query: 2}", "f.yaml:9: `query` means nothing to `traffic: closed`."),
    ],
)
def test_traffic_that_a_profile_makes_is_judged_as_well(profile: str, said: str) -> None:
    text = f"profiles:\n  quick: {{parameters: {profile}}}\n"

    found = faults(f"parameters: {{model: resnet18, image: 224, concurrency: 9}}\n{text}")

    assert said in found


def test_cells_that_a_profile_leaves_out_are_not_judged_under_it() -> None:
    text = """parameters: {model: resnet18, image: 224}
matrix:
  include:
    - {parameters: {traffic: poisson, rate: 0.01}}
    - {parameters: {concurrency: 2}}
measure: {timeout_s: 36000}
profiles:
  quick: {timeout_s: 60%s}
"""
    only = ", only: [{parameters: {concurrency: 2}}]"

    assert "100 requests at 0.01 a second" in faults(text % "")
    assert load((SCENARIO + text % only).encode(), "f.yaml")


def test_a_server_runs_no_function() -> None:
    text = SCENARIO.replace("image-serving", "mine:step")

    with pytest.raises(ScenarioFaults, match="torchserve is a server"):
        load(text.encode(), "f.yaml")


CLOSED = (
    "parameters: {image: 224, concurrency: 9}\n"
    "matrix: {workers: [1, 2], parameters: {model: [resnet18, resnet50]}}\n"
)


def test_a_profile_keeps_some_cells_and_changes_parameters() -> None:
    profile = "{parameters: {concurrency: 2}, only: [{workers: 2, parameters: {model: resnet18}}]}"
    scenario = load(f"{SCENARIO}{CLOSED}profiles:\n  quick: {profile}\n".encode(), "f.yaml")

    (cell,) = expand(scenario, "f.yaml", "quick")

    assert dict(cell.parameters)["concurrency"] == 2
    assert len(expand(scenario, "f.yaml")) == 4
    assert cell.key in {every.key for every in expand(scenario, "f.yaml")}


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("{only: [{workers: 3}]}", "no cell fits it"),
        ("{only: [{}]}", "this names nothing"),
        ("{parameters: {model: resnet18}}", "`model` is an axis of the matrix"),
        ("{parameters: {concurency: 2}}", "Did you mean `concurrency`?"),
    ],
)
def test_a_profile_that_means_nothing_is_a_fault(profile: str, said: str) -> None:
    assert said in faults(f"{CLOSED}profiles:\n  quick: {profile}\n")


def test_without_java_torchserve_is_a_skip_that_says_how_to_install_it() -> None:
    scenario = load((SCENARIO + CLOSED).encode(), "f.yaml")
    means = HostCapabilities(
        topology=FOUR_CORES, tools=frozenset({"taskset"}), pythons={"torchserve": PYTHON}
    )

    planned = plan_cells(scenario, expand(scenario, ""), means, folder="", profile=None, seed=1)

    assert all(one.unfit and "default-jre-headless" in one.unfit.fix for one in planned)
