"""From the launches of two copies of a cell to what they say of the host's noise."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import msgspec

from corebound.model.calibration import CALIBRATION_SCHEMA, Calibration
from corebound.model.measure import measured
from corebound.model.plan import Cell
from corebound.model.record import Launch
from corebound.model.run import EnvironmentLock, Run, ScenarioSource
from corebound.model.scenario import Scenario
from corebound.stats.calibration import LEAST_PAIRS, noise, spread_ratio
from corebound.stats.compare import compare
from corebound.stats.interval import geometric_mean
from corebound.stats.summary import summarise

# The axis that tells the copies apart, and what it calls them.
COPY = "copy"
COPIES = ("a", "b")


def calibrated(run: Run, source: ScenarioSource, launches: Sequence[Launch]) -> Calibration | None:
    """What a calibrating run says of one of its scenarios.

    Args:
        run: The run.
        source: The scenario, one of the run's.
        launches: The run's launches of that scenario, of cells that differ in `copy` alone.

    Returns:
        The calibration; None where fewer than `LEAST_PAIRS` blocks hold an `ok` launch of
        both copies, or their figures have no ratio.

    Raises:
        pydantic.ValidationError: the recorded scenario is none this version can read.
    """
    scenario = Scenario.model_validate(source.document)
    measure = measured(scenario, run.profile)
    sides = [
        [one for one in launches if one.kind == "measure" and dict(one.cell.axes)[COPY] == copy]
        for copy in COPIES
    ]
    if not all(sides):
        return None
    one, other = (summarise(side[0].cell, side, measure.warmup) for side in sides)
    compared = compare(one, other, margin=measure.margin)
    if compared is None or compared.interval is None or compared.pairs < LEAST_PAIRS:
        return None
    ratios = [ratio for _, ratio in compared.per_block]
    cell = sides[0][0].cell
    return Calibration(
        schema=CALIBRATION_SCHEMA,
        run=run.id,
        at=run.started_at,
        host=run.host.id,
        host_name=run.host.name,
        kernel=run.host.kernel,
        environment=cell.environment,
        lock=lock_digest(run.environments, cell.environment),
        scenario=scenario.name,
        sha256=source.sha256,
        profile=run.profile,
        cell=_key(cell),
        blocks=compared.pairs,
        pair_spread_ratio=spread_ratio(ratios),
        launch_spread_ratio=geometric_mean(
            [spread_ratio([launch.median_ns for launch in side.launches]) for side in (one, other)]
        ),
        speedup_ratio=compared.speedup_ratio,
        interval=(compared.interval.low, compared.interval.high),
        verdict=compared.verdict,
        noise=tuple(
            noise(
                ratios,
                launches=count,
                margin=measure.margin,
                adaptive=measure.launches.follow_spread,
                seed=run.seed,
            )
            for count in sorted({measure.launches.min, measure.launches.max})
        ),
    )


def lock_digest(locks: Sequence[EnvironmentLock], environment: str) -> str:
    """What an environment held, hashed; empty where that is not known."""
    lock = next((one for one in locks if one.name == environment), None)
    if lock is None:
        return ""
    held = msgspec.json.encode((lock.python, lock.packages))
    return hashlib.sha256(held).hexdigest()[:12]


def _key(cell: Cell) -> str:
    """The key of the cell that the copies are of."""
    return ",".join(f"{axis}={value}" for axis, value in cell.axes if axis != COPY) or "default"
