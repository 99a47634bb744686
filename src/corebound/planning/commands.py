"""The exact command and environment that start a worker or a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import get_args

from corebound.machine.topology import cpu_list
from corebound.planning.slots import Command, Placement, Slot
from corebound.scenario.builtin_workloads import LAUNCHERS, SERVERS
from corebound.scenario.cell import Cell, Scalar
from corebound.scenario.models import Measure, WarmupIterations
from corebound.scenario.traffic import Client, Shape, Traffic
from corebound.worker import protocol

# What a server finds in the folder it is started in.
CONFIGURATION = "config.properties"
STORE = "store"
MODEL = "model.pt"
PORT_FILE = "port"


# Requests sent before those that count, where the scenario does not say: a worker's
# first calls trace and allocate, and Java compiles what it has run some hundred times.
WARM_UP_SHARE = 0.2
LEAST_WARM_UP = 20


_SHAPES: Mapping[str, Shape] = {shape: shape for shape in get_args(Shape)}
_CLIENTS: Mapping[str, Client] = {client: client for client in get_args(Client)}


def server_words(cell: Cell, python: str) -> tuple[str, ...]:
    """The words that start a cell's server, in the folder that its files are put in."""
    if cell.framework == "torchserve":
        program = str(PurePath(python).with_name("torchserve"))
        files = ("--ts-config", CONFIGURATION, "--model-store", STORE)
        return (program, "--start", "--foreground", "--ncs", *files)
    files = ("--model", MODEL, "--port-file", PORT_FILE)
    return (
        python,
        "-m",
        "corebound.worker.workloads.served_classifier_litserve",
        *files,
        "--workers",
        str(cell.workers),
    )


def server_environment(cell: Cell, placement: Placement) -> dict[str, str]:
    """What the workers of a cell's server are told through their environment.

    The number of threads goes two ways: by the variables that any worker gets, and by
    a call of `torch.set_num_threads`, as the study has it.
    """
    threads = placement.threads if cell.threads.intra_op is None else cell.threads.intra_op
    image = str(dict(cell.parameters)["image"])
    told = {protocol.SERVED_IMAGE: image, protocol.SERVED_BY: cell.framework}
    return told if threads is None else told | {protocol.SERVED_THREADS: str(threads)}


def traffic_of(cell: Cell, measure: Measure, *, seed: int) -> Traffic:
    """What is sent to a cell's server: an iteration is a request.

    Raises:
        ValueError: its parameters do not make a traffic; the text says why.
        KeyError: its traffic or its client is none of the choices.
    """
    parameters = dict(cell.parameters)
    warmup = measure.warmup
    if isinstance(warmup, WarmupIterations):
        warm = warmup.iterations
    else:
        warm = max(LEAST_WARM_UP, round(measure.iterations * WARM_UP_SHARE))
    return Traffic(
        shape=_SHAPES[str(parameters.get("traffic", "closed"))],
        requests=measure.iterations,
        warmup_requests=warm,
        concurrency=_whole(parameters, "concurrency"),
        rate_per_s=_number(parameters, "rate"),
        samples_a_query=_whole(parameters, "query"),
        bound_ms=_number(parameters, "bound_ms"),
        client=_CLIENTS[str(parameters.get("client", "corebound"))],
        seed=seed,
        # It is the launch's deadline that ends what takes too long.
        timeout_s=measure.timeout_s,
    )


def _whole(parameters: Mapping[str, Scalar], name: str) -> int | None:
    return int(parameters[name]) if name in parameters else None


def _number(parameters: Mapping[str, Scalar], name: str) -> float | None:
    return float(parameters[name]) if name in parameters else None


WORKER = ("-m", "corebound.worker")


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
