"""Groups and orders the records of several runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from corebound.records.launch_record import Launch
from corebound.records.run_record import Run

Record = tuple[Run, Sequence[Launch]]


def by_host(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of each host, oldest first; hosts are sorted by id."""
    found: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda one: (one[0].host.id, *moment(one))):
        found.setdefault(record[0].host.id, []).append(record)
    return found


def moment(record: Record) -> tuple[str, str]:
    """The key that orders records in time; the id breaks ties."""
    run, _ = record
    return run.started_at, run.id
