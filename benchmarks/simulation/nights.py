"""A search every night for a year: early warnings, alarms, and delays."""

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
    find_steps,
    history_of,
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
# Nights with the step, at most.
AFTER = 40
# The level before the step is estimated from at most this many nights.
GOOD_NIGHTS = 100
# Two change points this many nights apart or less count as one step.
SAME_STEP_NIGHTS = 3
# A comparison of two commits: its pairs of launches, and their standard deviation.
PAIRS = 10
PAIR_SPREAD = 0.015

Array = NDArray[np.float64]
# How an alarm is confirmed: by the detectors alone, by a re-run of the present commit, or by a
# comparison of both commits with launches that alternate.
Method = Literal["vote", "present", "both"]
METHODS: tuple[Method, ...] = ("vote", "present", "both")


class Truth(Struct, frozen=True, kw_only=True):
    """The nights of a host: the noise of each, and the level of its commit."""

    noise: Array
    levels: Array


@dataclass(slots=True)
class Suspect:
    """A suspected step, and the answer and night of its latest re-run."""

    step: ChangePoint
    answer: Answer | None = None
    night: int = -RERUN_EXPIRES_POINTS


@dataclass(slots=True)
class Watch:
    """One method of confirming alarms, over the nights."""

    method: Method
    suspects: list[Suspect] = field(default_factory=list)
    alarmed: list[tuple[int, ChangePoint]] = field(default_factory=list)

    def look(
        self, step: ChangePoint, night: int, truth: Truth, rng: np.random.Generator, *, voted: bool
    ) -> None:
        """Decide on one change point of a night; `voted` if the detectors confirm it."""
        answer = None if self.method == "vote" else self._answer(step, night, truth, rng)
        both = self.method == "both"
        if raises_alarm(is_accepted=voted, answer=answer, is_commit_comparison=both):
            note(self.alarmed, night, step)

    def _answer(
        self, step: ChangePoint, night: int, truth: Truth, rng: np.random.Generator
    ) -> Answer | None:
        known = next((suspect for suspect in self.suspects if same_step(suspect.step, step)), None)
        if known is None:
            known = Suspect(step)
            self.suspects.append(known)
        covered = known.step.last_good <= step.last_good and step.first_bad <= known.step.first_bad
        final = known.answer is not None and is_final(
            known.answer, is_commit_comparison=self.method == "both", is_covered=covered
        )
        if not final and night - known.night >= RERUN_EXPIRES_POINTS:
            rerun = _rerun_present if self.method == "present" else _compare_both
            known.answer, known.night = rerun(step, night, truth, rng), night
            known.step = step
        return known.answer


def _rerun_present(
    step: ChangePoint, night: int, truth: Truth, _rng: np.random.Generator
) -> Answer:
    """Re-run the present commit. Noise may persist, so the re-run has the next night's."""
    first = max(0, night + 1 - GOOD_NIGHTS)
    good = (truth.noise + truth.levels)[first : step.last_good + 1]
    again = truth.levels[night] + truth.noise[night + 1]
    return evaluate_rerun(
        np.exp(good).tolist(), math.exp(again), direction=step.direction, ratio=step.ratio
    )


def _compare_both(step: ChangePoint, _night: int, truth: Truth, rng: np.random.Generator) -> Answer:
    """Compare both commits. Their launches alternate, so the night's noise cancels."""
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
    """The result for one history.

    Attributes:
        suspected: The number of suspected steps, each of which needs a re-run, in the year
            without a step.
        alarmed: The number of alarms in the same year, by method.
        until_suspected: Nights with the step until it was suspected; infinite: never.
        until_alarmed: Nights with the step until the alarm, by method.
    """

    suspected: int
    alarmed: tuple[int, ...]
    until_suspected: float
    until_alarmed: tuple[float, ...]


def _year(index: int, *, draw: Draw, seed: int) -> Year:
    rng = np.random.default_rng((seed, index, 2))
    nights = YEAR + AFTER
    # One night more, for the re-run of the last night.
    noise = draw(rng, nights + 1)
    truth = Truth(noise=noise, levels=np.where(np.arange(noise.size) >= YEAR, STEP, 0.0))
    suspected: list[tuple[int, ChangePoint]] = []
    watches = [Watch(method) for method in METHODS]
    history = (truth.noise + truth.levels)[:nights]
    for night in range(nights):
        seen = history[: night + 1]
        found = find_steps(seen)
        voted = tuple(step for step in found if step.status == "new")
        early = early_warning(history_of(seen), found)
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
    """Whether two change points are the same step."""
    return one.direction == other.direction and abs(one.at - other.at) <= SAME_STEP_NIGHTS


def delay(seen: Sequence[tuple[int, ChangePoint]]) -> float:
    """Nights with the step until it is among these change points; infinite if it never is."""
    nights = [
        night
        for night, step in seen
        if night >= YEAR and abs(step.at - YEAR) <= NEAR and step.direction == "up"
    ]
    return min(nights) - YEAR + 1 if nights else math.inf


def note(seen: list[tuple[int, ChangePoint]], night: int, step: ChangePoint) -> None:
    """Add a change point, unless the same step was added before."""
    # A false step just before the real one does not hide it.
    if not any(
        same_step(step, other) and (before < YEAR) == (night < YEAR) for before, other in seen
    ):
        seen.append((night, step))


def watched(seed: int, trials: int) -> None:
    """Print re-runs, false alarms and delays for a year without a step, then one of 5 %."""
    print(f"A search on each of {YEAR} nights without a step, {trials} histories; then one of 5 %.")
    print("`re-runs`: suspected steps per year. Then the share of histories with any alarm in the")
    print("year, with its 95 % interval: by the detectors alone; after a re-run of the present")
    print("commit; after a comparison of both commits. Last, nights with the step until it is")
    print("suspected, and until each alarm: median / 95th percentile.\n")
    heads = ("detectors", "present commit", "both commits")
    print(f"{'noise':<36}{'re-runs':>8}" + "".join(f"{head:>22}" for head in heads), end="")
    print(f"{'suspected':>11}" + "".join(f"{head:>15}" for head in heads))
    with ProcessPoolExecutor() as pool:
        for name, draw in NOISES:
            years = list(pool.map(partial(_year, draw=draw, seed=seed), range(trials)))
            reruns = sum(year.suspected for year in years) / trials
            print(f"{name:<36}{reruns:>8.2f}", end="")
            for method in range(len(METHODS)):
                print(f"{rate(year.alarmed[method] > 0 for year in years):>22}", end="")
            print(f"{_median_and_p95([year.until_suspected for year in years]):>11}", end="")
            for method in range(len(METHODS)):
                print(
                    f"{_median_and_p95([year.until_alarmed[method] for year in years]):>15}", end=""
                )
            print(flush=True)
    print()


def _median_and_p95(delays: Sequence[float]) -> str:
    """Median and 95th percentile; a step that is never found has an infinite delay."""
    ordered = sorted(delays)
    n = len(ordered)
    return f"{ordered[n // 2]:.0f} / {ordered[math.ceil(0.95 * n) - 1]:.0f}"
