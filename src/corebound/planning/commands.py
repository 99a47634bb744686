"""Build the exact command and environment that start a worker or a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import get_args

from msgspec.structs import replace

from corebound.machine.topology import CpuId, cpu_list
from corebound.planning.models import Command, Placement, Slot
from corebound.scenario.builtin_workloads import LAUNCHERS, SERVERS, VOCABULARY
from corebound.scenario.cell import Cell, Scalar
from corebound.scenario.models import Measure, WarmupIterations
from corebound.scenario.traffic import Client, Lengths, Shape, Streaming, Traffic
from corebound.worker import protocol

# The files that a server finds in its working directory.
CONFIGURATION = "config.properties"
MODEL_STORE = "store"
MODEL_FILE = "model"
PORT_FILE = "port"


# Warm-up requests, if the scenario does not set their number: a worker's first calls trace
# and allocate, and Java compiles code after it has run some hundred times.
WARM_UP_SHARE = 0.2
LEAST_WARM_UP = 20


_SHAPES: Mapping[str, Shape] = {shape: shape for shape in get_args(Shape)}
_CLIENTS: Mapping[str, Client] = {client: client for client in get_args(Client)}


# uvicorn reads its port from its environment. It closes connections that were idle for 5 s by
# default, just when a slow generator may use them, and restarts workers that do not answer a
# health check for 5 s, which happens on a busy host.
_UVICORN_OPTIONS = (
    *("--factory", "--lifespan", "on", "--http", "httptools", "--no-access-log"),
    *("--log-level", "warning", "--timeout-keep-alive", "75"),
    *("--timeout-worker-healthcheck", "300"),
)


def server_arguments(cell: Cell, python: str, target: str) -> tuple[str, ...]:
    """The arguments that start a cell's server; it runs in the folder that holds its files.

    Args:
        cell: The cell.
        python: The interpreter of its environment.
        target: What the server runs, as `module:name`.
    """
    if cell.framework == "torchserve":
        program = str(PurePath(python).with_name("torchserve"))
        files = ("--ts-config", CONFIGURATION, "--model-store", MODEL_STORE)
        return (program, "--start", "--foreground", "--ncs", *files)
    workers = ("--workers", str(cell.workers))
    if cell.framework == "fastapi":
        return (python, "-m", "uvicorn", target, *_UVICORN_OPTIONS, *workers)
    files = ("--model", MODEL_FILE, "--port-file", PORT_FILE)
    return (python, "-m", target.partition(":")[0], *files, *workers)


def torchserve_workers(workers: int, pinned: Sequence[Sequence[CpuId]] | None) -> dict[str, str]:
    """What TorchServe's configuration says about its workers.

    Args:
        workers: The number of worker processes.
        pinned: The CPUs that its CPU launcher binds each worker to, the same number for each;
            None: do not use the CPU launcher.
    """
    settings = {"default_workers_per_model": str(workers)}
    if pinned is not None:
        # Without a list, the launcher uses core numbers as CPU numbers. These differ if SMT
        # siblings have adjacent numbers. It also fails if there are more workers than cores.
        cpus = ",".join(str(cpu) for slot in pinned for cpu in slot)
        each = len(pinned[0])
        settings["cpu_launcher_enable"] = "true"
        settings["cpu_launcher_args"] = f"--core-list {cpus} --ncores-per-instance {each}"
    return settings


# The texts that a server of a language model writes at once.
DEFAULT_SLOTS = 4
# The variables that tell a server's workers the parameters of the workload.
_VARIABLES = {
    "image": protocol.SERVED_IMAGE,
    "runtime": protocol.SERVED_RUNTIME,
    "context": protocol.SERVED_CONTEXT,
    "slots": protocol.SERVED_SLOTS,
}


def server_environment(cell: Cell, placement: Placement) -> dict[str, str]:
    """The environment variables for the workers of a cell's server.

    The number of threads is set in two ways: by the variables that every worker gets, and
    by a call of `torch.set_num_threads`, as in the study.
    """
    threads = placement.threads if cell.threads.intra_op is None else cell.threads.intra_op
    parameters = dict(cell.parameters)
    variables = {
        variable: str(parameters[name])
        for name, variable in _VARIABLES.items()
        if name in parameters
    }
    if "context" in parameters:
        variables.setdefault(protocol.SERVED_SLOTS, str(DEFAULT_SLOTS))
    # The distribution of llama.cpp's server has another name, which its worker reports.
    if cell.framework != "llama-server":
        variables[protocol.SERVED_BY] = cell.framework
    return variables if threads is None else variables | {protocol.SERVED_THREADS: str(threads)}


def traffic_of(cell: Cell, measure: Measure, *, seed: int) -> Traffic:
    """The traffic for a cell's server: one iteration is one request.

    Raises:
        ValueError: the cell's parameters are not a valid traffic; the message says why.
        KeyError: its `traffic` or its `client` is not one of the choices.
    """
    parameters = dict(cell.parameters)
    warmup = measure.warmup
    if isinstance(warmup, WarmupIterations):
        warmup_requests = warmup.iterations
    else:
        warmup_requests = max(LEAST_WARM_UP, round(measure.requests * WARM_UP_SHARE))
    return Traffic(
        shape=_SHAPES[str(parameters.get("traffic", "closed"))],
        requests=measure.requests,
        warmup_requests=warmup_requests,
        concurrency=_integer(parameters, "concurrency"),
        rate_per_s=_number(parameters, "rate"),
        samples_a_query=_integer(parameters, "query"),
        bound_ms=_number(parameters, "bound_ms"),
        client=_CLIENTS[str(parameters.get("client", "corebound"))],
        seed=seed,
        # The launch's deadline also limits each request.
        timeout_s=measure.timeout_s,
        streaming=_streaming(parameters),
    )


def _streaming(parameters: Mapping[str, Scalar]) -> Streaming | None:
    """The texts to send to a language model; None if the server has none.

    A prompt and its answer fit into the context: each has at most half of it.
    """
    if "output" not in parameters:
        return None
    most = int(parameters["context"]) // 2
    spread = float(parameters.get("spread", 0.0))

    def lengths(name: str) -> Lengths:
        return Lengths(median=min(int(parameters[name]), most), spread=spread, most=most)

    return Streaming(
        prompt_tokens=lengths("prompt"),
        output_tokens=lengths("output"),
        vocabulary=VOCABULARY,
        first_token_bound_ms=_number(parameters, "first_token_ms"),
        per_token_bound_ms=_number(parameters, "per_token_ms"),
    )


def _integer(parameters: Mapping[str, Scalar], name: str) -> int | None:
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
    openmp: str | None = None,
    target: str = "",
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

    Returns:
        An argument list, never passed to a shell, and the variables to add to the
        environment, by name. The cell's own variables come last and take precedence.
    """
    words = binder(placement, placement.slots[slot])
    env = _environment(cell, placement, placement.slots[slot], gpus)
    if cell.framework in SERVERS:
        server_env = server_environment(cell, placement)
        return Command(
            argv=(*words, *server_arguments(cell, python, target)), env=(*server_env.items(), *env)
        )
    launcher = (python, *LAUNCHERS[cell.framework]) if cell.binding.mode == "launcher" else ()
    return Command(argv=(*words, *launcher, python, *worker), env=_preloading(env, openmp))


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
        return placement.threads if cell.framework == "tensorflow" else None
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
    if cell.framework == "tensorflow":
        counts["TF_NUM_INTRAOP_THREADS"] = intra_op(cell, placement)
        counts["TF_NUM_INTEROP_THREADS"] = inter_op(cell, placement)
    if cell.framework == "jax":
        counts["NPROC"] = intra_op(cell, placement)
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
