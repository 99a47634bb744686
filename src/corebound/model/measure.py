"""How a cell is measured, as written, and what a profile makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Protocol

from pydantic import Discriminator, Field, StrictInt, Tag

from corebound.model.part import Part, has_keys

ProfileName = Literal["quick", "nightly"]
Iterations = Annotated[StrictInt, Field(ge=1, le=10_000_000)]
Profiled = Annotated[StrictInt, Field(ge=1, le=1000)]
LaunchCount = Annotated[StrictInt, Field(ge=2, le=1000)]
Seconds = Annotated[float, Field(strict=True, gt=0, le=7 * 24 * 3600)]
Share = Annotated[float, Field(strict=True, gt=0, lt=1)]
Alternating = Literal["auto", "always", "never"]
Relaunches = Annotated[StrictInt, Field(ge=0, le=100)]


def _warmup_form(value: Any) -> str:
    if isinstance(value, WarmupSeconds) or (
        isinstance(value, Mapping) and "seconds" in value and "iterations" not in value
    ):
        return "seconds"
    return "iterations" if has_keys(value) == "keys" else "plain"


class WarmupIterations(Part):
    """Drop this many iterations of every launch."""

    iterations: Annotated[StrictInt, Field(ge=0, le=10_000_000)]


class WarmupSeconds(Part):
    """Drop the iterations that start in the first seconds of every launch."""

    seconds: Annotated[float, Field(strict=True, ge=0, le=24 * 3600)]


Warmup = Annotated[
    Annotated[Literal["auto"], Tag("plain")]
    | Annotated[WarmupIterations, Tag("iterations")]
    | Annotated[WarmupSeconds, Tag("seconds")],
    Discriminator(_warmup_form),
]


class Launches(Part):
    """How often each cell is launched: the launch is the unit of replication."""

    min: LaunchCount = 6
    max: LaunchCount = 30
    until_relative_ci: Share = Field(
        0.02, description="stop when the ratio's interval is this narrow, each way"
    )

    @property
    def follow_spread(self) -> bool:
        """Whether there are as many as it takes to make the interval narrow.

        Narrow intervals are then too frequent, which `stats.compare` answers for.
        """
        return self.max > self.min


class Measure(Part):
    """How a cell is measured."""

    warmup: Warmup = Field("auto", description="auto: found afterwards, launch by launch")
    iterations: Iterations = Field(100, description="timed in every launch, warm-up included")
    launches: Launches = Launches()
    timeout_s: Seconds = Field(600.0, description="deadline of one launch, set-up included")
    margin: Share = Field(
        0.02, description="a change within this share either way counts as equivalent"
    )
    operators: Profiled | None = Field(
        None, description="iterations of a launch of its own under the framework's profiler"
    )
    # A host that disturbs three launches in a row will disturb the next one too: its figures
    # are then kept, and marked, for a page without figures would tell less, and paired
    # launches share much of what disturbs them.
    relaunch_disturbed: Relaunches = Field(
        2,
        description="launches of a cell that are refused and made again if something outside"
        " disturbed them; 0 keeps every one, marked",
    )
    alternate: Alternating = Field(
        "auto",
        description="whether the launches of a block iterate by turns; auto: those of one"
        " worker with one thread, of NumPy or no framework, placed as its baseline is",
    )


class Change(Part):
    """What a profile changes in `measure`; absent keys stay as they are."""

    warmup: Warmup | None = None
    iterations: Iterations | None = None
    launches: Launches | None = None
    timeout_s: Seconds | None = None
    margin: Share | None = None
    operators: Profiled | None = None
    relaunch_disturbed: Relaunches | None = None
    alternate: Alternating | None = None


# What `--profile quick` means where a scenario does not say: enough launches for
# an interval, few enough to wait for.
QUICK_ITERATIONS = 20
QUICK_LAUNCHES = 4


class Measured(Protocol):
    """Whatever says how it is measured, and what profiles change in that: a scenario."""

    @property
    def measure(self) -> Measure:
        """How, without a profile."""
        ...

    @property
    def profiles(self) -> Mapping[ProfileName, Any]:
        """What each profile changes."""
        ...


def measured(scenario: Measured, profile: ProfileName | None) -> Measure:
    """The scenario's `measure`, as the profile changes it; `quick` never asks for more."""
    measure = scenario.measure
    if profile is None:
        return measure
    change = scenario.profiles.get(profile)
    if change is None:
        return _quick(measure) if profile == "quick" else measure
    written = change.model_fields_set & Measure.model_fields.keys()
    update = {name: getattr(change, name) for name in written}
    if change.launches is not None:
        launches = {
            name: getattr(change.launches, name) for name in change.launches.model_fields_set
        }
        update["launches"] = measure.launches.model_copy(update=launches)
    return measure.model_copy(update=update)


def _quick(measure: Measure) -> Measure:
    dropped = measure.warmup.iterations if isinstance(measure.warmup, WarmupIterations) else 0
    launches = {
        "min": min(measure.launches.min, QUICK_LAUNCHES),
        "max": min(measure.launches.max, QUICK_LAUNCHES),
    }
    return measure.model_copy(
        update={
            "iterations": min(measure.iterations, dropped + QUICK_ITERATIONS),
            "launches": measure.launches.model_copy(update=launches),
        }
    )
