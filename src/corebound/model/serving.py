"""What a launch of a server came to, beside what is seen of its workers."""

from __future__ import annotations

from msgspec import Struct

from corebound.model.bounds import Count, Signed
from corebound.model.topology import CpuId
from corebound.model.traffic import Answered, Traffic, Warmed


class Served(Struct, frozen=True, kw_only=True):
    """One launch of a server under one traffic.

    Attributes:
        startup_ns: From its start until all workers were ready.
        stop_ns: From being told to end until its last process was gone.
        traffic: What was sent.
        generator_cpus: Where the generator was allowed to run.
        apart: Whether none of them is one of the server's.
        warmed, answered: What came of the requests.
        cpu_ns: CPU time of all of the server's processes while it was measured.
        restarts: Processes of workers that were new at the end of the measurement.
    """

    startup_ns: Count
    stop_ns: Count
    traffic: Traffic
    generator_cpus: tuple[CpuId, ...]
    apart: bool
    warmed: Warmed
    answered: Answered
    cpu_ns: Signed
    restarts: Count
