"""What a launch was counted to do: by the hardware where it counts, else by the kernel."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from corebound.launch import perf_csv
from corebound.launch.perf import Offer, Perf
from corebound.model.record import ThreadEvidence
from corebound.model.telemetry import Counters, HostOverTime


def counters(
    offer: Offer,
    perf: Perf | None,
    threads: Iterable[ThreadEvidence],
    host: HostOverTime | None,
) -> Counters:
    """All counts of one launch.

    Args:
        offer: What the host can count.
        perf: What counted that; None where nothing was attached.
        threads: What was seen of the launch's threads.
        host: What was seen of the host: it has the page faults.
    """
    known = tuple(threads)
    minor = host.total("minor_faults") if host else None
    found = Counters(
        source="proc",
        task_clock_ns=_sum(one.run_ns for one in known),
        switches=_sum(part for one in known for part in (one.voluntary, one.involuntary)),
        migrations=_sum(one.migrations for one in known),
        faults=minor,
        unavailable=dict(offer.unavailable),
    )
    if perf is None:
        return found
    counts = perf.close()
    if perf.reason is not None:
        return replace(found, unavailable={**offer.unavailable, "hardware counters": perf.reason})
    fields = perf_csv.fields_of(counts)
    fields["unavailable"] = {**offer.unavailable, **fields["unavailable"]}
    return replace(found, source="perf", **fields)


def _sum(values: Iterable[int | None]) -> int | None:
    """A sum of what is known; None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None
