"""The exact command and environment that start one worker."""

from __future__ import annotations

from corebound.model.plan import Cell, Command, Placement, Slot
from corebound.model.topology import cpu_list
from corebound.planning.servers import SERVERS, server_environment, server_words

WORKER = ("-m", "corebound.worker")

# What each framework offers to place its own processes; it is given the words
# of the worker, the interpreter included.
LAUNCHERS: dict[str, tuple[str, ...]] = {
    "pytorch": ("-m", "torch.backends.xeon.run_cpu", "--ninstances", "1", "--no-python"),
}


def command(
    cell: Cell,
    placement: Placement,
    slot: int,
    python: str,
    worker: tuple[str, ...] = WORKER,
    *,
    gpus: tuple[str, ...] = (),
) -> Command:
    """Write the command that starts one worker, or a server, bound as its placement says.

    Args:
        cell: What is launched.
        placement: Where; its CPUs are left out where nothing binds, or where
            the runner binds once the worker is ready.
        slot: Which worker, counted from 0.
        python: The interpreter of the cell's environment.
        worker: What the interpreter is given; not for a server.
        gpus: Those of the host, as CUDA calls them; the cell sees as many of them,
            the first ones, as it asks for, and none where it asks for none.

    Returns:
        An argument list, never for a shell, and the variables to add to the
        environment, by name; the cell's own come last and win.
    """
    binder = _binder(placement, placement.slots[slot])
    env = _environment(cell, placement, placement.slots[slot], gpus)
    if cell.framework in SERVERS:
        told = server_environment(cell, placement)
        return Command(argv=(*binder, *server_words(cell, python)), env=(*told.items(), *env))
    launcher = (python, *LAUNCHERS[cell.framework]) if cell.binding.mode == "launcher" else ()
    return Command(argv=(*binder, *launcher, python, *worker), env=env)


def intra_op(cell: Cell, placement: Placement) -> int | None:
    """Threads within an operator that the framework is told to use; None: not told."""
    return placement.threads if cell.threads.intra_op is None else cell.threads.intra_op


def inter_op(cell: Cell) -> int | None:
    """Threads between operators that the framework is told to use; None: not told."""
    return cell.threads.inter_op


def _binder(placement: Placement, slot: Slot) -> tuple[str, ...]:
    cpus = cpu_list(slot.cpus)
    binds = placement.bound and placement.moment == "before-start"
    if placement.memory == "default":
        if not binds or placement.backend == "none":
            return ()
        if placement.backend == "numactl":
            return ("numactl", f"--physcpubind={cpus}")
        return ("taskset", "-c", cpus)
    here = (f"--physcpubind={cpus}",) if binds else ()
    return ("numactl", *here, _memory(placement, slot))


def _memory(placement: Placement, slot: Slot) -> str:
    nodes = cpu_list(slot.memory_nodes)
    if placement.memory == "local":
        return "--localalloc"
    if placement.memory == "preferred":
        return f"--preferred={nodes}"
    if placement.memory == "interleave":
        return f"--interleave={nodes}"
    return f"--membind={nodes}"  # bind and remote


def _environment(
    cell: Cell, placement: Placement, slot: Slot, gpus: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    threads, asked = placement.threads, cell.threads
    counts = {
        "OMP_NUM_THREADS": threads if placement.omp is None else placement.omp,
        "MKL_NUM_THREADS": threads if asked.mkl is None else asked.mkl,
        "OPENBLAS_NUM_THREADS": threads,
    }
    if cell.framework == "tensorflow":
        counts["TF_NUM_INTRAOP_THREADS"] = intra_op(cell, placement)
        counts["TF_NUM_INTEROP_THREADS"] = inter_op(cell)
    env = {name: str(count) for name, count in counts.items() if count is not None}
    if placement.backend == "openmp":
        env["OMP_PLACES"] = ",".join(f"{{{cpu}}}" for cpu in slot.cpus)
        env["OMP_PROC_BIND"] = "spread" if cell.binding.mode == "scatter" else "close"
    if gpus:
        # Where it is not set, TensorFlow takes every GPU that it finds.
        env["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[: cell.gpus])
    env.update(cell.env)
    return tuple(env.items())
