"""What every launch comes to, whatever was launched."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from corebound.model.record import Status, Worker
from corebound.model.serving import Served
from corebound.model.telemetry import Counters, HostOverTime


class Outcome(Struct, frozen=True, kw_only=True):
    """What became of a launch; the fields are those of `record.Launch`.

    `trace` is a file: the one that the first worker's profiler left in the
    launch's scratch folder, or wherever it has been moved to since. `served` is
    what a server came to, where one was launched.
    """

    status: Status
    reason: str | None
    mend: str | None
    evidence: tuple[str, ...]
    duration_ns: int
    overhead_ns: int
    looks: int
    look_ns: int
    workers: tuple[Worker, ...]
    strays: tuple[str, ...]
    log: str
    trace: Path | None = None
    served: Served | None = None
    host: HostOverTime | None = None
    counters: Counters | None = None
