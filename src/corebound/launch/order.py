"""What every launch is given, whatever it launches."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, field

from corebound.launch.perf import Offer
from corebound.model.plan import Placement


class AnyOrder(Struct, frozen=True, kw_only=True):
    """What one launch needs, resolved: nothing is looked up after this.

    Attributes:
        placement: Slots, one a worker.
        threads_asked: What each worker's pool has to have; None: anything.
        timeout_s: Deadline for all of it, from the start.
        python_path: A folder that holds the package `corebound` and nothing else.
        scratch: An empty folder, which the caller removes.
        counting: What the hardware is to count of it.
    """

    placement: Placement
    threads_asked: int | None
    timeout_s: float
    python_path: Path
    scratch: Path
    counting: Offer = field(default_factory=Offer)
