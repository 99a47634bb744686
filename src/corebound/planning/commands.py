"""Build the exact command and environment that start a worker or a server."""

from __future__ import annotations

from msgspec.structs import replace

from corebound.machine.topology import cpu_list
from corebound.planning.models import Command, Placement, Slot
from corebound.planning.servers import server_arguments, server_environment
from corebound.scenario.cell import Cell
from corebound.scenario.runtimes import Pool

WORKER = ("-m", "corebound.worker")


def command(
    cell: Cell,
    placement: Placement,
    slot: int,
    python: str,
    worker: tuple[str, ...] = WORKER,
    *,
    gpus: tuple[str, ...] = (),
    openmp: str | None = None,
    target: str = "",
    inherits: tuple[str, ...] = (),
) -> Command:
    """Build the command that starts one worker, or a server, bound to its placement.

    Args:
        cell: The cell to launch.
        placement: Its placement. The command leaves the CPUs out if nothing binds, or if
            the runner binds once the worker is ready.
        slot: Index of the worker, counted from 0.
        python: The interpreter of the cell's environment.
        worker: The arguments of the interpreter; not used for a server.
        gpus: The host's GPUs, by CUDA's names. The cell sees the first ones, as many as it
            requests, and none if it requests none.
        openmp: The OpenMP runtime to preload, as a path or a name; None preloads none.
        target: What a server runs, as `module:name`; not used for a worker.
        inherits: The variables that it takes from corebound's own environment.

    Returns:
        An argument list, never passed to a shell, and the variables to add to the
        environment, by name. The cell's own variables come last and take precedence.
    """
    words = binder(placement, placement.slots[slot])
    env = _environment(cell, placement, placement.slots[slot], gpus)
    if (server := cell.runtime.server) is not None:
        threads = intra_op(cell, placement)
        server_env = server_environment(cell, server, threads)
        return Command(
            argv=(*words, *server_arguments(cell, server, python, target)),
            env=(*server_env.items(), *env),
            inherits=inherits,
        )
    launcher = (python, *cell.runtime.launcher) if cell.binding.mode == "launcher" else ()
    return Command(
        argv=(*words, *launcher, python, *worker), env=_preloading(env, openmp), inherits=inherits
    )


def without_cpu_binding(command: Command, placement: Placement, slot: int) -> tuple[str, ...]:
    """The arguments of a command from `command`, without those that bind it to CPUs."""
    where = placement.slots[slot]
    bound, unbound = binder(placement, where), binder(replace(placement, bound=False), where)
    return (*unbound, *command.argv[len(bound) :])


def intra_op(cell: Cell, placement: Placement) -> int | None:
    """Intra-op threads to set in the framework; None leaves its default."""
    return placement.threads if cell.threads.intra_op is None else cell.threads.intra_op


def inter_op(cell: Cell, placement: Placement) -> int | None:
    """Inter-op threads to set in the framework; None leaves its default.

    TensorFlow's default is a thread for each CPU, so `threads: 1` would compute with all of them.
    """
    if cell.threads.inter_op is None and cell.threads.intra_op is None:
        return placement.threads if cell.runtime.inter_op == "shared" else None
    return cell.threads.inter_op


def binder(placement: Placement, slot: Slot) -> tuple[str, ...]:
    """The words before a command that bind it to a slot; empty if nothing binds it."""
    cpus = cpu_list(slot.cpus)
    binds_cpus = placement.bound and placement.moment == "before-start"
    if placement.memory == "default":
        if not binds_cpus or placement.backend == "none":
            return ()
        if placement.backend == "numactl":
            return ("numactl", f"--physcpubind={cpus}")
        return ("taskset", "-c", cpus)
    cpu_option = (f"--physcpubind={cpus}",) if binds_cpus else ()
    return ("numactl", *cpu_option, _memory(placement, slot))


def _memory(placement: Placement, slot: Slot) -> str:
    nodes = cpu_list(slot.memory_nodes)
    if placement.memory == "local":
        return "--localalloc"
    if placement.memory == "preferred":
        return f"--preferred={nodes}"
    if placement.memory == "interleave":
        return f"--interleave={nodes}"
    return f"--membind={nodes}"  # bind and remote


def _preloading(
    env: tuple[tuple[str, str], ...], library: str | None
) -> tuple[tuple[str, str], ...]:
    """The variables with a library preloaded, before those that are preloaded already."""
    if library is None:
        return env
    variables = dict(env)
    others = variables.get("LD_PRELOAD")
    variables["LD_PRELOAD"] = f"{library}:{others}" if others else library
    return tuple(variables.items())


# libgomp's own estimate, from which it derives its default of 3 ms.
# Source: GCC, libgomp/env.c, initialize_env.
SPINS_A_MS = 100_000


def _spinning(blocktime: int | str | None) -> dict[str, str]:
    """The variables for a time to spin: one for Intel's and LLVM's runtimes, one for GNU's."""
    if blocktime is None:
        return {}
    spins = blocktime if isinstance(blocktime, str) else str(blocktime * SPINS_A_MS)
    return {"KMP_BLOCKTIME": str(blocktime), "GOMP_SPINCOUNT": spins}


def _environment(
    cell: Cell, placement: Placement, slot: Slot, gpus: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    threads, requested = placement.threads, cell.threads
    counts = {
        "OMP_NUM_THREADS": threads if placement.omp is None else placement.omp,
        "MKL_NUM_THREADS": threads if requested.mkl is None else requested.mkl,
        "OPENBLAS_NUM_THREADS": threads,
    }
    pools: dict[Pool, int | None] = {
        "intra_op": intra_op(cell, placement),
        "inter_op": inter_op(cell, placement),
    }
    counts |= {variable: pools[pool] for pool, variable in cell.runtime.variables.items()}
    env = {name: str(count) for name, count in counts.items() if count is not None}
    env.update(_spinning(requested.blocktime))
    if placement.backend == "openmp":
        env["OMP_PLACES"] = ",".join(f"{{{cpu}}}" for cpu in slot.cpus)
        env["OMP_PROC_BIND"] = "spread" if cell.binding.mode == "scatter" else "close"
    if gpus:
        # Without this variable TensorFlow uses every GPU that it finds.
        env["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[: cell.gpus])
    env.update(cell.env)
    return tuple(env.items())
