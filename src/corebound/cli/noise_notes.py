"""The noise floor beside what two sides of a scenario came to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec.structs import replace

from corebound.analysis.noise_floor import floors
from corebound.records import documents
from corebound.records.run_record import EnvironmentLock, Run, ScenarioSource
from corebound.scenario.matrix import PROJECT, is_project


def beside(
    records: Path,
    run: Run,
    plain: Iterable[ScenarioSource],
    *,
    launches: int,
    own_margin: bool = True,
) -> tuple[str, ...]:
    """The noise floor of each scenario that was calibrated: `parsing: Noise floor …`.

    Without launches there is no verdict that it could stand beside.

    Args:
        records: The folder of records.
        run: The one that compares.
        plain: Its scenarios as they were before they were given two sides: so they are
            calibrated.
        launches: How many of each side what it stands beside rests on at the least.
        own_margin: Whether they were judged by the margin that they were calibrated with.
    """
    if not launches:
        return ()
    as_calibrated = replace(
        run, scenarios=tuple(plain), environments=_plain_environments(run.environments)
    )
    kept, _ = documents.read_calibrations(records)
    told = floors(kept, as_calibrated, launches=launches)
    more = "" if own_margin else " That is by the scenario's own margin."
    return tuple(f"{one}{more}" for one in told)


def _plain_environments(locks: Sequence[EnvironmentLock]) -> tuple[EnvironmentLock, ...]:
    """Those of commits as what they are environments of; where packages differ, the base's."""
    return tuple(replace(one, name=PROJECT) if is_project(one.name) else one for one in locks)
