"""Build the exact command and environment that start a worker or a server."""

from msgspec.structs import replace

from corebound.machine.topology import cpu_list
from corebound.planning.environment_variables import environment_variables, intra_op
from corebound.planning.models import Command, Placement, Slot
from corebound.planning.servers import server_arguments, server_environment
from corebound.scenario.cell import Cell

WORKER = ("-m", "corebound.worker")


def command(
    cell: Cell,
    placement: Placement,
    slot: int,
    python: str,
    *,
    gpus: tuple[str, ...] = (),
    openmp: str | None = None,
    target: str = "",
    own: tuple[str, ...] = (),
    inherits: tuple[str, ...] = (),
) -> Command:
    """Build the command that starts one worker, or a server, bound to its placement.

    Args:
        placement: Its placement. The command leaves the CPUs out if nothing binds, or if
            the runner binds once the worker is ready.
        slot: Index of the worker, counted from 0.
        python: The interpreter of the cell's environment.
        gpus: The host's GPUs, by CUDA's names. The cell sees the first ones, as many as it
            requests, and none if it requests none.
        openmp: The OpenMP runtime to preload, as a path or a name; None preloads none.
        target: What a server runs, as `module:name`; not used for a worker.
        own: The words that start a server of the user's own.
        inherits: The variables that it takes from corebound's own environment.

    Returns:
        An argument list, never passed to a shell, and the variables to add to the
        environment, by name. The cell's own variables come last and take precedence.
    """
    words = binder(placement, placement.slots[slot])
    env = environment_variables(cell, placement, slot, gpus, openmp)
    if (server := cell.runtime.server) is not None:
        if own:
            return Command(argv=(*words, *own), env=env, inherits=inherits)
        threads = intra_op(cell, placement)
        server_env = server_environment(cell, server, threads)
        return Command(
            argv=(*words, *server_arguments(cell, server, python, target)),
            env=(*server_env.items(), *env),
            inherits=inherits,
        )
    launcher = (python, *cell.runtime.launcher) if cell.binding.mode == "launcher" else ()
    return Command(argv=(*words, *launcher, python, *WORKER), env=env, inherits=inherits)


def without_cpu_binding(command: Command, placement: Placement, slot: int) -> tuple[str, ...]:
    """The arguments of a command from `command`, without those that bind it to CPUs."""
    where = placement.slots[slot]
    bound, unbound = binder(placement, where), binder(replace(placement, bound=False), where)
    return (*unbound, *command.argv[len(bound) :])


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
    nodes = cpu_list(slot.memory_nodes)
    options = {
        "local": "--localalloc",
        "preferred": f"--preferred={nodes}",
        "interleave": f"--interleave={nodes}",
    }
    # What remains is `bind` and `remote`.
    return ("numactl", *cpu_option, options.get(placement.memory, f"--membind={nodes}"))
