"""Collect the operator profiles of a run's launches."""

from __future__ import annotations

from collections.abc import Iterable

from corebound.records.launch_record import Launch, OperatorProfile
from corebound.stats.interference import is_spoilt

# For each profiled launch: its cell's id, and the profile of each of its workers.
Profiles = tuple[tuple[str, tuple[OperatorProfile, ...]], ...]


def profiles_of(launches: Iterable[Launch]) -> Profiles:
    """The profiles of a run's `ok` launches that nothing outside disturbed, in their order."""
    return tuple(
        (launch.cell.id, found)
        for launch in launches
        if launch.kind == "profile" and launch.status == "ok" and not is_spoilt(launch)
        for found in [tuple(one.profile for one in launch.workers if one.profile is not None)]
        if found
    )
