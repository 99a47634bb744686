"""A year of nights, each looked at: how many suspicions, how many alarms, how soon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks.simulation.histories import (
    NEAR,
    NOISES,
    STEP,
    TYPICAL_NS,
    Draw,
    course_of,
    find_steps,
    rate,
)
from benchmarks.simulation.verdicts import BASELINE, CELL, MARGIN, summary_of
from corebound.records.decisions import Answer
from corebound.stats.comparison import Comparison, compare
from corebound.stats.history.change_point import ChangePoint
from corebound.stats.history.early_warnings import (
    RERUN_EXPIRES_POINTS,
    early_warning,
    evaluate_commit_comparison,
    evaluate_rerun,
    is_final,
    raises_alarm,
)

YEAR = 365
# With the step, at most.
AFTER = 40
# Of those before the step, so many at most say what is good.
GOOD_NIGHTS = 100
# Two findings of one step may differ by so many nights.
SAME_STEP_NIGHTS = 3
# Of a comparison of the two commits: pairs of launches, and how these differ.
PAIRS = 10
PAIR_SPREAD = 0.015

Array = NDArray[np.float64]
# By the vote alone; the present state measured again; both commits launched in turns.
Way = Literal["vote", "present", "both"]
WAYS: tuple[Way, ...] = ("vote", "present", "both")


class Truth(Struct, frozen=True, kw_only=True):
    """A host's nights: how each went, and the level the commit of the night had."""

    noise: Array
    levels: Array


@dataclass(slots=True)
class Asked:
    """A step that was asked about, what the latest re-run said, and on which night."""

    step: ChangePoint
    said: Answer | None = None
    night: int = -RERUN_EXPIRES_POINTS


@dataclass(slots=True)
class Watch:
    """One way of alarming, over the nights."""

    way: Way
    asked: list[Asked] = field(default_factory=list)
    alarmed: list[tuple[int, ChangePoint]] = field(default_factory=list)

    def look(
        self, step: ChangePoint, night: int, truth: Truth, rng: np.random.Generator, *, voted: bool
    ) -> None:
        said = None if self.way == "vote" else self._said(step, night, truth, rng)
        if raises_alarm(is_accepted=voted, answer=said, is_commit_comparison=self.way == "both"):
            note(self.alarmed, night, step)

    def _said(
        self, step: ChangePoint, night: int, truth: Truth, rng: np.random.Generator
    ) -> Answer | None:
        known = next((one for one in self.asked if same_step(one.step, step)), None)
        if known is None:
            known = Asked(step)
            self.asked.append(known)
        covered = known.step.last_good <= step.last_good and step.first_bad <= known.step.first_bad
        final = known.said is not None and is_final(
            known.said, is_commit_comparison=self.way == "both", is_covered=covered
        )
        if not final and night - known.night >= RERUN_EXPIRES_POINTS:
            again = _present if self.way == "present" else _both
            known.said, known.night = again(step, night, truth, rng), night
            known.step = step
        return known.said


def _present(step: ChangePoint, night: int, truth: Truth, _rng: np.random.Generator) -> Answer:
    """What the host does to this night it may do to the re-run too: that one goes as the next."""
    first = max(0, night + 1 - GOOD_NIGHTS)
    good = (truth.noise + truth.levels)[first : step.last_good + 1]
    again = truth.levels[night] + truth.noise[night + 1]
    return evaluate_rerun(
        np.exp(good).tolist(), math.exp(again), direction=step.direction, ratio=step.ratio
    )


def _both(step: ChangePoint, _night: int, truth: Truth, rng: np.random.Generator) -> Answer:
    """What the night does to both commits is in neither: they are launched in turns."""
    moved = truth.levels[step.first_bad] - truth.levels[step.last_good]
    logs = rng.normal(0, PAIR_SPREAD / math.sqrt(2), (2, PAIRS))
    logs[0] += moved
    bad, good = (
        summary_of(cell, (TYPICAL_NS * np.exp(side)).tolist())
        for cell, side in zip((CELL, BASELINE), logs, strict=True)
    )
    compared: Comparison | None = compare(bad, good, margin=MARGIN)
    assert compared is not None
    return evaluate_commit_comparison(compared, direction=step.direction, ratio=step.ratio)


class Year(Struct, frozen=True):
    """What came of one history.

    Attributes:
        suspected: Steps that a re-run was asked for, in the year without one.
        alarmed: Alarms in the same year, by way.
        until_suspected: Nights with the step until it was suspected; infinite: never.
        until_alarmed: The same until the alarm, by way.
    """

    suspected: int
    alarmed: tuple[int, ...]
    until_suspected: float
    until_alarmed: tuple[float, ...]


def _year(index: int, *, draw: Draw, seed: int) -> Year:
    rng = np.random.default_rng((seed, index, 2))
    nights = YEAR + AFTER
    # One more, for the last night's re-run.
    noise = draw(rng, nights + 1)
    truth = Truth(noise=noise, levels=np.where(np.arange(noise.size) >= YEAR, STEP, 0.0))
    suspected: list[tuple[int, ChangePoint]] = []
    watches = [Watch(way) for way in WAYS]
    history = (truth.noise + truth.levels)[:nights]
    for night in range(nights):
        seen = history[: night + 1]
        found = find_steps(seen)
        voted = tuple(step for step in found if step.status == "new")
        early = early_warning(course_of(seen), found)
        for step in (*voted, *(() if early is None else (early,))):
            note(suspected, night, step)
            for watch in watches:
                watch.look(step, night, truth, rng, voted=step in voted)
        if all(math.isfinite(delay(watch.alarmed)) for watch in watches):
            break
    return Year(
        suspected=sum(night < YEAR for night, _ in suspected),
        alarmed=tuple(sum(night < YEAR for night, _ in watch.alarmed) for watch in watches),
        until_suspected=delay(suspected),
        until_alarmed=tuple(delay(watch.alarmed) for watch in watches),
    )


def same_step(one: ChangePoint, other: ChangePoint) -> bool:
    """Whether two findings are of one step."""
    return one.direction == other.direction and abs(one.at - other.at) <= SAME_STEP_NIGHTS


def delay(seen: Sequence[tuple[int, ChangePoint]]) -> float:
    nights = [
        night
        for night, step in seen
        if night >= YEAR and abs(step.at - YEAR) <= NEAR and step.direction == "up"
    ]
    return min(nights) - YEAR + 1 if nights else math.inf


def note(seen: list[tuple[int, ChangePoint]], night: int, step: ChangePoint) -> None:
    """Once a step, however often it is told."""
    # A step that was told just before the real one came does not hide it.
    if not any(
        same_step(step, other) and (before < YEAR) == (night < YEAR) for before, other in seen
    ):
        seen.append((night, step))


def watched(seed: int, trials: int) -> None:
    """A year without a step, then one of 5 %."""
    print(f"{YEAR} nights without a step, each looked at, {trials} histories; then one of 5 %.")
    print("`re-runs`: steps a year that a re-run is asked for. `alarms`: histories that alarm")
    print("at all in the year, 95 % interval in brackets: by the vote alone; where the")
    print("present state is measured again; where both commits are, in turns.")
    print("`nights`: with the step, until it is suspected and until each alarm: in the middle /")
    print("in 95 of 100.\n")
    heads = ("vote alone", "present again", "both commits")
    print(f"{'noise':<36}{'re-runs':>8}" + "".join(f"{head:>22}" for head in heads), end="")
    print(f"{'suspected':>11}" + "".join(f"{head:>15}" for head in heads))
    with ProcessPoolExecutor() as pool:
        for name, draw in NOISES:
            years = list(pool.map(partial(_year, draw=draw, seed=seed), range(trials)))
            asked = sum(one.suspected for one in years) / trials
            print(f"{name:<36}{asked:>8.2f}", end="")
            for way in range(len(WAYS)):
                print(f"{rate(one.alarmed[way] > 0 for one in years):>22}", end="")
            print(f"{_middle([one.until_suspected for one in years]):>11}", end="")
            for way in range(len(WAYS)):
                print(f"{_middle([one.until_alarmed[way] for one in years]):>15}", end="")
            print(flush=True)
    print()


def _middle(delays: Sequence[float]) -> str:
    """The middle one and that of 95 in 100; one that never came is later than all."""
    ordered = sorted(delays)
    n = len(ordered)
    return f"{ordered[n // 2]:.0f} / {ordered[math.ceil(0.95 * n) - 1]:.0f}"
