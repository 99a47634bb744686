"""Place a cell on a host: the CPUs, memory nodes and thread counts of its workers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain

from corebound.machine.topology import CpuId, NodeId, Topology, cpu_list
from corebound.planning import cpu_selection
from corebound.planning.models import UNKNOWN, CannotRun, Placement, Slot
from corebound.scenario.cell import BackendUsed, Binding, Cell
from corebound.scenario.runtimes import RUNTIMES, Server, with_launcher

TOOLS = frozenset({"taskset", "numactl"})


def place(cell: Cell, host: Topology, tools: frozenset[str] = TOOLS) -> Placement | CannotRun:
    """Place a cell on a host. The result depends on the arguments only, for any cell and host.

    `select_cpus` selects the CPUs. Unbound cells get every allowed CPU. The memory nodes
    follow from the CPUs:

    - `local`, `bind` and `preferred`: the nodes of a worker's CPUs, or the nearest node with
      memory if those have none.
    - `remote`: the nearest other node.
    - `interleave`: all allowed nodes.

    Nodes without CPUs hold the memory of a GPU, or slower memory. They are used only if
    `memory_nodes` names them, or if no allowed node has both CPUs and memory.

    The number of threads is one of:

    - A number: that number.
    - `per-core`, `per-cpu`: the cores or CPUs of a worker (the fewest, if workers differ).
    - `host-cores`: all physical cores of the host, allowed or not. This may be more than the
      worker's CPUs, as with a process that assumes it has the whole machine.
    - `cores-per-worker`: the cores that we may use, divided by the number of workers.
    - `quota`: as many as the CPU time that the workers may use keeps busy, by the cell's quota
      or the host's, whichever is smaller.

    The host's quota also limits `per-core`, `per-cpu` and `cores-per-worker`.

    Args:
        tools: Which of `taskset` and `numactl` the host has.

    Returns:
        The placement, or why there is none and how to fix it.
    """
    runtime = cell.runtime
    if cell.binding.mode == "launcher" and not runtime.has_launcher:
        return _NO_LAUNCHER
    if runtime.server and (conflict := _server_conflict(cell, runtime.server)) is not None:
        return conflict
    worker_cpus = cpu_selection.select_cpus(cell, host)
    if isinstance(worker_cpus, CannotRun):
        return worker_cpus
    binding = cell.binding
    bound = binding.mode not in cpu_selection.UNBOUND
    # A server's launcher binds its own workers, so they need no backend of ours.
    backend = _backend(binding, tools, bound=bound)
    if isinstance(backend, CannotRun):
        return backend
    slot_of = {}
    for cpus in frozenset(worker_cpus):
        memory = _memory(binding, host, cpus)
        if isinstance(memory, CannotRun):
            return memory
        slot_of[cpus] = Slot(cpus=cpus, memory_nodes=memory)
    omp = cell.threads.omp
    return Placement(
        slots=tuple(slot_of[cpus] for cpus in worker_cpus),
        threads=_threads(cell, host, tuple(slot_of.values())),
        backend=backend,
        memory=binding.memory,
        moment=binding.moment if bound else "before-start",
        bound=bound or cpu_selection.server_binds_workers(cell),
        omp=len({cpu.core for cpu in host.cpus}) if omp == "host-cores" else omp,
        notes=tuple(_notes(cell, worker_cpus, host)),
    )


def _notes(cell: Cell, worker_cpus: cpu_selection.WorkerCpus, host: Topology) -> Iterator[str]:
    """What a binding does that its name does not say: workers and kinds of core that it mixes."""
    if cell.runtime.server is not None and cell.runtime.server.start == "running":
        yield UNKNOWN
    if cell.binding.mode == "none":
        return
    workers = Counter(chain.from_iterable(worker_cpus))
    if shared := [cpu for cpu, count in workers.items() if count > 1]:
        yield f"Workers share CPUs {cpu_list(shared)}: up to {max(workers.values())} on each."
    kinds = Counter({cpu.core: cpu.kind for cpu in host.cpus if cpu.id in workers}.values())
    if len(kinds) > 1:
        mixed = " and ".join(f"{count} {kind or 'other'}" for kind, count in kinds.items())
        yield f"It mixes {mixed} cores; `core_kind` selects one kind."


_PINNING_SERVERS = [
    name
    for name, runtime in RUNTIMES.items()
    if runtime.server is not None and runtime.server.pins_workers
]


def _server_conflict(cell: Cell, server: Server) -> CannotRun | None:
    """Why a cell is not possible with a server, which starts its workers itself."""
    binding = cell.binding
    if cell.workers > 1 and server.is_single_process:
        return CannotRun(
            what=f"{cell.framework} is one process, not `workers: {cell.workers}`.",
            fix="Write `workers: 1`; the parameter `slots` says how many texts it writes at once.",
        )
    if binding.mode == "per-worker":
        return CannotRun(
            what="`binding: per-worker` cannot reach the workers that a server starts itself.",
            fix=f"Write `binding: launcher`, with {' or '.join(_PINNING_SERVERS)}."
            if server.start != "own"
            else "Write another binding; its processes share their CPUs.",
        )
    if binding.moment == "after-start":
        return CannotRun(
            what="`bind: after-start` is for workers that corebound starts, not for a server's.",
            fix="Remove `bind`.",
        )
    if cpu_selection.server_binds_workers(cell) and binding.memory != "default":
        return CannotRun(
            what=f"`memory: {binding.memory}` cannot be passed to a server's launcher.",
            fix="Remove `memory`.",
        )
    return None


def _threads(cell: Cell, host: Topology, slots: tuple[Slot, ...]) -> int | None:
    rule = cell.threads.rule
    if rule == "default":
        return None
    if isinstance(rule, int):
        return rule
    core = {cpu.id: cpu.core for cpu in host.cpus}
    if rule == "host-cores":
        return len(set(core.values()))
    cpus = min(len(slot.cpus) for slot in slots)
    if rule == "quota":
        quotas = [quota for quota in (cell.cpu_quota, host.cpu_quota) if quota is not None]
        return threads_within_quota(min(quotas, default=None), cpus=cpus, workers=cell.workers)
    if rule == "cores-per-worker":
        threads = max(1, len({core[cpu.id] for cpu in host.allowed}) // cell.workers)
    elif rule == "per-cpu":
        threads = cpus
    else:
        threads = min(len({core[cpu] for cpu in slot.cpus}) for slot in slots)
    return threads_within_quota(host.cpu_quota, cpus=threads, workers=cell.workers)


def threads_within_quota(quota: float | None, *, cpus: int, workers: int = 1) -> int:
    """The most threads of a worker that its share of a CPU quota keeps running all the time.

    This is floor(min(quota / workers, CPUs)), but at least 1. With more threads, the quota of a
    period is used up before it ends, and the kernel stops all of them until the next one.

    Args:
        quota: The CPU time that all workers together may use, in CPUs; None is no limit.
        cpus: The CPUs of each worker.
        workers: The number of workers.
    """
    return cpus if quota is None else max(1, int(min(quota / workers, cpus)))


def _backend(binding: Binding, tools: frozenset[str], *, bound: bool) -> BackendUsed | CannotRun:
    """The backend that binds, or why none can; only numactl can bind memory."""
    if bound and (conflict := _contradiction(binding)) is not None:
        return conflict
    for_memory = binding.memory != "default"
    if not for_memory and not bound:
        return "none"
    if bound and binding.backend == "openmp":
        backend: BackendUsed = "openmp"
    elif for_memory:
        backend = "numactl"
    elif binding.moment == "after-start":
        return "taskset"  # the runner binds the worker once it is ready, as `taskset -p` does
    elif binding.backend == "auto":
        backend = "numactl" if "taskset" not in tools and "numactl" in tools else "taskset"
    else:
        backend = binding.backend
    tool = "numactl" if for_memory or backend == "numactl" else "taskset"
    if tool in tools:
        return backend
    setting = f"memory: {binding.memory}" if for_memory else f"binding: {binding.mode}"
    package = {"taskset": "util-linux", "numactl": "numactl"}[tool]
    return CannotRun(
        what=f"`{setting}` needs `{tool}`, which this host does not have.",
        fix=f"Install it: `apt-get install {package}`.",
    )


def _contradiction(binding: Binding) -> CannotRun | None:
    if binding.backend == "taskset" and binding.memory != "default":
        return CannotRun(
            what=f"`backend: taskset` cannot do `memory: {binding.memory}`.",
            fix="Set `backend: auto` or `backend: numactl`.",
        )
    if binding.backend == "openmp" and binding.moment == "after-start":
        return CannotRun(
            what="`backend: openmp` binds threads when they start, so"
            " `bind: after-start` is not possible.",
            fix="Set `backend: taskset`, or `bind: before-start`.",
        )
    return None


def _memory(
    binding: Binding, host: Topology, cpus: tuple[CpuId, ...]
) -> tuple[NodeId, ...] | CannotRun:
    """The nodes of one worker's memory policy, by number; empty for the kernel's default."""
    if binding.memory == "default":
        return ()
    with_memory = [node for node in host.nodes if node.allowed and node.memory_bytes != 0]
    if binding.memory_nodes:
        return _named_nodes(binding, [node.id for node in with_memory])
    usable_nodes = [node.id for node in with_memory if node.cpus] or [
        node.id for node in with_memory
    ]
    if not usable_nodes:
        return CannotRun(
            what=f"`memory: {binding.memory}` needs a NUMA node with available memory,"
            " and this host has none.",
            fix="Remove `memory`, which selects the default.",
        )
    if binding.memory == "interleave":
        return tuple(usable_nodes)
    own_cpus = frozenset(cpus)
    counts = Counter(cpu.node for cpu in host.cpus if cpu.id in own_cpus)
    nodes = sorted(counts, key=lambda node: (-counts[node], node is None, node or 0))
    nearest_nodes = [
        node if node in usable_nodes else cpu_selection.nearest(host, node, usable_nodes)
        for node in nodes
    ]
    if binding.memory == "remote":
        others = [node for node in usable_nodes if node not in nearest_nodes]
        return (cpu_selection.nearest(host, nodes[0], others),) if others else _NO_OTHER_NODE
    # `preferred` accepts one node: the one with most of the CPUs.
    return (
        (nearest_nodes[0],) if binding.memory == "preferred" else tuple(sorted(set(nearest_nodes)))
    )


def _named_nodes(binding: Binding, usable: list[NodeId]) -> tuple[NodeId, ...] | CannotRun:
    named = binding.memory_nodes
    if missing := set(named) - set(usable):
        return CannotRun(
            what=f"`memory_nodes: {cpu_list(named)}` includes nodes without memory that corebound"
            f" may use here: {cpu_list(missing)}.",
            fix=f"Choose among nodes {cpu_list(usable) or '(none)'}.",
        )
    return named[:1] if binding.memory == "preferred" else named


_NO_LAUNCHER = CannotRun(
    what="`binding: launcher` needs a launcher, and the cell's framework has none.",
    fix=f"Use it with {' or '.join(with_launcher())}.",
)
_NO_OTHER_NODE = CannotRun(
    what="`memory: remote` needs memory on a node other than the CPUs' own,"
    " and this host has no such node.",
    fix="Remove `memory: remote` here, bind to fewer nodes, or name others in `memory_nodes`.",
)
