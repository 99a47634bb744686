"""What one profile says of a time, and between what several of the same lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from corebound.model.profile import OperatorProfile
from corebound.model.wire import Operator


def by_type(profile: OperatorProfile) -> dict[str, Operator]:
    """Its operators by their types."""
    return {one.type: one for one in profile.operators}


def together_ns(profile: OperatorProfile, *, types: Sequence[str]) -> float | None:
    """What operators of these types take; None where it has none of them."""
    times_ns = [one.total_ns for one in profile.operators if one.type in types]
    return sum(times_ns) if times_ns else None


def outside_ns(profile: OperatorProfile) -> float | None:
    """An iteration's time in no operator, where that is told."""
    return profile.outside_ns


def step_ns(profile: OperatorProfile) -> float | None:
    """An iteration, where that is told."""
    return profile.step_ns


def phase_ns(profile: OperatorProfile, *, name: str) -> float | None:
    """An iteration's time for this phase, where that is told."""
    return profile.phases.get(name)


def operators_ns(profile: OperatorProfile) -> float:
    """All operators of an iteration."""
    return sum(one.total_ns for one in profile.operators)


def quiet_ns(profile: OperatorProfile) -> int | None:
    """The same where each call is at its shortest, where that is told of all."""
    told = [one.quiet_ns for one in profile.operators if one.quiet_ns is not None]
    return sum(told) if len(told) == len(profile.operators) else None


def span_ns(
    profiles: Sequence[OperatorProfile], of: Callable[[OperatorProfile], float | None]
) -> tuple[float, float] | None:
    """The least and the most over a profile and others like it; None where all say the same.

    What one of the others has not called took it no time; of what the first has not there is none.
    """
    if of(profiles[0]) is None:
        return None
    times_ns = [of(one) or 0.0 for one in profiles]
    ends_ns = min(times_ns), max(times_ns)
    return None if ends_ns[0] == ends_ns[1] else ends_ns
