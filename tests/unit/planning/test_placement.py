"""Where each binding mode puts a cell, and why it may put it nowhere."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from corebound.machine.discovery import topology
from corebound.machine.topology import CpuId, Topology, cpu_list, parse_cpu_list
from corebound.planning.models import CannotRun, Placement, Slot
from corebound.planning.placement import place, threads_within_quota
from corebound.scenario.cell import Binding, BindingMode, Cell, ThreadRule, Threads
from support.build import a_cell, a_host
from support.machine_trees import MemoryTree, a_tree, machine_files, memory_tree
from support.texts import in_order


def a_binding(mode: BindingMode, threads: Threads | int | None = None, workers: int = 1) -> Cell:
    asked = Threads(rule=threads) if isinstance(threads, int) else threads
    cell = a_cell(binding=Binding(mode=mode), threads=asked, workers=workers)
    return replace(cell, framework="pytorch") if mode == "launcher" else cell


def cell_with(cell: Cell, **changes: Any) -> Cell:
    return replace(cell, binding=replace(cell.binding, **changes))


def placed(cell: Cell, host: Topology, tools: frozenset[str] | None = None) -> Placement:
    placement = place(cell, host) if tools is None else place(cell, host, tools)
    assert isinstance(placement, Placement), placement
    return placement


def cpus(cell: Cell, host: Topology) -> list[str]:
    return [cpu_list(slot.cpus) for slot in placed(cell, host).slots]


def unfit(cell: Cell, host: Topology, tools: frozenset[str] | None = None) -> CannotRun:
    placement = place(cell, host) if tools is None else place(cell, host, tools)
    assert isinstance(placement, CannotRun), placement
    return placement


# Two nodes of four cores of two CPUs: 0-3,8-11 on node 0, 4-7,12-15 on node 1; siblings n, n+8.
DUAL = a_host(nodes=2, cores_per_node=4, cpus_per_core=2)
FLAT = a_host(cores_per_node=4)
HYBRID = topology(memory_tree(machine_files("hwloc_20em64t-hybrid-1p6c2t+2ca4co1t")), where="")


@pytest.mark.parametrize(
    ("mode", "all_cpus", "of_two_threads"),
    [
        ("none", "0-15", "0-15"),
        ("launcher", "0-15", None),
        ("one-cpu", "0", "0"),
        ("physical-cores", "0-7", "0-1"),
        ("logical-cpus", "0-15", "0,8"),
        ("smt-siblings", "0-15", "0,8"),
        ("cache", "0-3,8-11", "0-1"),
        ("node", "0-3,8-11", "0-1"),
        ("socket", "0-3,8-11", "0-1"),
        ("compact", "0-15", "0,8"),
        ("scatter", "0-15", "0,4"),
        ("per-worker", "0-7", None),
    ],
)
def test_each_mode_selects_its_cpus(
    mode: BindingMode, all_cpus: str, of_two_threads: str | None
) -> None:
    assert cpus(a_binding(mode), DUAL) == [all_cpus]
    if of_two_threads is not None:
        assert cpus(a_binding(mode, 2), DUAL) == [of_two_threads]
        assert placed(a_binding(mode, 2), DUAL).threads == 2


def test_smt_siblings_use_the_fewest_cores() -> None:
    assert cpus(a_binding("smt-siblings", 3), DUAL) == ["0-1,8"]
    assert cpus(a_binding("smt-siblings"), HYBRID) == ["0-11"]  # efficiency cores have none


def test_the_node_with_the_most_allowed_cores_comes_first() -> None:
    host = a_host(nodes=2, cores_per_node=4, allowed=frozenset({0, 1, 5, 6, 7}))

    assert cpus(a_binding("node"), host) == ["5-7"]
    assert cpus(a_binding("one-cpu"), host) == ["5"]
    assert cpus(a_binding("physical-cores", 2), host) == ["5-6"]


def test_what_does_not_fit_one_node_continues_on_the_nearest() -> None:
    nodes = {0: (0, 1), 1: (2, 3), 2: (4, 5)}
    far = {0: "10 30 20\n", 1: "30 10 30\n", 2: "20 30 10\n"}
    tree = a_tree(cpus=range(6), nodes=nodes)
    tree |= {f"sys/devices/system/node/node{node}/distance": text for node, text in far.items()}

    assert cpus(a_binding("physical-cores", 3), topology(MemoryTree(tree), where="")) == ["0-1,4"]


def test_cpus_without_a_node_are_left_out_if_there_are_nodes() -> None:
    host = topology(memory_tree(machine_files("hwloc_offline-cpu0-node0")), where="")

    assert cpus(a_binding("node"), host) == ["5,7,9,11,13,15,17,19"]
    assert cpus(a_binding("socket"), host) == ["4,6,8,10,12,14,16,18,20"]  # nine cores beat eight


def test_scatter_alternates_between_sockets_then_nodes_then_caches() -> None:
    tree = a_tree(
        cpus=range(8),
        package=lambda cpu: cpu // 4,
        in_package=lambda cpu: range(4) if cpu < 4 else range(4, 8),
        nodes={node: (2 * node, 2 * node + 1) for node in range(4)},
    )
    host = topology(MemoryTree(tree), where="")

    assert [cpus(a_binding("scatter", n), host)[0] for n in (2, 3, 4)] == [
        "0,4",
        "0,2,4",
        "0,2,4,6",
    ]


def test_workers_share_cpus_unless_split() -> None:
    assert cpus(a_binding("physical-cores", workers=2), DUAL) == ["0-7", "0-7"]
    assert cpus(a_binding("per-worker", workers=2), DUAL) == ["0-3", "4-7"]
    assert cpus(cell_with(a_binding("per-worker", workers=2), smt=True), DUAL) == [
        "0-3,8-11",
        "4-7,12-15",
    ]


def test_only_the_remainders_of_nodes_are_combined() -> None:
    host = a_host(nodes=2, cores_per_node=3)

    assert cpus(a_binding("per-worker", workers=3), host) == ["0-1", "3-4", "2,5"]


@pytest.mark.parametrize(
    ("cell", "what", "fix"),
    [
        (a_binding("node", 9), ("`threads: 9`", "node 0", "8 CPUs"), ("8", "logical-cpus", "16")),
        (a_binding("logical-cpus", 48), ("`threads: 48`", "this host", "16 CPUs"), ("16",)),
        (
            a_binding("physical-cores", 9),
            ("`threads: 9`", "8 physical cores", "8 CPUs"),
            ("8", "logical-cpus", "16"),
        ),
        (
            a_binding("per-worker", 5, workers=2),
            ("`threads: 5`", "one worker's share", "4 CPUs"),
            ("4", "logical-cpus", "16"),
        ),
    ],
)
def test_threads_that_do_not_fit_are_reported_with_numbers(
    cell: Cell, what: tuple[str, ...], fix: tuple[str, ...]
) -> None:
    found = unfit(cell, DUAL)

    assert in_order(found.what, *what)
    assert in_order(found.fix, "`threads`", *fix)


@pytest.mark.parametrize("mode", ["none", "one-cpu", "launcher"])
def test_modes_that_define_the_cpus_accept_more_threads(mode: BindingMode) -> None:
    assert placed(a_binding(mode, 32), FLAT).threads == 32


def test_explicit_cpus_are_used_as_given() -> None:
    named = cell_with(a_binding("cpus", 8), cpus=(CpuId(0), CpuId(3)), avoid_cpu0=True)

    assert placed(named, FLAT).slots == (Slot(cpus=(CpuId(0), CpuId(3))),)
    assert placed(named, FLAT).threads == 8


def test_explicit_cpus_that_cannot_be_used_are_reported_with_the_reason() -> None:
    tree = a_tree(cpus=range(4), online="0-2")
    host = topology(MemoryTree(tree), where="", affinity=frozenset({0, 1}))
    named = cell_with(a_binding("cpus"), cpus=tuple(map(CpuId, range(6))))

    assert unfit(named, host) == CannotRun(
        what="`cpus: 0-5` includes CPUs that are not usable: 4-5, which this host does not have;"
        " 3, offline here; 2, not in the allowed set.",
        fix="Choose among CPUs 0-1.",
    )


def test_smt_selects_one_cpu_of_each_core_or_all() -> None:
    assert cpus(cell_with(a_binding("logical-cpus"), smt=False), DUAL) == ["0-7"]
    assert cpus(cell_with(a_binding("node"), smt=False), DUAL) == ["0-3"]
    assert cpus(cell_with(a_binding("physical-cores"), smt=True), DUAL) == ["0-15"]
    assert "exclude each other" in unfit(cell_with(a_binding("smt-siblings"), smt=False), DUAL).what


def test_avoid_cpu0_leaves_out_its_whole_core() -> None:
    assert cpus(cell_with(a_binding("logical-cpus"), avoid_cpu0=True), DUAL) == ["1-7,9-15"]
    assert cpus(cell_with(a_binding("one-cpu"), avoid_cpu0=True), FLAT) == ["1"]
    single = a_host(cores_per_node=1, cpus_per_core=2)
    assert (
        "only available core" in unfit(cell_with(a_binding("node"), avoid_cpu0=True), single).what
    )


def test_a_core_kind_limits_the_cpus() -> None:
    assert cpus(cell_with(a_binding("physical-cores"), core_kind="efficiency"), HYBRID) == ["12-19"]
    assert cpus(cell_with(a_binding("physical-cores"), core_kind="performance"), HYBRID) == [
        "0,2,4,6,8,10"
    ]
    assert (
        "no available CPU"
        in unfit(cell_with(a_binding("node"), core_kind="performance"), FLAT).what
    )


@pytest.mark.parametrize(
    ("rule", "threads"), [("default", None), ("per-core", 4), ("per-cpu", 8), ("host-cores", 8)]
)
def test_rules_resolve_to_threads(rule: ThreadRule, threads: int | None) -> None:
    cell = a_cell(binding=Binding(mode="node"), threads=Threads(rule=rule))

    assert placed(cell, DUAL).threads == threads


@pytest.mark.parametrize(
    ("memory", "nodes"),
    [
        ("default", ()),
        ("local", (0,)),
        ("bind", (0,)),
        ("preferred", (0,)),
        ("interleave", (0, 1)),
        ("remote", (1,)),
    ],
)
def test_memory_follows_the_cpus(memory: str, nodes: tuple[int, ...]) -> None:
    placement = placed(cell_with(a_binding("node"), memory=memory), DUAL)

    assert placement.slots[0].memory_nodes == nodes
    assert placement.backend == ("taskset" if memory == "default" else "numactl")
    assert placement.memory == memory


def test_the_nearest_memory_serves_a_node_that_has_none() -> None:
    host = topology(memory_tree(machine_files("hwloc_fakememinitiators-1np2c+1npp+gi")), where="")
    placement = placed(cell_with(a_binding("node"), memory="bind"), host)

    assert placement.slots == (Slot(cpus=(CpuId(0), CpuId(1)), memory_nodes=(host.nodes[5].id,)),)


GPU_NODES = topology(
    MemoryTree(a_tree(cpus=range(8), nodes={0: range(4), 8: range(4, 8), 252: (), 255: ()})),
    where="",
)


@pytest.mark.parametrize(
    ("mode", "memory", "named", "nodes"),
    [
        ("none", "interleave", "", "0,8"),
        ("node", "remote", "", "8"),
        ("none", "bind", "", "0,8"),
        ("none", "remote", "", None),
        ("none", "remote", "252", "252"),
        ("node", "interleave", "0,255", "0,255"),
        ("node", "preferred", "252,255", "252"),
        ("node", "bind", "0-1", None),
    ],
)
def test_nodes_without_cpus_are_used_only_if_they_are_named(
    mode: BindingMode, memory: str, named: str, nodes: str | None
) -> None:
    cell = cell_with(a_binding(mode), memory=memory, memory_nodes=parse_cpu_list(named))

    placement = place(cell, GPU_NODES)

    taken = cpu_list(placement.slots[0].memory_nodes) if isinstance(placement, Placement) else None
    assert taken == nodes


@pytest.mark.parametrize(
    ("changes", "tools", "backend"),
    [
        ({}, {"taskset", "numactl"}, "taskset"),
        ({}, {"numactl"}, "numactl"),
        ({"backend": "numactl"}, {"taskset", "numactl"}, "numactl"),
        ({"backend": "openmp"}, {"taskset"}, "openmp"),
        ({"backend": "openmp", "memory": "bind"}, {"numactl"}, "openmp"),
        ({"moment": "after-start"}, set(), "taskset"),
    ],
)
def test_a_backend_is_chosen_among_the_tools(
    changes: dict[str, object], tools: set[str], backend: str
) -> None:
    cell = cell_with(a_binding("node"), **changes)

    assert placed(cell, DUAL, frozenset(tools)).backend == backend


@pytest.mark.parametrize(
    ("changes", "tools", "words"),
    [
        ({}, set(), "`binding: node` needs `taskset`"),
        ({"backend": "numactl"}, {"taskset"}, "needs `numactl`"),
        ({"backend": "openmp"}, {"numactl"}, "needs `taskset`"),
        ({"memory": "bind"}, {"taskset"}, "`memory: bind` needs `numactl`"),
        ({"memory": "bind", "backend": "taskset"}, {"taskset", "numactl"}, "cannot do"),
        ({"backend": "openmp", "moment": "after-start"}, {"taskset"}, "not possible"),
    ],
)
def test_an_impossible_backend_is_reported(
    changes: dict[str, object], tools: set[str], words: str
) -> None:
    why = unfit(cell_with(a_binding("node"), **changes), DUAL, frozenset(tools))

    assert words in why.what
    if "needs" in words:
        assert "apt-get install" in why.fix


def with_quota(host: Topology, cpus: float | None) -> Topology:
    return replace(host, cpu_quota=cpus)


@pytest.mark.parametrize(
    ("of_cell", "of_host", "workers", "threads"),
    [
        (None, None, 1, 16),
        (1.5, None, 1, 1),
        (0.5, None, 1, 1),
        (3.9, None, 1, 3),
        (99, None, 1, 16),
        (None, 2.5, 1, 2),
        # The smaller one counts.
        (3, 2.5, 1, 2),
        (1, 2.5, 1, 1),
        # Workers share the quota.
        (4, None, 2, 2),
        (3, None, 4, 1),
    ],
)
def test_threads_of_a_quota(
    of_cell: float | None, of_host: float | None, workers: int, threads: int
) -> None:
    cell = a_cell(threads=Threads(rule="quota"), workers=workers)

    placement = placed(replace(cell, cpu_quota=of_cell), with_quota(DUAL, of_host))

    assert placement.threads == threads


@pytest.mark.parametrize("rule", ["per-core", "per-cpu", "cores-per-worker"])
def test_no_rule_about_cpus_exceeds_the_quota_of_the_host(rule: ThreadRule) -> None:
    cell = a_cell(threads=Threads(rule=rule))

    assert placed(cell, with_quota(DUAL, 2.5)).threads == 2
    # A quota of the cell is a container that shows all CPUs, so these rules see them too.
    assert placed(replace(cell, cpu_quota=2.5), DUAL) == placed(cell, DUAL)


@given(st.none() | st.floats(0.01, 1e4), st.integers(1, 1_000), st.integers(1, 64))
def test_threads_within_a_quota_fit_it_unless_there_is_one(
    quota: float | None, cpus: int, workers: int
) -> None:
    threads = threads_within_quota(quota, cpus=cpus, workers=workers)

    assert 1 <= threads <= cpus
    if quota is None:
        assert threads == cpus
    else:
        # As many as fit, and one more would not.
        assert threads == 1 or threads <= quota / workers
        assert threads == cpus or threads + 1 > quota / workers
