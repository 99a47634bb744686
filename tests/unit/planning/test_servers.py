"""The command, CPUs, threads and traffic of servers."""

import pytest
from msgspec.structs import replace

from corebound.machine.topology import Topology
from corebound.planning.commands import command
from corebound.planning.host_support import HostCapabilities
from corebound.planning.models import CannotRun, Placement
from corebound.planning.placement import place
from corebound.planning.plan import plan_cells
from corebound.planning.servers import traffic_of
from corebound.scenario.cell import Binding, Cell, Scalar, Threads
from corebound.scenario.loader import load
from corebound.scenario.matrix import expand
from corebound.scenario.models import Measure, WarmupIterations
from corebound.scenario.runtimes import Framework
from corebound.scenario.traffic import Lengths, Streaming
from corebound.worker.workloads.shared import decoder
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

    made = command(cell, placed(cell), 0, PYTHON, target="mine:Classifier")

    assert made.argv[:3] == (PYTHON, "-m", "mine")
    assert made.argv[-2:] == ("--workers", "2")


def test_torchserve_is_started_as_its_users_start_it() -> None:
    cell = a_server()

    words = command(cell, placed(cell), 0, PYTHON).argv

    assert words[:2] == ("/e/bin/torchserve", "--start")


def test_a_launcher_gives_each_worker_its_own_cores() -> None:
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

    placement = placed(cell, two_cores)

    assert [slot.cpus for slot in placement.slots] == [(0,), (0,), (1,), (1,)]
    assert "share CPUs 0-1" in placement.notes[0]


@pytest.mark.parametrize(("workers", "threads"), [(1, 4), (2, 2), (3, 1), (8, 1)])
def test_cores_per_worker_divides_the_cores_and_gives_each_at_least_one(
    workers: int, threads: int
) -> None:
    cell = a_server(threads=Threads(rule="cores-per-worker"), workers=workers)

    placement = placed(cell)

    assert placement.threads == threads
    told = dict(command(cell, placement, 0, PYTHON).env)
    assert told["COREBOUND_SERVED_THREADS"] == told["OMP_NUM_THREADS"] == str(threads)


@pytest.mark.parametrize(
    "binding",
    [
        Binding(mode="per-worker"),
        Binding(mode="node", moment="after-start"),
        Binding(mode="launcher", memory="interleave"),
    ],
)
def test_workers_that_a_server_starts_cannot_be_bound_by_corebound(binding: Binding) -> None:
    assert isinstance(place(a_server(binding=binding), FOUR_CORES), CannotRun)


def test_an_iteration_is_a_request_and_warm_up_requests_are_additional() -> None:
    measure = Measure(iterations=100, warmup=WarmupIterations(iterations=7))

    traffic = traffic_of(a_server(concurrency=5), measure, seed=3)

    assert (traffic.requests, traffic.warmup_requests, traffic.concurrency) == (100, 7, 5)


def a_text_server(**parameters: Scalar) -> Cell:
    return replace(
        a_server(framework="llama-server", workers=1),
        parameters=(("context", 64), ("prompt", 16), ("output", 8), *parameters.items()),
    )


def test_texts_and_their_answers_fit_into_the_context() -> None:
    cell = a_text_server(concurrency=2, spread=0.5, first_token_ms=200.0)

    traffic = traffic_of(cell, Measure(), seed=3)

    assert traffic.streaming == Streaming(
        prompt_tokens=Lengths(median=16, spread=0.5, most=32),
        output_tokens=Lengths(median=8, spread=0.5, most=32),
        vocabulary=decoder.VOCABULARY,
        first_token_bound_ms=200.0,
    )


def test_a_server_of_texts_is_told_the_context_and_how_many_it_writes_at_once() -> None:
    cell = a_text_server(slots=2)

    told = dict(command(cell, placed(cell), 0, PYTHON, target="mine:main").env)

    assert told["COREBOUND_SERVED_CONTEXT"] == "64"
    assert told["COREBOUND_SERVED_SLOTS"] == "2"
    assert "COREBOUND_SERVED_IMAGE" not in told


def test_a_server_of_one_process_has_one_worker() -> None:
    placement = place(replace(a_text_server(), workers=2), FOUR_CORES)

    assert isinstance(placement, CannotRun)
    assert placement.what == "llama-server is one process, not `workers: 2`."


SCENARIO = """schema: 1
name: s
title: S
question: Q?
workload: image-serving
environment: torchserve
"""


CLOSED = (
    "parameters: {image: 224, concurrency: 9}\n"
    "matrix: {workers: [1, 2], parameters: {model: [resnet18, resnet50]}}\n"
)


def test_without_java_torchserve_is_skipped_with_a_fix() -> None:
    scenario = load((SCENARIO + CLOSED).encode(), "f.yaml")
    host = HostCapabilities(
        topology=FOUR_CORES, tools=frozenset({"taskset"}), pythons={"torchserve": PYTHON}
    )

    planned = plan_cells(scenario, expand(scenario, ""), host, folder="", profile=None, seed=1)

    assert all(cell.unfit and "default-jre-headless" in cell.unfit.fix for cell in planned)
