"""The exact words and variables that start a worker."""

from typing import Any

import pytest
from msgspec.structs import replace

from corebound.machine.topology import CpuId
from corebound.planning.commands import command
from corebound.planning.environment_variables import intra_op
from corebound.planning.models import Command, Placement, Slot
from corebound.planning.placement import place
from corebound.planning.plan import own_program
from corebound.scenario.cell import Binding, BindingMode, Cell, Threads
from support.build import a_cell, a_host, a_scenario

DUAL = a_host(nodes=2, cores_per_node=4)
WORKER = ("python", "-m", "corebound.worker")


def started(cell: Cell, slot: int = 0) -> Command:
    placement = place(cell, DUAL)
    assert isinstance(placement, Placement), placement
    return command(cell, placement, slot, "python")


@pytest.mark.parametrize(
    ("binding", "prefix"),
    [
        (Binding(), ()),
        (Binding(mode="node"), ("taskset", "-c", "0-3")),
        (Binding(mode="node", backend="numactl"), ("numactl", "--physcpubind=0-3")),
        (Binding(mode="node", memory="bind"), ("numactl", "--physcpubind=0-3", "--membind=0")),
        (Binding(mode="node", memory="remote"), ("numactl", "--physcpubind=0-3", "--membind=1")),
        (
            Binding(mode="one-cpu", memory="preferred"),
            ("numactl", "--physcpubind=0", "--preferred=0"),
        ),
        (
            Binding(mode="node", memory="interleave"),
            ("numactl", "--physcpubind=0-3", "--interleave=0-1"),
        ),
        (Binding(mode="node", memory="local"), ("numactl", "--physcpubind=0-3", "--localalloc")),
        (Binding(memory="interleave"), ("numactl", "--interleave=0-1")),
        (Binding(mode="node", moment="after-start"), ()),
        (Binding(mode="node", moment="after-start", memory="bind"), ("numactl", "--membind=0")),
        (Binding(mode="node", backend="openmp"), ("taskset", "-c", "0-3")),
    ],
)
def test_a_binding_is_written_before_the_interpreter(
    binding: Binding, prefix: tuple[str, ...]
) -> None:
    assert started(a_cell(binding=binding)).argv == (*prefix, *WORKER)


def test_the_frameworks_launcher_starts_the_worker() -> None:
    cell = replace(a_cell(binding=Binding(mode="launcher")), framework="pytorch")

    assert started(cell).argv == (
        *("python", "-m", "torch.backends.xeon.run_cpu", "--ninstances", "1", "--no-python"),
        *WORKER,
    )


OF_TWO = {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}


@pytest.mark.parametrize(
    ("threads", "changes", "expected"),
    [
        # A number of threads reaches every library; specific settings and variables override it.
        (Threads(rule=2), {}, OF_TWO),
        (
            Threads(rule="per-cpu", omp=3, mkl=5, intra_op=7, inter_op=1),
            {"framework": "tensorflow"},
            {
                "OMP_NUM_THREADS": "3",
                "MKL_NUM_THREADS": "5",
                "OPENBLAS_NUM_THREADS": "8",
                "TF_NUM_INTRAOP_THREADS": "7",
                "TF_NUM_INTEROP_THREADS": "1",
            },
        ),
        (
            Threads(rule=2),
            {"env": (("OMP_NUM_THREADS", "9"), ("A", "b"))},
            {**OF_TWO, "OMP_NUM_THREADS": "9", "A": "b"},
        ),
        # A time to spin is of every OpenMP runtime: libgomp counts 100,000 spins to a millisecond.
        (Threads(blocktime=3), {}, {"KMP_BLOCKTIME": "3", "GOMP_SPINCOUNT": "300000"}),
        (
            Threads(blocktime="infinite"),
            {},
            {"KMP_BLOCKTIME": "infinite", "GOMP_SPINCOUNT": "infinite"},
        ),
    ],
)
def test_threads_are_set_by_these_variables(
    threads: Threads, changes: dict[str, Any], expected: dict[str, str]
) -> None:
    assert dict(started(replace(a_cell(threads=threads), **changes)).env) == expected


@pytest.mark.parametrize(("mode", "how"), [("node", "close"), ("scatter", "spread")])
def test_openmp_gets_one_place_per_cpu(mode: BindingMode, how: str) -> None:
    cell = a_cell(binding=Binding(mode=mode, backend="openmp"), threads=Threads(rule=2))
    env = dict(started(cell).env)

    assert env["OMP_PLACES"] == ("{0},{1}" if mode == "node" else "{0},{4}")
    assert env["OMP_PROC_BIND"] == how


def test_the_framework_gets_its_thread_counts() -> None:
    cell = a_cell(threads=Threads(rule=2, inter_op=1))
    placement = place(cell, DUAL)
    assert isinstance(placement, Placement)

    assert (intra_op(cell, placement), cell.threads.inter_op) == (2, 1)
    own = replace(cell, threads=Threads(rule=2, intra_op=6))
    assert (intra_op(own, placement), own.threads.inter_op) == (6, None)


def test_an_openmp_runtime_is_preloaded_before_an_allocator() -> None:
    cell = replace(a_cell(), env=(("LD_PRELOAD", "libjemalloc.so.2"),))
    placement = place(cell, DUAL)
    assert isinstance(placement, Placement)

    planned = command(cell, placement, 0, "python", openmp="libomp.so.5")

    assert planned.env == (("LD_PRELOAD", "libomp.so.5:libjemalloc.so.2"),)


def test_placeholders_in_variables_have_the_values_of_each_worker() -> None:
    def value(cell: Cell, text: str, slot: int = 0) -> str:
        return dict(started(replace(cell, env=(("AT", text),)), slot=slot).env)["AT"]

    two = a_cell(binding=Binding(mode="per-worker"), threads=Threads(rule=2), workers=2)
    text = "{cpus} {threads} {workers} {gpus} {port} {other}"
    assert value(two, text, slot=1) == "4-7 2 2 0 {port} {other}"
    # Without a number of threads it is that of the CPUs; a parameter takes precedence.
    assert value(a_cell(binding=Binding(mode="node")), "{threads}") == "4"
    assert value(replace(a_cell(), parameters=(("threads", 64),)), "{threads}") == "64"


@pytest.mark.parametrize(
    ("words", "slots", "expected"),
    [
        (["bench", "-t", "{threads}"], ((0, 1),), ("bench", "-t", "2")),
        (["bench", "-c", "{cpus}"], ((0, 1),), ("bench", "-c", "0-1")),
        (["bench", "-c", "{cpus}"], ((0,), (1,)), ()),
        (["bench", "{port}"], ((0, 1),), ()),
    ],
)
def test_the_users_program_is_started_with_the_values_of_a_configuration(
    words: list[str], slots: tuple[tuple[int, ...], ...], expected: tuple[str, ...]
) -> None:
    workload = a_scenario(workload={"command": words}).workload
    placement = Placement(
        slots=tuple(Slot(cpus=tuple(map(CpuId, cpus)), memory_nodes=()) for cpus in slots),
        threads=2,
        backend="taskset",
        memory="default",
        moment="before-start",
        bound=True,
    )

    cell = a_cell(threads=Threads(rule=2))

    assert own_program(workload, cell, placement) == expected
