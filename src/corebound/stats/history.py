"""A history that grows by one night at a time, at the cost of a window."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from corebound.stats.change_points import THRESHOLD, Night, find_steps, same_step
from corebound.stats.step import Step
from corebound.stats.suspicion import early_step

# What is looked at every night. A step that is older has long been found, and a level
# from longer ago is not what tonight is compared with.
WINDOW_NIGHTS = 100
# So near to the window's beginning a step may no longer be found, for want of nights
# before it, and is not thereby refuted.
_EDGE_NIGHTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """All that has to be kept from one night to the next.

    Attributes:
        nights: The last ones, at most `WINDOW_NIGHTS`.
        passed: How many nights came before them.
        steps: Those found within the window, with indices into the whole history.
        past: Those that the window has left behind.
        suspect: A step that the last two nights make one suspect, too early for a vote.
        threshold: Least change that matters, as in `find_steps`.
    """

    nights: tuple[Night, ...] = ()
    passed: int = 0
    steps: tuple[Step, ...] = ()
    past: tuple[Step, ...] = ()
    suspect: Step | None = None
    threshold: float = THRESHOLD


def extended(history: History, night: Night) -> History:
    """Add a night and look at the window again.

    The steps are those that `find_steps` finds in the window's nights, given the
    steps already known. What it costs depends on the window, not on the history.
    """
    nights = (*history.nights, night)[-WINDOW_NIGHTS:]
    passed = history.passed + len(history.nights) + 1 - len(nights)
    before = (*history.past, *history.steps)
    known = tuple(_moved(step, -passed) for step in before if step.at >= passed)
    found = find_steps(nights, threshold=history.threshold, known=known)
    steps = tuple(_moved(step, passed) for step in found)
    early = early_step(nights, found, threshold=history.threshold)
    past = tuple(
        step if step.status == "recovered" else replace(step, status="old")
        for step in before
        if step.at < passed + _EDGE_NIGHTS and not any(same_step(step, kept) for kept in steps)
    )
    return replace(
        history,
        nights=nights,
        passed=passed,
        steps=steps,
        past=past,
        suspect=None if early is None else _moved(early, passed),
    )


def extended_by(history: History, nights: Iterable[Night]) -> History:
    """Add several nights, one after the other."""
    for night in nights:
        history = extended(history, night)
    return history


def _moved(step: Step, by: int) -> Step:
    return replace(
        step, at=step.at + by, last_good=step.last_good + by, first_bad=step.first_bad + by
    )
