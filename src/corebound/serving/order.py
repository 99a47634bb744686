"""All that one launch of a server needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from corebound.launch.order import AnyOrder
from corebound.model.plan import Command
from corebound.model.topology import CpuId
from corebound.model.traffic import Traffic
from corebound.serving.models import Execute
from corebound.serving.server import ServedModel, Server


class ServingOrder(AnyOrder, frozen=True, kw_only=True):
    """What one launch of a server and of what loads it needs.

    Attributes:
        command: What starts the server.
        model: Finds or makes what is served, given what executes a command.
        server: Makes the server, given that and the folder workers report to.
        traffic: What is sent to it.
        generator: The interpreter that the generator runs in.
        generator_cpus: Where it may run.
    """

    command: Command
    model: Callable[[Execute], ServedModel]
    server: Callable[[ServedModel, Path], Server]
    traffic: Traffic
    generator: Path
    generator_cpus: tuple[CpuId, ...]
