"""The environment variables that set a launch's threads, placement and GPUs."""

from corebound.machine.topology import cpu_list
from corebound.planning.models import Placement
from corebound.scenario.cell import Cell
from corebound.scenario.matrix import axis_text
from corebound.scenario.placeholders import fill
from corebound.scenario.runtimes import Pool

# libgomp's own estimate, from which it derives its default of 3 ms.
# Source: GCC, libgomp/env.c, initialize_env.
_SPINS_A_MS = 100_000


def environment_variables(
    cell: Cell, placement: Placement, slot: int, gpus: tuple[str, ...], openmp: str | None
) -> tuple[tuple[str, str], ...]:
    """The variables of a worker or server, by name; the cell's own come last.

    Args:
        placement: The cell's placement.
        slot: Index of the worker, counted from 0; 0 for a server.
        gpus: The host's GPUs, by CUDA's names. The first ones are visible, as many as the cell
            requests; none if it requests none.
        openmp: The OpenMP runtime to preload, before what the cell preloads; None preloads none.
    """
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
    if (blocktime := requested.blocktime) is not None:
        # One for Intel's and LLVM's runtimes, one for GNU's.
        spins = blocktime if isinstance(blocktime, str) else str(blocktime * _SPINS_A_MS)
        env |= {"KMP_BLOCKTIME": str(blocktime), "GOMP_SPINCOUNT": spins}
    if placement.backend == "openmp":
        env["OMP_PLACES"] = ",".join(f"{{{cpu}}}" for cpu in placement.slots[slot].cpus)
        env["OMP_PROC_BIND"] = "spread" if cell.binding.mode == "scatter" else "close"
    if gpus:
        # Without this variable TensorFlow uses every GPU that it finds.
        env["CUDA_VISIBLE_DEVICES"] = ",".join(gpus[: cell.gpus])
    values = placeholder_values(cell, placement, slot)
    env.update((name, fill(value, values)) for name, value in cell.env)
    if openmp is not None:
        env["LD_PRELOAD"] = ":".join(filter(None, (openmp, env.get("LD_PRELOAD"))))
    return tuple(env.items())


def placeholder_values(cell: Cell, placement: Placement, slot: int) -> dict[str, str]:
    """The values of the placeholders of a cell's commands and variables, but the port.

    Args:
        cell: The cell, whose parameters take precedence.
        slot: Index of the worker, counted from 0.
    """
    cpus = placement.slots[slot].cpus
    return {
        "threads": str(intra_op(cell, placement) or len(cpus)),
        "cpus": cpu_list(cpus),
        "workers": str(cell.workers),
        "gpus": str(cell.gpus),
        **{name: axis_text(value) for name, value in cell.parameters},
    }


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
