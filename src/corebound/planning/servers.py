"""Servers: from a cell's words to the command that starts one, and to the traffic it gets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import get_args

from corebound.model import wire
from corebound.model.measure import Measure, WarmupIterations
from corebound.model.plan import Cell, Framework, Placement, Scalar
from corebound.model.traffic import OPEN, Client, Shape, Traffic

# What a server finds in the folder it is started in.
CONFIGURATION = "config.properties"
STORE = "store"
MODEL = "model.pt"
PORT_FILE = "port"

# The frameworks that are servers; each takes any number of workers.
SERVERS: frozenset[Framework] = frozenset({"torchserve", "litserve"})
# Which of them places its workers itself under `binding: launcher`.
PINNING: frozenset[Framework] = frozenset({"torchserve"})

# Requests sent before those that count, where the scenario does not say: a worker's
# first calls trace and allocate, and Java compiles what it has run some hundred times.
WARM_UP_SHARE = 0.2
LEAST_WARM_UP = 20


# What each kind of traffic has to be told, by the parameter that tells it.
TAKES: Mapping[str, frozenset[Shape]] = {
    "concurrency": frozenset({"closed"}),
    "rate": frozenset(OPEN),
    "query": frozenset({"multi-stream"}),
    "bound_ms": frozenset({"server"}),
}


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
        "corebound.workloads.served_classifier_litserve",
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
    told = {wire.SERVED_IMAGE: image, wire.SERVED_BY: cell.framework}
    return told if threads is None else told | {wire.SERVED_THREADS: str(threads)}


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
