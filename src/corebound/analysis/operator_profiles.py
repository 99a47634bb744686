"""The operator profiles of a scenario's cells, as far as they can be used."""

from __future__ import annotations

from msgspec import Struct

from corebound.analysis.scenario_result import ScenarioResult
from corebound.records.launch_record import Launch, OperatorProfile
from corebound.scenario.cell import Cell
from corebound.stats.interference import is_spoilt
from corebound.stats.intervals import Interval


class Profiled(Struct, frozen=True, kw_only=True):
    """A cell's profile: that of its first worker.

    Attributes:
        disturbed: Whether it was disturbed from outside so much that no sentence may use it.
        others: The profiles of its other workers, and of comparable earlier runs.
        launches: The number of launches that all of them come from.
        measured: The interval of `measured_ns`.
    """

    cell: Cell
    launch: Launch
    profile: OperatorProfile
    measured_ns: float | None
    measured: Interval | None
    others: tuple[OperatorProfile, ...]
    launches: int
    disturbed: bool


def profiled(study: ScenarioResult) -> tuple[Profiled, ...]:
    """The cells with a profile, in the order of the file."""
    found = []
    for launch in study.profiles:
        profile = launch.workers[0].profile if launch.workers else None
        if launch.status == "ok" and profile is not None:
            known = study.find(launch.cell)
            before = [own for cell, own in study.profiles_before if cell == launch.cell.id]
            found.append(
                Profiled(
                    cell=launch.cell,
                    launch=launch,
                    profile=profile,
                    measured_ns=known.summary.median_ns if known else None,
                    measured=known.summary.interval if known else None,
                    others=(
                        *(one.profile for one in launch.workers[1:] if one.profile is not None),
                        *(profile for own in before for profile in own),
                    ),
                    launches=1 + len(before),
                    disturbed=is_spoilt(launch),
                )
            )
    return tuple(found)


def _attempt(launch: Launch) -> int:
    return launch.attempt
