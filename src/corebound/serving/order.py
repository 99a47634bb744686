"""All that one launch of a server needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from corebound.launch.perf import Offer
from corebound.model.plan import Command, Placement
from corebound.model.topology import CpuId
from corebound.model.traffic import Traffic
from corebound.serving.models import Execute
from corebound.serving.server import ServedModel, Server


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingOrder:
    """Everything one launch of a server needs, resolved.

    Attributes:
        placement: A slot for each of the server's workers.
        command: What starts the server.
        model: Finds or makes what is served, given what executes a command.
        server: Makes the server, given that and the folder workers report to.
        traffic: What is sent to it.
        generator: The interpreter that the generator runs in.
        generator_cpus: Where it may run.
        threads_asked: What each worker's pool has to have; None: anything.
        timeout_s: Deadline for all of it, from the start.
        python_path: A folder that holds the package `corebound` and nothing else.
        scratch: An empty folder, which the caller removes.
        counting: What the hardware is to count of it.
    """

    placement: Placement
    command: Command
    model: Callable[[Execute], ServedModel]
    server: Callable[[ServedModel, Path], Server]
    traffic: Traffic
    generator: Path
    generator_cpus: tuple[CpuId, ...]
    threads_asked: int | None
    timeout_s: float
    python_path: Path
    scratch: Path
    counting: Offer = field(default_factory=Offer)
