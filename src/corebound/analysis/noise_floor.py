"""The noise floor beside a verdict: what this host cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterable

from corebound.records.calibration import Calibration, Noise
from corebound.records.run_record import Run, ScenarioSource
from corebound.stats.noise_floor import lock_digest
from corebound.units import percent


def calibration_for(
    calibrations: Iterable[Calibration], run: Run, source: ScenarioSource
) -> Calibration | None:
    """The latest calibration that is of the same as a run's figures of a scenario.

    The same host, scenario and profile, and of the calibrated cell's environment the same
    packages; any other would be another's noise.
    """
    alike = [
        one
        for one in calibrations
        if one.host == run.host.id
        and one.sha256 == source.sha256
        and one.scenario == source.document.get("name")
        and one.profile == run.profile
        and one.lock == lock_digest(run.environments, one.environment)
    ]
    return max(alike, key=lambda one: (one.at, one.run), default=None)


def noise_at(calibration: Calibration, launches: int) -> Noise:
    """What holds for so many launches: the nearest count that is not more, else the fewest."""
    fewer = [one for one in calibration.noise if one.launches <= launches]
    return max(fewer, key=lambda one: one.launches) if fewer else calibration.noise[0]


def noise_words(calibration: Calibration | None, *, launches: int) -> str:
    """The noise floor in a sentence; empty where it is not known.

    Args:
        calibration: Of the same as what stands beside it.
        launches: How many of each the verdict rests on.
    """
    if calibration is None:
        return ""
    known = noise_at(calibration, launches)
    sees = (
        "no slowdown up to tenfold is found"
        if known.detectable_ratio is None
        else f"a slowdown of {percent(known.detectable_ratio)} is found nine times in ten"
    )
    return (
        f"Noise floor ±{percent(known.floor_ratio)} with {known.launches} launches of each,"
        f" measured {calibration.at[:10]} by comparing the baseline with itself: {sees}."
    )


def floors(calibrations: Iterable[Calibration], run: Run, *, launches: int) -> tuple[str, ...]:
    """The noise floor of each of a run's scenarios that was calibrated: `resnet50: Noise …`.

    Args:
        calibrations: All there are.
        run: The run.
        launches: How many of each a comparison with it rests on at the least.
    """
    every = tuple(calibrations)
    found = ((source, calibration_for(every, run, source)) for source in run.scenarios)
    return tuple(
        f"{source.document['name']}: {noise_words(one, launches=launches)}"
        for source, one in found
        if one is not None
    )
