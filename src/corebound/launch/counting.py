"""What a launch was counted to do: by the hardware where it counts, else by the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from corebound.launch import perf_csv
from corebound.launch.perf import Offer
from corebound.model.record import ThreadEvidence
from corebound.model.telemetry import Counters, HostOverTime, known_sum


class Counted(Struct, frozen=True, kw_only=True):
    """All counts of one launch.

    Attributes:
        whole: Of all its processes.
        workers: Of each worker and what it started, by the hardware; empty where that
            counted nothing, for which `whole` has the reason.
    """

    whole: Counters
    workers: tuple[Counters, ...] = ()


class Counting(Protocol):
    """Something that counts, as `perf.Perf` does."""

    @property
    def reason(self) -> str | None:
        """Why it counted nothing; None where it did."""

    def close(self) -> dict[str, perf_csv.Count]:
        """End it; what it counted, by event."""


def counted(
    offer: Offer,
    perfs: Sequence[Counting],
    threads: Sequence[Sequence[ThreadEvidence]],
    host: HostOverTime | None,
) -> Counted:
    """End the counting, and put together what came of it.

    Args:
        offer: What the host can count.
        perfs: What counted that: of each worker, then of the launch's other
            processes; empty where nothing was attached.
        threads: What was seen of each worker's threads.
        host: What was seen of the host: it has the page faults.
    """
    known = [thread for one in threads for thread in one]
    minor = host.total("minor_faults") if host else None
    whole = replace(_of_kernel(known, offer), faults=minor)
    if not perfs:
        return Counted(whole=whole)
    each = [perf.close() for perf in perfs]
    reason = next((perf.reason for perf in perfs if perf.reason is not None), None)
    if reason is not None:
        unavailable = {**offer.unavailable, "hardware counters": reason}
        return Counted(whole=replace(whole, unavailable=unavailable))
    fields = perf_csv.fields_of(perf_csv.together(each))
    fields["unavailable"] = {**offer.unavailable, **fields["unavailable"]}
    return Counted(
        whole=replace(whole, source="perf", **fields),
        workers=tuple(
            replace(_of_kernel(one, offer), source="perf", **perf_csv.fields_of(counts))
            for one, counts in zip(threads, each[: len(threads)], strict=True)
        ),
    )


def _of_kernel(threads: Sequence[ThreadEvidence], offer: Offer) -> Counters:
    return Counters(
        source="proc",
        task_clock_ns=known_sum(one.run_ns for one in threads),
        switches=known_sum(part for one in threads for part in (one.voluntary, one.involuntary)),
        migrations=known_sum(one.migrations for one in threads),
        unavailable=dict(offer.unavailable),
    )
