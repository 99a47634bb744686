"""Select the CPUs that each binding mode uses, and their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from corebound.machine.topology import Cpu, CpuId, NodeId, Topology, cpu_list
from corebound.planning.models import CannotRun
from corebound.scenario.cell import Binding, BindingMode, Cell


class Core(Struct, frozen=True, kw_only=True):
    """A physical core, with the CPUs that a cell may use: one or more, by number."""

    cpus: tuple[Cpu, ...]


Cores = Sequence[Core]
Level = Literal["socket", "node", "cache"]

# A node may be part of a socket or contain several sockets. Only nodes have distances, so
# they come before sockets.
_INWARDS: tuple[Level, ...] = ("node", "socket", "cache")
_DOWNWARDS: tuple[Level, ...] = ("socket", "node", "cache")


def cores_of(cpus: Iterable[Cpu]) -> tuple[Core, ...]:
    """Group CPUs, given in order of their numbers, by core."""
    members: dict[object, list[Cpu]] = {}
    for cpu in cpus:
        members.setdefault(cpu.core, []).append(cpu)
    return tuple(Core(cpus=tuple(core)) for core in members.values())


def one_cpu_per_core(cores: Cores) -> tuple[Core, ...]:
    """The same cores, each with its lowest CPU only."""
    return tuple(replace(core, cpus=core.cpus[:1]) for core in cores)


def capacity(cores: Cores) -> int:
    """Total number of CPUs of the cores."""
    return sum(len(core.cpus) for core in cores)


def groups(cores: Cores, level: Level) -> list[tuple[int | None, tuple[Core, ...]]]:
    """The cores of each socket, node or last-level cache, with its number.

    Groups with the most cores come first, then lower numbers. Cores whose location the
    kernel does not report form the group None, the last of its size.
    """
    members_by_number: dict[int | None, list[Core]] = {}
    for core in cores:
        cpu = core.cpus[0]
        number = {"socket": cpu.core.package, "node": cpu.node, "cache": cpu.cache}[level]
        members_by_number.setdefault(number, []).append(core)
    ranked = sorted(
        members_by_number.items(),
        key=lambda group: (-len(group[1]), group[0] is None, group[0] or 0),
    )
    return [(number, tuple(members)) for number, members in ranked]


def packed(
    cores: Cores, threads: int | None, host: Topology, levels: tuple[Level, ...] = _INWARDS
) -> tuple[Core, ...]:
    """Order cores so that the first ones are as close together as possible.

    The first node is the one with the most cores that has `threads` CPUs. The other nodes
    follow by distance from it. Sockets and caches within a node are ordered the same way.
    Within a cache, cores with more CPUs come first.
    """
    if not levels:
        return tuple(sorted(cores, key=lambda core: (-len(core.cpus), core.cpus[0].id)))
    ranked = groups(cores, levels[0])
    large_enough = [
        group for group in ranked if threads is not None and capacity(group[1]) >= threads
    ]
    first = (large_enough or ranked)[0]
    others = [group for group in ranked if group is not first]
    if levels[0] == "node":
        distances_from_first = distances(host, first[0])
        others.sort(key=lambda group: distances_from_first.get(group[0], _FARTHEST))
    inner = [packed(first[1], threads, host, levels[1:])]
    inner += [packed(members, None, host, levels[1:]) for _, members in others]
    return tuple(chain.from_iterable(inner))


def spread(cores: Cores, levels: tuple[Level, ...] = _DOWNWARDS) -> tuple[Core, ...]:
    """Order cores so that neighbours in the order are as far apart as possible.

    The order alternates between sockets, within a socket between its nodes, and within a
    node between its caches.
    """
    if not levels:
        return tuple(sorted(cores, key=lambda core: core.cpus[0].id))
    sequences = [spread(members, levels[1:]) for _, members in groups(cores, levels[0])]
    rounds = zip_longest(*sequences)
    return tuple(core for turn in rounds for core in turn if core is not None)


def core_by_core(cores: Cores) -> tuple[CpuId, ...]:
    """All CPUs of the first core, then all CPUs of the second, and so on."""
    return tuple(cpu.id for core in cores for cpu in core.cpus)


def siblings_last(cores: Cores) -> tuple[CpuId, ...]:
    """One CPU of every core, then a second CPU of every core that has one, and so on."""
    rounds = zip_longest(*(core.cpus for core in cores))
    return tuple(cpu.id for turn in rounds for cpu in turn if cpu is not None)


# Above the kernel's largest distance, 255 (unreachable).
_FARTHEST = 256


def distances(host: Topology, node: int | None) -> dict[int | None, int]:
    """The distance of every node from `node`; empty if the kernel does not report it."""
    for entry in host.nodes:
        if entry.id == node:
            return dict[int | None, int](entry.distances)
    return {}


def nearest(host: Topology, node: int | None, candidates: Sequence[NodeId]) -> NodeId:
    """The node of `candidates` that is nearest to `node`; `candidates` must not be empty."""
    distances_from_node = distances(host, node)
    return min(candidates, key=lambda other: (distances_from_node.get(other, _FARTHEST), other))


WorkerCpus = tuple[tuple[CpuId, ...], ...]  # the CPUs of each worker, by number

# These modes bind nothing: the kernel or the framework's own launcher places the threads.
UNBOUND: frozenset[BindingMode] = frozenset({"none", "launcher"})


class _Request(Struct, frozen=True, kw_only=True):
    """What one cell requests from one host.

    `cores` are the cores that its options allow. `threads` is its number of threads, if the
    cell sets one.
    """

    binding: Binding
    host: Topology
    cores: tuple[Core, ...]
    threads: int | None
    workers: int


def select_cpus(cell: Cell, host: Topology) -> WorkerCpus | CannotRun:
    """Choose the CPUs of every worker of a cell.

    A number of threads limits the selection to as many CPUs, except under `one-cpu`, `cpus`
    and `per-worker`, which define the number themselves. All workers share the same CPUs,
    with two exceptions that give each worker a share of the cores: `per-worker`, and the
    workers of a server under `launcher`.

    The options `smt`, `avoid_cpu0` and `core_kind` apply to the modes that search for CPUs.
    They do not apply to `cpus`, which names them, or to the modes that bind nothing.
    """
    binding, workers = cell.binding, cell.workers
    rule = cell.threads.rule
    threads = rule if isinstance(rule, int) else None
    if not host.allowed or workers < 1 or (threads is not None and threads < 1):
        return _NO_WORKER_OR_THREAD if host.allowed else _NO_ALLOWED_CPU
    if server_binds_workers(cell):
        return _server_workers(cell, host)
    if binding.mode in UNBOUND:
        return (tuple(cpu.id for cpu in host.allowed),) * workers
    if binding.mode == "cpus":
        shared = _explicit_cpus(binding, host)
    else:
        cores = _usable_cores(binding, host)
        if isinstance(cores, CannotRun):
            return cores
        request = _Request(
            binding=binding, host=host, cores=cores, threads=threads, workers=workers
        )
        if binding.mode == "per-worker":
            return _per_worker(request)
        shared = _MODES[binding.mode](request)
    return shared if isinstance(shared, CannotRun) else (tuple(sorted(shared)),) * workers


_NO_WORKER_OR_THREAD = CannotRun(
    what="a cell needs at least one worker and one thread.",
    fix="Set `workers` and `threads` to 1 or more.",
)
_NO_ALLOWED_CPU = CannotRun(
    what="no CPU of this host is both online and allowed.",
    fix="Widen the affinity or the cpuset that corebound runs in.",
)


def server_binds_workers(cell: Cell) -> bool:
    """Whether the server binds each of its workers itself."""
    server = cell.runtime.server
    return cell.binding.mode == "launcher" and server is not None and server.pins_workers


def _server_workers(cell: Cell, host: Topology) -> WorkerCpus | CannotRun:
    """The CPUs that a server's launcher gives each worker; shared if there are too few cores."""
    cores = one_cpu_per_core(cores_of(host.allowed))
    if cell.workers > len(cores):
        ordered = packed(cores, None, host)
        shares = (ordered[worker * len(cores) // cell.workers] for worker in range(cell.workers))
        return tuple((share.cpus[0].id,) for share in shares)
    request = _Request(
        binding=cell.binding, host=host, cores=cores, threads=None, workers=cell.workers
    )
    return _per_worker(request)


def _explicit_cpus(binding: Binding, host: Topology) -> tuple[CpuId, ...] | CannotRun:
    requested = frozenset(binding.cpus)
    missing = requested - {cpu.id for cpu in host.allowed}
    fix = f"Choose among CPUs {cpu_list(cpu.id for cpu in host.allowed)}."
    if not requested:
        return CannotRun(what="`cpus` is empty.", fix=fix)
    if not missing:
        return tuple(sorted(requested))
    offline = missing & frozenset(host.offline)
    not_allowed = missing & {cpu.id for cpu in host.cpus}
    reasons = (
        (missing - offline - not_allowed, "which this host does not have"),
        (offline, "offline here"),
        (not_allowed, "not in the allowed set"),
    )
    reasons_text = "; ".join(f"{cpu_list(cpus)}, {reason}" for cpus, reason in reasons if cpus)
    return CannotRun(
        what=f"`cpus: {cpu_list(requested)}` includes CPUs that are not usable: {reasons_text}.",
        fix=fix,
    )


def _usable_cores(binding: Binding, host: Topology) -> tuple[Core, ...] | CannotRun:
    """The cores that the options allow, each with its allowed CPUs."""
    cpus = host.allowed
    if binding.core_kind:
        cpus = tuple(cpu for cpu in cpus if cpu.kind == binding.core_kind)
        if not cpus:
            return CannotRun(
                what=f"`core_kind: {binding.core_kind}` matches no available CPU.",
                fix="Remove `core_kind`: it applies to hybrid processors only.",
            )
    if binding.avoid_cpu0:
        # The kernel sends most interrupts, and its own housekeeping, to CPU 0.
        first_cores = {cpu.core for cpu in host.cpus if cpu.id == 0}
        cpus = tuple(cpu for cpu in cpus if cpu.core not in first_cores)
        if not cpus:
            return CannotRun(
                what="`avoid_cpu0` excludes the only available core, that of CPU 0.",
                fix="Remove `avoid_cpu0` on this host.",
            )
    return cores_of(cpus)


def _one_cpu(request: _Request) -> tuple[CpuId, ...] | CannotRun:
    return core_by_core(packed(one_cpu_per_core(request.cores), 1, request.host))[:1]


def _physical_cores(request: _Request) -> tuple[CpuId, ...] | CannotRun:
    cores = request.cores if request.binding.smt else one_cpu_per_core(request.cores)
    cpus = siblings_last(packed(cores, request.threads, request.host))
    return _limit_to_threads(request, cpus, f"{_core_count(request.cores)} available here, with")


def _logical_cpus(request: _Request) -> tuple[CpuId, ...] | CannotRun:
    cpus = core_by_core(packed(_cores_by_smt(request), request.threads, request.host))
    return _limit_to_threads(request, cpus, "the available part of this host, which has")


def _scatter(request: _Request) -> tuple[CpuId, ...] | CannotRun:
    return _limit_to_threads(
        request,
        siblings_last(spread(_cores_by_smt(request))),
        "the available part of this host, which has",
    )


def _smt_siblings(request: _Request) -> tuple[CpuId, ...] | CannotRun:
    if request.binding.smt is False:
        return CannotRun(
            what="`binding: smt-siblings` and `smt: false` exclude each other.",
            fix="Remove `smt` for this binding.",
        )
    cores = tuple(core for core in request.cores if len(core.cpus) > 1)
    if not cores:
        return CannotRun(
            what="SMT is not available on this host: no core has two usable CPUs.",
            fix="Turn SMT on in firmware and kernel, or remove `smt-siblings` here.",
        )
    # Use the fewest cores: those with the most siblings first, then the nearest.
    ordered = packed(cores, request.threads, request.host)
    cpus = core_by_core(sorted(ordered, key=lambda core: -len(core.cpus)))
    return _limit_to_threads(request, cpus, f"{_core_count(cores)} that show siblings, with")


def _cache(request: _Request) -> tuple[CpuId, ...] | CannotRun:
    caches = [group for group in groups(_cores_by_smt(request), "cache") if group[0] is not None]
    if not caches:
        return CannotRun(
            what="the kernel of this host does not report which CPUs share a cache.",
            fix="Set `binding: node` or `binding: socket` instead.",
        )
    return _one_domain(request, caches, "cache")


def _one_node(request: _Request) -> tuple[CpuId, ...] | CannotRun:
    # Without NUMA the whole host is one node. With NUMA, CPUs without a node are left out.
    nodes = groups(_cores_by_smt(request), "node")
    numbered = [group for group in nodes if group[0] is not None]
    if request.binding.memory != "remote":
        nodes_with_memory = {
            node.id for node in request.host.nodes if node.allowed and node.memory_bytes != 0
        }
        numbered.sort(key=lambda group: group[0] not in nodes_with_memory)
    return _one_domain(request, numbered or nodes, "node")


def _socket(request: _Request) -> tuple[CpuId, ...] | CannotRun:
    return _one_domain(request, groups(_cores_by_smt(request), "socket"), "socket")


def _one_domain(
    request: _Request, domains: list[tuple[int | None, tuple[Core, ...]]], level: Level
) -> tuple[CpuId, ...] | CannotRun:
    """The CPUs of the first domain that has as many as wanted, else of the first domain."""
    large_enough = (domain for domain in domains if capacity(domain[1]) >= (request.threads or 1))
    number, cores = next(large_enough, domains[0])
    name = f"one {level}" if number is None or level == "cache" else f"{level} {number}"
    return _limit_to_threads(
        request, siblings_last(packed(cores, request.threads, request.host)), f"{name}, which has"
    )


def _per_worker(request: _Request) -> WorkerCpus | CannotRun:
    """Split the cores evenly between workers; a remainder stays idle.

    A worker gets all its cores from one node while a node has enough cores left. Only the
    remainders of nodes are combined.
    """
    cores_per_worker = len(request.cores) // request.workers
    if cores_per_worker == 0:
        return CannotRun(
            what=f"`workers: {request.workers}` does not fit {_core_count(request.cores)}"
            " available here: some workers would have no core.",
            fix="Lower `workers`, or set another binding: only `per-worker` requires separate"
            " cores.",
        )
    cores = packed(
        request.cores if request.binding.smt else one_cpu_per_core(request.cores),
        None,
        request.host,
    )
    shares: list[tuple[Core, ...]] = []
    remainders: list[Core] = []
    for _, local in groups(cores, "node"):
        divisible = len(local) - len(local) % cores_per_worker
        shares += [
            local[start : start + cores_per_worker]
            for start in range(0, divisible, cores_per_worker)
        ]
        remainders += local[divisible:]
    shares += [
        tuple(remainders[start : start + cores_per_worker])
        for start in range(0, len(remainders), cores_per_worker)
    ]
    worker_cpus = tuple(tuple(sorted(core_by_core(share))) for share in shares[: request.workers])
    fewest = min(len(cpus) for cpus in worker_cpus)
    if request.threads is not None and request.threads > fewest:
        return _too_many(request, fewest, "one worker's share, which has")
    return worker_cpus


def _cores_by_smt(request: _Request) -> tuple[Core, ...]:
    return one_cpu_per_core(request.cores) if request.binding.smt is False else request.cores


def _limit_to_threads(
    request: _Request, cpus: tuple[CpuId, ...], what: str
) -> tuple[CpuId, ...] | CannotRun:
    if request.threads is None:
        return cpus
    return (
        _too_many(request, len(cpus), what)
        if request.threads > len(cpus)
        else cpus[: request.threads]
    )


def _too_many(request: _Request, count: int, what: str) -> CannotRun:
    allowed = len(request.host.allowed)
    alternative = (
        f", or set `binding: logical-cpus`, which has {allowed}" if allowed > count else ""
    )
    return CannotRun(
        what=f"`threads: {request.threads}` does not fit {what} {count}"
        f" CPU{'' if count == 1 else 's'}.",
        fix=f"Lower `threads` to {count}{alternative}.",
    )


def _core_count(cores: tuple[Core, ...]) -> str:
    return f"the {len(cores)} physical core{'' if len(cores) == 1 else 's'}"


_MODES: Mapping[BindingMode, Callable[[_Request], tuple[CpuId, ...] | CannotRun]] = {
    "one-cpu": _one_cpu,
    "physical-cores": _physical_cores,
    "logical-cpus": _logical_cpus,
    "compact": _logical_cpus,
    "scatter": _scatter,
    "smt-siblings": _smt_siblings,
    "cache": _cache,
    "node": _one_node,
    "socket": _socket,
}
