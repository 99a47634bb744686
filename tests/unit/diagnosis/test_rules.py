"""Rules on launches put together: what two CPUs of one node cannot show for certain.

SMT and nodes need another machine; the shares of data, checkpoints and random numbers,
more launches than the recorded runs had time for.
"""

import itertools
from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from corebound.diagnosis.evidence import CellEvidence
from corebound.machine.topology import Topology
from corebound.records.launch_record import Launch
from corebound.records.telemetry import GpuUse
from support.build import (
    a_host,
    a_host_over_time,
    a_profiled_launch,
    a_thread,
    a_window,
    an_operator,
)
from support.findings import cell_evidence, cell_keys, findings_in, measured_cell
from support.golden import assert_golden

TWO_CORES = a_host()
TWO_NODES = a_host(nodes=2, cores_per_node=2)
SMT = a_host(cores_per_node=2, cpus_per_core=2)


def cell(
    ms: float,
    *axes: tuple[str, str],
    slots: tuple[tuple[int, ...], ...] = ((0, 1),),
    used: int | None = None,
    allowed: tuple[tuple[int, ...], ...] | None = None,
) -> CellEvidence:
    return measured_cell(ms, axes=axes, slots=slots, used=used, allowed=allowed)


def moving(ms: float, *axes: tuple[str, str], between: tuple[int, int]) -> CellEvidence:
    """A thread that changes between two CPUs nineteen times."""
    stays = tuple((between[index % 2], index * 50, index * 50 + 50) for index in range(20))
    return measured_cell(
        ms, axes=axes, slots=((0, 1, 2, 3),), threads=(a_thread(stays=stays, migrations=19),)
    )


def pool(ms: float, *, at_once: bool) -> CellEvidence:
    """Threads of a framework's default, on one CPU."""
    threads = tuple(
        a_thread(tid=100 + at, wait_ns=10**9)
        if at_once
        else a_thread(tid=100 + at, stays=((0, 100 * at, 100 * at + 100),))
        for at in range(8)
    )
    axes = (("threads", "default"),)
    return measured_cell(ms, axes=axes, slots=((0,),), threads=threads, used=4 if at_once else None)


def profiled(launch: Launch) -> CellEvidence:
    return cell_evidence([*measured_cell(1.0).launches, launch])


def operators(first: str, first_ns: int, second: str, second_ns: int) -> CellEvidence:
    """A step of 1 ms, with 0.1 ms outside operators."""
    return profiled(a_profiled_launch(an_operator(first, first_ns), an_operator(second, second_ns)))


def in_ten_seconds(
    *axes: tuple[str, str],
    step_s: float,
    loader_s: float,
    loaders: int = 1,
    gpu: Sequence[float] = (),
) -> CellEvidence:
    """A step's process and one that it started used so much CPU time in that time.

    A GPU was read several times: `gpu` is how busy it was.
    """
    used = (a_thread(tid=100, run_ns=round(step_s * 1e9)),
            replace(a_thread(tid=200, run_ns=round(loader_s * 1e9)), pid=200))  # fmt: skip
    one = measured_cell(10.0, axes=(("loaders", str(loaders)), *axes), threads=used)
    times_ms = [round(10_000 * at / (len(gpu) or 1)) for at in range((len(gpu) or 1) + 1)]
    windows = (
        a_window(
            from_ms=begin,
            to_ms=end,
            ran_ns=round((step_s + loader_s) * (end - begin) * 1e5),
            gpus=tuple(
                GpuUse(id="0", busy_share=share, memory_bytes=1) for share in gpu[at : at + 1]
            ),
        )
        for at, (begin, end) in enumerate(itertools.pairwise(times_ms))
    )
    host = a_host_over_time(*windows, cpus=(0, 1))
    return cell_evidence([replace(launch, host=host) for launch in one.launches])


SINGLE = cell(10.0, ("threads", "1"), slots=((0,),), used=1)
SEPARATE = cell(10.0, ("smt", "false"), used=2)
LOCAL = measured_cell(10.0, axes=(("memory", "local"),), node_bytes={0: 10 << 20})
BOUND = cell(10.0, ("binding", "physical-cores"), used=1)
NEVER = cell(10.0, ("every", "0"))
FOUR = (0, 1, 2, 3)

# Cells of one scenario on a host; the finding's rule, tone, ratio and cells.
REPORTED: dict[str, tuple[Topology, list[CellEvidence], tuple[str, str, float, list[str]]]] = {
    "two threads per core, if one is faster": (
        SMT,
        [cell(13.9, ("smt", "true"), slots=(FOUR,), used=4), SEPARATE],
        ("smt-siblings-shared", "bad", 1.39, ["smt=true"]),
    ),
    "threads that move between nodes": (
        TWO_NODES,
        [moving(10.0, between=(0, 2))],
        ("threads-migrate", "warn", 1.0, ["default"]),
    ),
    "threads that move, if bound threads are faster": (
        TWO_CORES,
        [moving(13.0, ("binding", "none"), between=(0, 1)), BOUND],
        ("threads-migrate", "bad", 1.3, ["binding=none"]),
    ),
    "memory on the other node, with its share and cost": (
        TWO_NODES,
        [
            measured_cell(15.0, axes=(("memory", "remote"),), node_bytes={0: 1 << 20, 1: 9 << 20}),
            LOCAL,
        ],
        ("memory-remote", "bad", 1.5, ["memory=remote"]),
    ),
    "workers bound to one CPU while others idle": (
        TWO_NODES,
        [cell(10.0, slots=(FOUR,) * 2, allowed=((0,), (0,)))],
        ("workers-overlap", "warn", 1.5, ["default"]),
    ),
    "a framework that sizes its pool beyond its one CPU": (
        TWO_CORES,
        [pool(50.0, at_once=True), SINGLE],
        ("one-cpu-default-threads", "bad", 5.0, ["threads=default"]),
    ),
    # 40 %, and no operator over a half.
    "random numbers with their operator": (
        TWO_CORES,
        [operators("aten::bernoulli_", 400_000, "aten::convolution", 500_000)],
        ("random-numbers", "warn", 1.67, ["default"]),
    ),
    "an operator that takes more than half of the step": (
        TWO_CORES,
        [operators("conv", 600_000, "add", 300_000)],
        ("operator-dominates", "plain", 1.0, ["default"]),
    ),
    "a step whose profile shows that it waits for its data": (
        TWO_CORES,
        [
            profiled(
                a_profiled_launch(
                    an_operator("conv", 400_000),
                    an_operator("copy", 500_000),
                    phases={"data": 600_000},
                )
            )
        ],
        ("data-starves-step", "warn", 2.5, ["default"]),
    ),
    "a step that waits while its loader is always busy": (
        TWO_CORES,
        [in_ten_seconds(step_s=4, loader_s=9.5)],
        ("data-starves-step", "warn", 2.5, ["loaders=1"]),
    ),
    "a GPU that waits for busy CPUs": (
        TWO_CORES,
        [in_ten_seconds(step_s=9, loader_s=9, gpu=(0.1, 0.2, 0.2, 0.3))],
        ("gpu-starved", "warn", 5.0, ["loaders=1"]),
    ),
    # As recorded on an H200: 0 to 16 % busy.
    "a GPU that waits for a step that prepares its data itself": (
        TWO_CORES,
        [
            in_ten_seconds(
                ("preprocessing", "heavy"),
                step_s=9.8,
                loader_s=0.1,
                loaders=0,
                gpu=(0, 0.08, 0.16, 0.08),
            )
        ],
        ("gpu-starved", "warn", 12.5, ["loaders=0,preprocessing=heavy"]),
    ),
    "a GPU whose use fluctuates": (
        TWO_CORES,
        [in_ten_seconds(step_s=7, loader_s=5, gpu=(0.1, 0.9, 0.1, 0.9))],
        ("gpu-fluctuates", "warn", 2.0, ["loaders=1"]),
    ),
    "a GPU that waits although the CPUs have time": (
        TWO_CORES,
        [in_ten_seconds(step_s=2, loader_s=2, gpu=(0.2,) * 4)],
        ("gpu-waits", "warn", 5.0, ["loaders=1"]),
    ),
    "a busy GPU": (
        TWO_CORES,
        [in_ten_seconds(step_s=9, loader_s=9, gpu=(0.93,) * 4)],
        ("gpu-busy", "plain", 1.0, ["loaders=1"]),
    ),
    "heavy preparation with its class": (
        TWO_CORES,
        [
            cell(50.0, ("model", "small"), ("preprocessing", "heavy")),
            cell(10.0, ("model", "small"), ("preprocessing", "light")),
        ],
        ("data-starves-step", "bad", 5.0, ["model=small,preprocessing=heavy"]),
    ),
    "more loaders than the best number": (
        TWO_CORES,
        [cell(14.0, ("loaders", "8")), cell(10.0, ("loaders", "2"))],
        ("loaders", "bad", 1.4, ["loaders=8"]),
    ),
    # A save costs 10 ms: every nine steps of 10 ms it is 10 of 100.
    "checkpoints that take half of the time, with a longer interval": (
        TWO_CORES,
        [cell(20.0, ("every", "1")), NEVER],
        ("checkpoint-share", "bad", 2.0, ["every=1"]),
    ),
    "all cells of a rule in one finding, the worst first": (
        TWO_CORES,
        [cell(ms, ("loaders", str(n))) for n, ms in ((0, 20.0), (1, 40.0), (2, 10.0))],
        ("loaders", "bad", 4.0, ["loaders=1", "loaders=0"]),
    ),
}


@pytest.mark.parametrize("situation", REPORTED)
def test_these_are_reported(situation: str) -> None:
    topology, cells, expected = REPORTED[situation]

    (finding,) = findings_in(*cells, topology=topology).values()

    found = (finding.rule, finding.tone, round(finding.times_ratio, 2), cell_keys(finding))
    assert found == expected


def test_rules_are_worded_as_in_the_golden_file() -> None:
    lines = []
    for situation, (topology, cells, _) in REPORTED.items():
        for finding in findings_in(*cells, topology=topology).values():
            lines += [f"{situation}: {finding.what}", *finding.evidence, finding.fix, ""]

    assert_golden("\n".join(lines), "rules.txt")


@pytest.mark.parametrize(
    ("topology", "cells"),
    [
        pytest.param(
            SMT, [cell(9.0, ("smt", "true"), slots=(FOUR,), used=4), SEPARATE], id="smt-is-faster"
        ),
        pytest.param(
            TWO_NODES,
            [moving(10.0, ("binding", "none"), between=(0, 1)), BOUND],
            id="moves-within-a-node-at-no-cost",
        ),
        pytest.param(
            TWO_CORES, [measured_cell(10.0, node_bytes={0: 1 << 20})], id="memory-of-the-only-node"
        ),
        pytest.param(
            TWO_NODES,
            [cell(10.0, slots=(FOUR,) * 2, allowed=((0,), (1,)))],
            id="workers-on-their-own-cpus",
        ),
        pytest.param(
            TWO_NODES,
            [cell(10.0, slots=(FOUR,) * 2, allowed=(FOUR,) * 2)],
            id="workers-that-are-not-bound",
        ),
        pytest.param(
            TWO_NODES,
            [cell(10.0, slots=((0, 1),) * 2, allowed=((0, 1),) * 2, used=1)],
            id="workers-with-a-cpu-for-each-of-their-threads",
        ),
        pytest.param(
            TWO_CORES, [pool(50.0, at_once=False), SINGLE], id="threads-that-follow-one-another"
        ),
        pytest.param(
            TWO_CORES,
            [cell(11.0, ("threads", "default"), slots=((0,),), used=1), SINGLE],
            id="one-thread-on-one-cpu",
        ),
        pytest.param(
            TWO_CORES, [operators("conv", 500_000, "add", 400_000)], id="an-operator-of-one-half"
        ),
        pytest.param(
            TWO_CORES,
            [in_ten_seconds(step_s=9, loader_s=9.5)],
            id="a-step-and-a-loader-that-are-both-busy",
        ),
        pytest.param(
            TWO_CORES, [in_ten_seconds(step_s=4, loader_s=5)], id="a-loader-with-time-to-spare"
        ),
        pytest.param(
            TWO_CORES,
            [in_ten_seconds(step_s=4, loader_s=9.5, loaders=0)],
            id="a-busy-child-that-is-no-loader",
        ),
        pytest.param(
            TWO_CORES,
            [cell_evidence(in_ten_seconds(step_s=9, loader_s=9, gpu=(0.2,) * 3).launches[:1])],
            id="a-gpu-read-too-rarely",
        ),
        pytest.param(
            TWO_CORES,
            [cell(11.0, ("preprocessing", "heavy")), cell(10.0, ("preprocessing", "light"))],
            id="preparation-that-takes-little",
        ),
        pytest.param(
            TWO_CORES, [cell(10.9, ("every", "16")), NEVER], id="checkpoints-below-a-tenth"
        ),
        pytest.param(TWO_CORES, [measured_cell(10.0, threads=())], id="no-evidence"),
    ],
)
def test_these_are_not_reported(topology: Topology, cells: list[CellEvidence]) -> None:
    assert findings_in(*cells, topology=topology) == {}


def test_a_starved_gpu_and_a_busy_one_are_two_findings() -> None:
    few = in_ten_seconds(step_s=9, loader_s=9, loaders=1, gpu=(0.1,) * 4)
    many = in_ten_seconds(step_s=9, loader_s=9, loaders=8, gpu=(0.9,) * 4)

    found = findings_in(few, many)

    assert {rule: cell_keys(finding) for rule, finding in found.items() if "gpu" in rule} == {
        "gpu-starved": ["loaders=1"],
        "gpu-busy": ["loaders=8"],
    }
