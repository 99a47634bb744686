"""What holds for any cell on any host, however odd."""

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from corebound.machine.topology import Cache, CoreKey, CoreKind, Cpu, CpuId, Node, NodeId, Topology
from corebound.planning.commands import command
from corebound.planning.models import CannotRun, Placement
from corebound.planning.placement import place
from corebound.scenario.cell import (
    Backend,
    Binding,
    BindingMode,
    BindMoment,
    Cell,
    CoreKindWanted,
    MemoryPolicy,
    ThreadRule,
    Threads,
)
from support.build import a_cell


@st.composite
def hosts(draw: st.DrawFn) -> Topology:
    """Irregular machines: gaps, offline and barred CPUs, cores of 1 to 4 CPUs, bare nodes."""
    shapes = draw(
        st.lists(
            st.tuples(st.integers(1, 4), st.sampled_from([None, 0, 3, 12]), st.integers(0, 1)),
            min_size=1,
            max_size=10,
        )
    )
    total = sum(count for count, _, _ in shapes)
    numbers = draw(st.lists(st.integers(0, 60), min_size=total, max_size=total, unique=True))
    cpus: list[Cpu] = []
    offline: list[CpuId] = []
    for index, (count, node, package) in enumerate(shapes):
        kind: CoreKind | None = draw(st.sampled_from(["performance", "efficiency", None]))
        for _ in range(count):
            number = CpuId(numbers.pop())
            if draw(st.integers(0, 9)) == 0:
                offline.append(number)
                continue
            cpus.append(
                Cpu(
                    id=number,
                    core=CoreKey(package=package, die=0, core=index),
                    node=None if node is None else NodeId(node),
                    cache=draw(st.sampled_from([None, package])),
                    kind=kind,
                    allowed=draw(st.integers(0, 4)) > 0,
                )
            )
    cpus.sort(key=lambda cpu: cpu.id)
    nodes = tuple(
        Node(
            id=NodeId(node),
            cpus=tuple(cpu.id for cpu in cpus if cpu.node == node),
            memory_bytes=draw(st.sampled_from([None, 0, 1 << 30])),
            distances=((NodeId(0), 20), (NodeId(3), 10), (NodeId(12), 20), (NodeId(20), 40)),
            allowed=draw(st.booleans()),
        )
        for node in draw(st.sampled_from([(), (0, 3, 12), (0, 3, 12, 20)]))
    )
    caches = tuple(
        Cache(level=3, size_bytes=None, cpus=tuple(cpu.id for cpu in cpus if cpu.cache == index))
        for index in (0, 1)
    )
    return Topology(cpus=tuple(cpus), offline=tuple(sorted(offline)), nodes=nodes, caches=caches)


@st.composite
def cells(draw: st.DrawFn, modes: tuple[BindingMode, ...] = get_args(BindingMode)) -> Cell:
    binding = Binding(
        mode=draw(st.sampled_from(modes)),
        cpus=tuple(map(CpuId, sorted(draw(st.sets(st.integers(0, 60), max_size=3))))),
        smt=draw(st.sampled_from([None, None, True, False])),
        avoid_cpu0=draw(st.booleans()),
        core_kind=draw(st.sampled_from([None, None, *get_args(get_args(CoreKindWanted)[0])])),
        memory=draw(st.sampled_from(["default", *get_args(MemoryPolicy)])),
        memory_nodes=tuple(map(NodeId, draw(st.sampled_from([(), (), (0,), (3, 20)])))),
        backend=draw(st.sampled_from(["auto", *get_args(Backend)])),
        moment=draw(st.sampled_from(get_args(BindMoment))),
    )
    rule = draw(st.sampled_from(get_args(ThreadRule)) | st.integers(-1, 12))
    return a_cell(
        binding=binding, threads=Threads(rule=rule), workers=draw(st.sampled_from([1, 1, 2, 3, 0]))
    )


def distinct_cores(host: Topology, cpus: tuple[CpuId, ...]) -> set[CoreKey]:
    return {cpu.core for cpu in host.cpus if cpu.id in cpus}


@given(cells(), hosts())
def test_any_cell_on_any_host_is_placed_or_rejected_with_reason_and_fix(
    cell: Cell, host: Topology
) -> None:
    placement = place(cell, host)

    assert placement == place(cell, host)
    if isinstance(placement, CannotRun):
        assert placement.what.endswith(".")
        assert placement.fix
        return
    allowed = {cpu.id for cpu in host.allowed}
    stocked = {node.id for node in host.nodes if node.allowed and node.memory_bytes != 0}
    local = {node.id for node in host.nodes if node.id in stocked and node.cpus}
    if cell.binding.memory_nodes:
        stocked &= set(cell.binding.memory_nodes)
    elif local:  # nodes without CPUs are used only if they are named, or the only ones
        stocked = local
    assert len(placement.slots) == cell.workers
    for index, slot in enumerate(placement.slots):
        assert set(slot.cpus) <= allowed
        assert list(slot.cpus) == sorted(set(slot.cpus))
        assert set(slot.memory_nodes) <= stocked
        assert command(cell, placement, index, "python").argv[-2:] == ("-m", "corebound.worker")


@given(cells(), hosts())
def test_workers_that_share_cpus_and_mixed_kinds_of_core_are_noted(
    cell: Cell, host: Topology
) -> None:
    placement = place(cell, host)

    if isinstance(placement, Placement) and cell.binding.mode != "none":
        taken = [cpu for slot in placement.slots for cpu in slot.cpus]
        kinds = {cpu.kind for cpu in host.cpus if cpu.id in taken}
        assert any("share" in note for note in placement.notes) == (len(taken) > len(set(taken)))
        assert any("core_kind" in note for note in placement.notes) == (len(kinds) > 1)


@given(cells(("per-worker",)), hosts())
def test_split_workers_share_no_core_and_have_as_many_each(cell: Cell, host: Topology) -> None:
    placement = place(cell, host)

    if isinstance(placement, Placement):
        cores = [distinct_cores(host, slot.cpus) for slot in placement.slots]
        assert len(set().union(*cores)) == sum(map(len, cores))
        assert len({len(each) for each in cores}) == 1


@given(cells(("physical-cores", "logical-cpus", "compact")), hosts(), st.integers(1, 4))
def test_a_cell_that_fits_one_node_stays_on_it(cell: Cell, host: Topology, threads: int) -> None:
    cell = a_cell(binding=Binding(mode=cell.binding.mode), threads=Threads(rule=threads))
    placement = place(cell, host)

    local: dict[NodeId | None, list[Cpu]] = {}
    for cpu in host.allowed:
        local.setdefault(cpu.node, []).append(cpu)
    room = [
        len({cpu.core for cpu in cpus}) if cell.binding.mode == "physical-cores" else len(cpus)
        for cpus in local.values()
    ]
    if isinstance(placement, Placement) and max(room) >= threads:
        assert len({cpu.node for cpu in host.cpus if cpu.id in placement.slots[0].cpus}) == 1


@given(cells(), hosts())
def test_thread_rules_count_a_workers_cpus(cell: Cell, host: Topology) -> None:
    placement = place(cell, host)

    if isinstance(placement, Placement):
        counts = {
            "default": None,
            "per-core": min(len(distinct_cores(host, slot.cpus)) for slot in placement.slots),
            "per-cpu": min(len(slot.cpus) for slot in placement.slots),
            "host-cores": len({cpu.core for cpu in host.cpus}),
            "cores-per-worker": max(1, len({cpu.core for cpu in host.allowed}) // cell.workers),
        }
        rule = cell.threads.rule
        assert placement.threads == (rule if isinstance(rule, int) else counts[rule])


@given(cells(), hosts())
def test_each_thread_has_a_cpu_unless_the_mode_defines_the_cpus(cell: Cell, host: Topology) -> None:
    placement = place(cell, host)
    rule, mode = cell.threads.rule, cell.binding.mode

    if isinstance(placement, Placement) and isinstance(rule, int):
        if mode == "per-worker":
            assert all(len(slot.cpus) >= rule for slot in placement.slots)
        elif mode not in {"none", "launcher", "cpus", "one-cpu"}:
            assert all(len(slot.cpus) == rule for slot in placement.slots)
