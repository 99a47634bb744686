"""Build what starts a server, the settings of its workers, and the traffic that it gets."""

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import get_args

from corebound.machine.topology import CpuId
from corebound.scenario.builtin_workloads import VOCABULARY
from corebound.scenario.cell import Cell, Scalar
from corebound.scenario.models import Measure, WarmupIterations
from corebound.scenario.runtimes import Server
from corebound.scenario.server_workload import Requests
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


def server_arguments(cell: Cell, server: Server, python: str, target: str) -> tuple[str, ...]:
    """The arguments that start a cell's server; it runs in the folder that holds its files.

    Args:
        server: How its runtime starts.
        target: What the server runs, as `module:name`.
    """
    if server.start == "script":
        program = str(PurePath(python).with_name(cell.framework))
        files = ("--ts-config", CONFIGURATION, "--model-store", MODEL_STORE)
        return (program, "--start", "--foreground", "--ncs", *files)
    workers = ("--workers", str(cell.workers))
    if server.start == "uvicorn":
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
# The context of a language model of the user's own, if the scenario does not say it: lengths of
# prompts and answers are cut to half of it.
DEFAULT_CONTEXT = 4096
# The variables that tell a server's workers the parameters of the workload.
_VARIABLES = {
    "image": protocol.SERVED_IMAGE,
    "runtime": protocol.SERVED_RUNTIME,
    "context": protocol.SERVED_CONTEXT,
    "slots": protocol.SERVED_SLOTS,
}


def server_environment(cell: Cell, server: Server, threads: int | None) -> dict[str, str]:
    """The environment variables for the workers of a cell's server.

    The number of threads is set in two ways: by the variables that every worker gets, and
    by a call of `torch.set_num_threads`, as in the study.
    """
    parameters = dict(cell.parameters)
    variables = {
        variable: str(parameters[name])
        for name, variable in _VARIABLES.items()
        if name in parameters
    }
    if "context" in parameters:
        variables.setdefault(protocol.SERVED_SLOTS, str(DEFAULT_SLOTS))
    if not server.reports_itself:
        variables[protocol.SERVED_BY] = cell.framework
    return variables if threads is None else variables | {protocol.SERVED_THREADS: str(threads)}


def traffic_of(
    cell: Cell, measure: Measure, *, seed: int, requests: Requests | None = None
) -> Traffic:
    """The traffic for a cell's server: one iteration is one request.

    Args:
        measure: How it is measured.
        seed: The seed of arrivals and prompts.
        requests: What a server of the user's own is asked; None for one that is built in.

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
        streaming=_streaming(parameters, requests),
    )


def _streaming(parameters: Mapping[str, Scalar], requests: Requests | None) -> Streaming | None:
    """The texts to send to a language model; None if the server has none.

    A prompt and its answer fit into the context: each has at most half of it.
    """
    if not (requests.streams if requests is not None else "output" in parameters):
        return None
    most = int(parameters.get("context", DEFAULT_CONTEXT)) // 2
    spread = float(parameters.get("spread", 0.0))

    def lengths(name: str) -> Lengths:
        return Lengths(median=min(int(parameters.get(name, 1)), most), spread=spread, most=most)

    return Streaming(
        prompt_tokens=lengths("prompt"),
        output_tokens=lengths("output"),
        vocabulary=VOCABULARY,
        model=requests.model if requests is not None else None,
        is_chat=requests is not None and requests.protocol == "openai-chat",
        has_bodies=requests is not None and requests.body is not None,
        first_token_bound_ms=_number(parameters, "first_token_ms"),
        per_token_bound_ms=_number(parameters, "per_token_ms"),
    )


def _integer(parameters: Mapping[str, Scalar], name: str) -> int | None:
    return int(parameters[name]) if name in parameters else None


def _number(parameters: Mapping[str, Scalar], name: str) -> float | None:
    return float(parameters[name]) if name in parameters else None
