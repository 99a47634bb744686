"""Select the CPUs that each binding mode uses, and their order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from corebound.machine.topology import Cpu, CpuId, NodeId, Topology, cpu_list
from corebound.planning.models import CannotRun
from corebound.scenario.builtin_workloads import PINNING
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
    found: dict[int | None, list[Core]] = {}
    for core in cores:
        cpu = core.cpus[0]
        number = {"socket": cpu.core.package, "node": cpu.node, "cache": cpu.cache}[level]
        found.setdefault(number, []).append(core)
    ranked = sorted(found.items(), key=lambda each: (-len(each[1]), each[0] is None, each[0] or 0))
    return [(number, tuple(members)) for number, members in ranked]


def packed(cores: Cores, wanted: int | None, host: Topology) -> tuple[Core, ...]:
    """Order cores so that the first ones are as close together as possible.

    The first node is the one with the most cores that has `wanted` CPUs. The other nodes
    follow by distance from it. Sockets and caches within a node are ordered the same way.
    Within a cache, cores with more CPUs come first.
    """
    return _packed(cores, wanted, host, _INWARDS)


def _packed(
    cores: Cores, wanted: int | None, host: Topology, levels: tuple[Level, ...]
) -> tuple[Core, ...]:
    if not levels:
        return tuple(sorted(cores, key=lambda core: (-len(core.cpus), core.cpus[0].id)))
    ranked = groups(cores, levels[0])
    fits = [each for each in ranked if wanted is not None and capacity(each[1]) >= wanted]
    first = (fits or ranked)[0]
    rest = [each for each in ranked if each is not first]
    if levels[0] == "node":
        far = distances(host, first[0])
        rest.sort(key=lambda each: far.get(each[0], _FARTHEST))
    inner = [_packed(first[1], wanted, host, levels[1:])]
    inner += [_packed(members, None, host, levels[1:]) for _, members in rest]
    return tuple(chain.from_iterable(inner))


def spread(cores: Cores) -> tuple[Core, ...]:
    """Order cores so that neighbours in the order are as far apart as possible.

    The order alternates between sockets, within a socket between its nodes, and within a
    node between its caches.
    """
    return _dealt(cores, _DOWNWARDS)


def _dealt(cores: Cores, levels: tuple[Level, ...]) -> tuple[Core, ...]:
    if not levels:
        return tuple(sorted(cores, key=lambda core: core.cpus[0].id))
    hands = [_dealt(members, levels[1:]) for _, members in groups(cores, levels[0])]
    rounds = zip_longest(*hands)
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
    for each in host.nodes:
        if each.id == node:
            return dict[int | None, int](each.distances)
    return {}


def nearest(host: Topology, node: int | None, among: Sequence[NodeId]) -> NodeId:
    """The node of `among` that is nearest to `node`; `among` must not be empty."""
    far = distances(host, node)
    return min(among, key=lambda other: (far.get(other, _FARTHEST), other))


Chosen = tuple[tuple[CpuId, ...], ...]  # the CPUs of each worker, by number

# These modes bind nothing: the kernel or the framework's own launcher places the threads.
UNBOUND: frozenset[BindingMode] = frozenset({"none", "launcher"})


class _Ask(Struct, frozen=True, kw_only=True):
    """What one cell requests from one host.

    `cores` are the cores that its options allow. `wanted` is its number of threads, if the
    cell sets one.
    """

    binding: Binding
    host: Topology
    cores: tuple[Core, ...]
    wanted: int | None
    workers: int


def select_cpus(cell: Cell, host: Topology) -> Chosen | CannotRun:
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
    wanted = rule if isinstance(rule, int) else None
    if not host.allowed or workers < 1 or (wanted is not None and wanted < 1):
        return _NOTHING_ASKED if host.allowed else _NOTHING_ALLOWED
    if hands_out(cell):
        return _handed_out(cell, host)
    if binding.mode in UNBOUND:
        return (tuple(cpu.id for cpu in host.allowed),) * workers
    if binding.mode == "cpus":
        named = _named(binding, host)
        return named if isinstance(named, CannotRun) else (named,) * workers
    cores = _usable(binding, host)
    if isinstance(cores, CannotRun):
        return cores
    ask = _Ask(binding=binding, host=host, cores=cores, wanted=wanted, workers=workers)
    return _per_worker(ask) if binding.mode == "per-worker" else _shared(ask)


_NOTHING_ASKED = CannotRun(
    what="a cell needs at least one worker and one thread.",
    fix="Set `workers` and `threads` to 1 or more.",
)
_NOTHING_ALLOWED = CannotRun(
    what="no CPU of this host is both online and allowed to us.",
    fix="Widen the affinity or the cpuset that corebound runs in.",
)


def hands_out(cell: Cell) -> bool:
    """Whether the server binds each of its workers itself."""
    return cell.binding.mode == "launcher" and cell.framework in PINNING


def _handed_out(cell: Cell, host: Topology) -> Chosen | CannotRun:
    """The CPUs that a server's launcher gives each worker; shared if there are too few cores."""
    cores = one_cpu_per_core(cores_of(host.allowed))
    if cell.workers > len(cores):
        placed = packed(cores, None, host)
        shares = (placed[worker * len(cores) // cell.workers] for worker in range(cell.workers))
        return tuple((share.cpus[0].id,) for share in shares)
    ask = _Ask(binding=cell.binding, host=host, cores=cores, wanted=None, workers=cell.workers)
    return _per_worker(ask)


def _shared(ask: _Ask) -> Chosen | CannotRun:
    cpus = _MODES[ask.binding.mode](ask)
    return cpus if isinstance(cpus, CannotRun) else (tuple(sorted(cpus)),) * ask.workers


def _named(binding: Binding, host: Topology) -> tuple[CpuId, ...] | CannotRun:
    wanted = frozenset(binding.cpus)
    missing = wanted - {cpu.id for cpu in host.allowed}
    fix = f"Choose among CPUs {cpu_list(cpu.id for cpu in host.allowed)}."
    if not wanted:
        return CannotRun(what="`cpus` names no CPU.", fix=fix)
    if not missing:
        return tuple(sorted(wanted))
    offline = missing & frozenset(host.offline)
    barred = missing & {cpu.id for cpu in host.cpus}
    reasons = (
        (missing - offline - barred, "which this host does not have"),
        (offline, "offline here"),
        (barred, "not allowed to us"),
    )
    why = "; ".join(f"{cpu_list(cpus)}, {reason}" for cpus, reason in reasons if cpus)
    return CannotRun(what=f"`cpus: {cpu_list(wanted)}` asks for {why}.", fix=fix)


def _usable(binding: Binding, host: Topology) -> tuple[Core, ...] | CannotRun:
    """The cores that the options allow, each with its allowed CPUs."""
    cpus = host.allowed
    if binding.core_kind:
        cpus = tuple(cpu for cpu in cpus if cpu.kind == binding.core_kind)
        if not cpus:
            return CannotRun(
                what=f"`core_kind: {binding.core_kind}` matches no CPU we may use here.",
                fix="Leave `core_kind` out: it is for hybrid processors.",
            )
    if binding.avoid_cpu0:
        # The kernel sends most interrupts, and its own housekeeping, to CPU 0.
        first = {cpu.core for cpu in host.cpus if cpu.id == 0}
        cpus = tuple(cpu for cpu in cpus if cpu.core not in first)
        if not cpus:
            return CannotRun(
                what="`avoid_cpu0` leaves no core: all we may use is the core of CPU 0.",
                fix="Leave `avoid_cpu0` out on this host.",
            )
    return cores_of(cpus)


def _one_cpu(ask: _Ask) -> tuple[CpuId, ...] | CannotRun:
    return core_by_core(packed(one_cpu_per_core(ask.cores), 1, ask.host))[:1]


def _physical_cores(ask: _Ask) -> tuple[CpuId, ...] | CannotRun:
    cores = ask.cores if ask.binding.smt else one_cpu_per_core(ask.cores)
    cpus = siblings_last(packed(cores, ask.wanted, ask.host))
    return _narrowed(ask, cpus, f"{_counted(ask.cores)} we may use here, with")


def _logical_cpus(ask: _Ask) -> tuple[CpuId, ...] | CannotRun:
    cpus = core_by_core(packed(_smt(ask), ask.wanted, ask.host))
    return _narrowed(ask, cpus, "what we may use of this host, which has")


def _scatter(ask: _Ask) -> tuple[CpuId, ...] | CannotRun:
    return _narrowed(
        ask, siblings_last(spread(_smt(ask))), "what we may use of this host, which has"
    )


def _smt_siblings(ask: _Ask) -> tuple[CpuId, ...] | CannotRun:
    if ask.binding.smt is False:
        return CannotRun(
            what="`binding: smt-siblings` and `smt: false` exclude one another.",
            fix="Leave `smt` out for this binding.",
        )
    cores = tuple(core for core in ask.cores if len(core.cpus) > 1)
    if not cores:
        return CannotRun(
            what="this host shows one CPU per core, as far as we may use it: no SMT siblings.",
            fix="Turn SMT on in firmware and kernel, or leave `smt-siblings` out here.",
        )
    # Use the fewest cores: those with the most siblings first, then the nearest.
    near = packed(cores, ask.wanted, ask.host)
    most = core_by_core(sorted(near, key=lambda core: -len(core.cpus)))
    return _narrowed(ask, most, f"{_counted(cores)} that show siblings, with")


def _cache(ask: _Ask) -> tuple[CpuId, ...] | CannotRun:
    known = [each for each in groups(_smt(ask), "cache") if each[0] is not None]
    if not known:
        return CannotRun(
            what="the kernel of this host shows no data cache and who shares it.",
            fix="Set `binding: node` or `binding: socket` instead.",
        )
    return _one_of(ask, known, "cache")


def _one_node(ask: _Ask) -> tuple[CpuId, ...] | CannotRun:
    # Without NUMA the whole host is one node. With NUMA, CPUs without a node are left out.
    found = groups(_smt(ask), "node")
    numbered = [each for each in found if each[0] is not None]
    if ask.binding.memory != "remote":
        stocked = {node.id for node in ask.host.nodes if node.allowed and node.memory_bytes != 0}
        numbered.sort(key=lambda each: each[0] not in stocked)
    return _one_of(ask, numbered or found, "node")


def _socket(ask: _Ask) -> tuple[CpuId, ...] | CannotRun:
    return _one_of(ask, groups(_smt(ask), "socket"), "socket")


def _one_of(
    ask: _Ask, domains: list[tuple[int | None, tuple[Core, ...]]], level: Level
) -> tuple[CpuId, ...] | CannotRun:
    """The CPUs of the first domain that has as many as wanted, else of the first domain."""
    fits = (each for each in domains if capacity(each[1]) >= (ask.wanted or 1))
    number, cores = next(fits, domains[0])
    name = f"one {level}" if number is None or level == "cache" else f"{level} {number}"
    return _narrowed(ask, siblings_last(packed(cores, ask.wanted, ask.host)), f"{name}, which has")


def _per_worker(ask: _Ask) -> Chosen | CannotRun:
    """Split the cores evenly between workers; a remainder stays idle.

    A worker gets all its cores from one node while a node has enough cores left. Only the
    remainders of nodes are combined.
    """
    each = len(ask.cores) // ask.workers
    if each == 0:
        return CannotRun(
            what=f"`workers: {ask.workers}` does not fit {_counted(ask.cores)} we may use here:"
            " some would have none.",
            fix="Lower `workers`, or set another binding: only `per-worker` shares no core.",
        )
    cores = packed(ask.cores if ask.binding.smt else one_cpu_per_core(ask.cores), None, ask.host)
    shares: list[tuple[Core, ...]] = []
    remainders: list[Core] = []
    for _, local in groups(cores, "node"):
        whole = len(local) - len(local) % each
        shares += [local[start : start + each] for start in range(0, whole, each)]
        remainders += local[whole:]
    shares += [tuple(remainders[start : start + each]) for start in range(0, len(remainders), each)]
    chosen = tuple(tuple(sorted(core_by_core(share))) for share in shares[: ask.workers])
    fewest = min(len(cpus) for cpus in chosen)
    if ask.wanted is not None and ask.wanted > fewest:
        return _too_many(ask, fewest, "one worker's share, which has")
    return chosen


def _smt(ask: _Ask) -> tuple[Core, ...]:
    return one_cpu_per_core(ask.cores) if ask.binding.smt is False else ask.cores


def _narrowed(ask: _Ask, cpus: tuple[CpuId, ...], what: str) -> tuple[CpuId, ...] | CannotRun:
    if ask.wanted is None:
        return cpus
    return _too_many(ask, len(cpus), what) if ask.wanted > len(cpus) else cpus[: ask.wanted]


def _too_many(ask: _Ask, count: int, what: str) -> CannotRun:
    every = len(ask.host.allowed)
    wider = f", or set `binding: logical-cpus`, which has {every}" if every > count else ""
    return CannotRun(
        what=f"`threads: {ask.wanted}` does not fit {what} {count} CPU{'' if count == 1 else 's'}.",
        fix=f"Lower `threads` to {count}{wider}.",
    )


def _counted(cores: tuple[Core, ...]) -> str:
    return f"the {len(cores)} physical core{'' if len(cores) == 1 else 's'}"


_MODES: Mapping[BindingMode, Callable[[_Ask], tuple[CpuId, ...] | CannotRun]] = {
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
