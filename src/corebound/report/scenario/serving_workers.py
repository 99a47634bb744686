"""Where a server's workers ran, and how that affected them."""

from __future__ import annotations

from collections.abc import Iterable

from corebound.analysis.server_workers import _ELSEWHERE, _LEVELS, WorkersSeen
from corebound.analysis.wording import Figure, count
from corebound.units import percent

UNAVAILABLE = "unavailable"


def figures(seen: WorkersSeen) -> tuple[Figure, ...]:
    """The values that a page shows of a server configuration's workers.

    Unavailable values are marked as such, unless `reasons` covers them with one reason for all.
    """
    use = ", ".join(f"CPU {cpu} {percent(share, 0)}" for cpu, share in seen.cpu_use.items())
    bound = "of slots core bound"
    if seen.core_bound_workers:
        of_each = ", ".join(percent(share, 0) for share in seen.core_bound_workers)
        bound += f" ({count(len(seen.core_bound_workers), 'worker')}: {of_each})"
    used = Figure(
        value=use or UNAVAILABLE, says="used by workers" if use else "CPU use", known=bool(use)
    )
    overlap = "of busy cores' time with two workers or more"
    remote = "of memory on another node"
    shares = (
        (_figure(seen.core_bound, bound, "core-bound share"), _LEVELS),
        (_figure(seen.memory_bound, "of slots memory bound", "memory-bound share"), _LEVELS),
        (_figure(seen.remote_memory, remote, "share of remote memory"), _ELSEWHERE),
    )
    return (
        used,
        _figure(seen.overlap, overlap, "overlap of workers"),
        *(figure for figure, what in shares if figure.known or what not in seen.unavailable),
    )


def _figure(ratio: float | None, says: str, what: str) -> Figure:
    """A share and its description; if unavailable, `what` names the missing value."""
    known = ratio is not None
    return Figure(value=share(ratio), says=says if known else what, known=known)


def share(ratio: float | None) -> str:
    """A share as a page shows it."""
    return UNAVAILABLE if ratio is None else percent(ratio, 0)


def reasons(every: Iterable[WorkersSeen]) -> str | None:
    """Why values are unavailable, as a sentence; None if all are available."""
    found = {what: why for seen in every for what, why in seen.unavailable.items()}
    said = "; ".join(f"{what} ({why})" for what, why in found.items())
    return f"Unavailable: {said}." if said else None
