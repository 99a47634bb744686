"""Nights on machines that change: histories of ratios to an anchor beside absolute histories."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import date, timedelta
from functools import partial

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks.simulation.histories import NEAR, TYPICAL_NS, Array, rate
from benchmarks.simulation.nights import Truth, Watch
from benchmarks.simulation.verdicts import BASELINE, CELL, MARGIN, summary_of
from corebound.records.history import (
    ANCHOR_UNIT,
    ANCHORED,
    MACHINE_KEY,
    HistoryPoint,
    HistoryPoints,
    Series,
)
from corebound.records.run_record import Commit
from corebound.stats.comparison import compare
from corebound.stats.distributions import normal_quantile
from corebound.stats.history.change_point import ChangePoint
from corebound.stats.history.incremental import SegmentCache
from corebound.stats.history.regressions import Change, analyse
from corebound.stats.launch_summary import value_ends, value_of

NIGHTS = 60
# The first night of the planted changes, counted from 0.
CHANGE = 40
SIZE, ONE_KIND_SIZE = math.log(1.03), math.log(1.04)
# Benchmarks: those that change everywhere, those that change on the second kind only, and the rest.
EVERYWHERE, ON_ONE_KIND, UNCHANGED = 4, 4, 12
BENCHMARKS = EVERYWHERE + ON_ONE_KIND + UNCHANGED
KINDS = ("EPYC 7763", "Xeon 8370C")
# A change is found soon within this many nights.
SOON = 3
PAIRS = 10
# Standard deviations, of logarithms: of a launch; of a benchmark's time between machines of one
# kind, in all benchmarks of a night and in each; of the ratio to the anchor between kinds.
LAUNCH, MACHINE, OWN, KIND = 0.015, 0.02, 0.01, 0.003
# Shares of nights with a noisy neighbour, without a machine, and of launches that fail.
NEIGHBOUR, OUTAGE, FAILURE = 0.15, 0.05, 0.02
# How much slower and how much more variable launches beside a neighbour are.
SLOWED, UNSTEADY = (1.05, 1.3), 3.0


class Outcome(Struct, frozen=True, kw_only=True):
    """What one kind of history told of sixty nights.

    Attributes:
        false: Alarms that are of no planted change.
        suspected: Changes that were to be confirmed.
        delays: For each change everywhere, nights until it was told; infinite: never.
        told: For each change on one kind, nights until it was told.
        as_such: Whether it was told of that kind only, with its own size, on the last night.
    """

    false: int
    suspected: int
    delays: tuple[float, ...]
    told: tuple[float, ...]
    as_such: tuple[bool, ...]


class Nights(Struct, frozen=True, kw_only=True):
    """The truth of all nights: (nights,) kinds, -1 for an outage; (nights, benchmarks) the rest.

    `levels` are HEAD's, by kind; `host` are the logarithms of the machine's speed that night.
    """

    kinds: Array
    levels: Array
    host: Array
    spread: Array
    fails: NDArray[np.bool_]


def _nights(rng: np.random.Generator) -> Nights:
    kinds = rng.integers(0, 2, NIGHTS)
    kinds[rng.random(NIGHTS) < OUTAGE] = -1
    # The nights with the change have machines of both kinds, in any order.
    kinds[[CHANGE, CHANGE + 1, CHANGE + 2]] = rng.permutation(np.array([0, 1, rng.integers(0, 2)]))
    levels = np.zeros((2, NIGHTS, BENCHMARKS))
    levels += rng.normal(0, KIND, (2, 1, BENCHMARKS))
    levels[:, CHANGE:, :EVERYWHERE] += SIZE
    levels[1, CHANGE:, EVERYWHERE : EVERYWHERE + ON_ONE_KIND] += ONE_KIND_SIZE
    beside = rng.random(NIGHTS) < NEIGHBOUR
    slowed = np.where(beside, np.log(rng.uniform(*SLOWED, NIGHTS)), 0.0)
    host = (rng.normal(0, MACHINE, NIGHTS) + slowed)[:, None]
    host = host + rng.normal(0, OWN, (NIGHTS, BENCHMARKS))
    host += np.outer(kinds == 1, np.log(rng.uniform(1.5, 1.9, BENCHMARKS)))
    return Nights(
        kinds=kinds.astype(np.float64),
        levels=levels,
        host=host,
        spread=np.where(beside, UNSTEADY, 1.0) * LAUNCH,
        fails=rng.random((NIGHTS, BENCHMARKS)) < FAILURE,
    )


def _point(night: int, kind: int, key: str) -> HistoryPoint:
    at = f"{date(2026, 1, 1) + timedelta(days=night)}T02:00:00Z"
    return HistoryPoint(
        at=at,
        run=f"{night}",
        commit=Commit(sha=f"{night:040x}", subject="", committed_at=at, dirty=False),
        value=None,
        bounds=None,
        launches=(),
        missing="failed: no reason",
        environment_key=((key, KINDS[kind]),),
    )


def _measure(
    rng: np.random.Generator, nights: Nights, benchmarks: int = BENCHMARKS
) -> tuple[list[list[HistoryPoint]], ...]:
    """The points of each benchmark, anchored and absolute, from the same launches of HEAD."""
    anchored: list[list[HistoryPoint]] = [[] for _ in range(benchmarks)]
    absolute: list[list[HistoryPoint]] = [[] for _ in range(benchmarks)]
    for night in np.flatnonzero(nights.kinds >= 0).tolist():
        kind = int(nights.kinds[night])
        for benchmark in range(benchmarks):
            # An own key, so that the absolute history has a segment for each kind, as today.
            ratio, alone = _point(night, kind, MACHINE_KEY), _point(night, kind, "CPUs")
            if not nights.fails[night, benchmark]:
                logs = rng.normal(nights.host[night, benchmark], nights.spread[night], (2, PAIRS))
                logs[0] += nights.levels[kind, night, benchmark]
                head, pinned = (
                    summary_of(cell, (TYPICAL_NS * np.exp(side)).tolist())
                    for cell, side in zip((CELL, BASELINE), logs, strict=True)
                )
                alone = _with(alone, value_of(head), value_ends(head))
                compared = compare(head, pinned, margin=MARGIN)
                assert compared is not None
                ratio = _with(ratio, compared.slowdown_ratio, compared.slowdown_interval)
            anchored[benchmark].append(ratio)
            absolute[benchmark].append(alone)
    return anchored, absolute


def _with(
    point: HistoryPoint, value: float | None, bounds: tuple[float, float] | None
) -> HistoryPoint:
    return HistoryPoint(
        at=point.at,
        run=point.run,
        commit=point.commit,
        value=value,
        bounds=bounds,
        launches=(),
        missing=None,
        environment_key=point.environment_key,
    )


def _watch(
    rng: np.random.Generator,
    nights: Nights,
    points: Sequence[Sequence[HistoryPoint]],
    series_of: Callable[[int, Sequence[HistoryPoint]], Series],
) -> tuple[Outcome, Outcome]:
    """Look at all histories every night: with `--confirm`, which compares commits, and without."""
    both, alone = ([Watch(method) for _ in range(BENCHMARKS)] for method in ("both", "vote"))
    cache = SegmentCache()
    measured = [int(point.run or 0) for point in points[0]]
    last: Sequence[Change] = ()
    for at, night in enumerate(measured):
        suite = [series_of(index, own[: at + 1]) for index, own in enumerate(points)]
        found = analyse(suite, cache=cache)
        last = found.changes
        kind = int(nights.kinds[night])
        for change in (*found.changes, *found.early_warnings):
            if change.change_point.status != "new":
                continue
            index = int(change.series.scenario)
            truth = Truth(
                noise=np.zeros(at + 1), levels=nights.levels[kind, measured[: at + 1], index]
            )
            for watches in (both, alone):
                watches[index].look(change.change_point, at, truth, rng, voted=change.clear)
    since = measured.index(CHANGE)

    def is_planted(index: int, step: ChangePoint) -> bool:
        is_there = abs(step.at - since) <= NEAR or step.last_good < since <= step.first_bad
        return index < EVERYWHERE + ON_ONE_KIND and is_there

    def delay(watch: Watch, index: int) -> float:
        told = [at for at, step in watch.alarmed if is_planted(index, step)]
        return measured[min(told)] - CHANGE + 1 if told else math.inf

    def is_as_such(index: int) -> bool:
        own = [
            change
            for change in last
            if int(change.series.scenario) == index and abs(change.change_point.at - since) <= NEAR
        ]
        # Within a third of its size, where the average of both kinds would be half of it.
        return bool(own) and all(
            change.only_on == KINDS[1:]
            and abs(math.log(change.change_point.ratio) / ONE_KIND_SIZE - 1) < 1 / 3
            for change in own
        )

    one_kind = range(EVERYWHERE, EVERYWHERE + ON_ONE_KIND)

    def outcome(watches: Sequence[Watch]) -> Outcome:
        return Outcome(
            false=sum(
                not is_planted(index, step)
                for index, watch in enumerate(watches)
                for _, step in watch.alarmed
            ),
            suspected=sum(len(watch.suspects) for watch in watches),
            delays=tuple(delay(watches[index], index) for index in range(EVERYWHERE)),
            told=tuple(delay(watches[index], index) for index in one_kind),
            as_such=tuple(is_as_such(index) for index in one_kind),
        )

    return outcome(both), outcome(alone)


def _series(
    index: int, points: Sequence[HistoryPoint], *, host: str = ANCHORED, unit: str = ANCHOR_UNIT
) -> Series:
    return Series(
        project=None,
        host=host,
        host_name=host,
        scenario=str(index),
        title="",
        cell="default",
        unit=unit,
        margin=MARGIN,
        reproduce=(),
        points=HistoryPoints.of(points),
    )


def _trial(trial: int, *, seed: int) -> tuple[Outcome, ...]:
    rng = np.random.default_rng((seed, trial, 3))
    nights = _nights(rng)
    anchored, absolute = _measure(rng, nights)
    return (
        *_watch(rng, nights, anchored, _series),
        *_watch(rng, nights, absolute, partial(_series, host="one", unit="ns")),
    )


def _oracle(rng: np.random.Generator) -> float:
    """How often a change is found soon by who knows its level before and how precise nights are.

    Each night it is the likelihood of all nights since, with one false alarm in all nights of all
    benchmarks, and at least the margin.
    """
    shape = (100_000, SOON)
    errors = np.where(rng.random(shape) < NEIGHBOUR, UNSTEADY, 1.0) * LAUNCH * math.sqrt(2 / PAIRS)
    weights = np.where(rng.random(shape) < FAILURE, 0.0, errors**-2)
    known = weights.cumsum(axis=1)
    sums = (weights * rng.normal(SIZE, errors)).cumsum(axis=1)
    clear = sums > normal_quantile(1 - 1 / (NIGHTS * BENCHMARKS)) * np.sqrt(known)
    return float(np.mean(np.any(clear & (sums >= math.log1p(MARGIN) * known), axis=1)))


def _soon(trial: int, *, seed: int) -> tuple[int, tuple[bool, ...], tuple[bool, ...]]:
    """How many of the nights that count have a noisy neighbour, and which changes are told soon.

    By the search alone, and if suspected changes are confirmed.
    """
    rng = np.random.default_rng((seed, trial, 4))
    nights = _nights(rng)
    anchored, _ = _measure(rng, nights, benchmarks=EVERYWHERE)
    measured = [int(point.run or 0) for point in anchored[0]]
    told: tuple[list[bool], list[bool]] = [], []
    for index, points in enumerate(anchored):
        watches = [Watch("vote"), Watch("both")]
        for night in range(CHANGE + 1, CHANGE + SOON):
            at = measured.index(night)
            levels = nights.levels[int(nights.kinds[night]), measured[: at + 1], index]
            truth = Truth(noise=np.zeros(at + 1), levels=levels)
            found = analyse([_series(index, points[: at + 1])])
            for change in (*found.changes, *found.early_warnings):
                if abs(measured[change.change_point.at] - CHANGE) <= NEAR:
                    for watch in watches:
                        watch.look(change.change_point, at, truth, rng, voted=change.clear)
        for own, watch in zip(told, watches, strict=True):
            own.append(bool(watch.alarmed))
    beside = int(np.count_nonzero(nights.spread[CHANGE : CHANGE + SOON] > LAUNCH))
    return beside, tuple(told[0]), tuple(told[1])


def found_soon(seed: int, trials: int) -> None:
    """Print how many changes are told soon, by how many of these nights have a neighbour."""
    with ProcessPoolExecutor() as pool:
        results = list(pool.map(partial(_soon, seed=seed), range(trials)))
    print(f"A change of 3 % told within {SOON} nights, {trials} trials of {EVERYWHERE} benchmarks,")
    print("by the nights of these that have a noisy neighbour: by the search, and confirmed.\n")
    for name, some in (
        ("any", results),
        *((f"{n}", [each for each in results if each[0] == n]) for n in range(SOON + 1)),
    ):
        alone = rate(hit for _, hits, _ in some for hit in hits)
        both = rate(hit for _, _, hits in some for hit in hits)
        print(f"{name:<6}{len(some):>6}{alone:>22}{both:>22}")
    print()


def changing_machines(seed: int, trials: int) -> None:
    """Print what both histories of the same nights tell."""
    print(f"{NIGHTS} nights of {BENCHMARKS} benchmarks, {trials} trials, on two kinds of machines")
    print(f"1.5 to 1.9 times apart. From night {CHANGE} on, {EVERYWHERE} are 3 % slower, and")
    print(
        f"{ON_ONE_KIND} others 4 % slower on one kind. Alarms: false ones in each trial, mean and"
    )
    print(f"most. Suspected: changes that `--confirm` measures. Found: told within {SOON} nights,")
    print("and ever; median and 95th percentile of the nights. One kind: told, and told of that")
    print(f"kind with its own size on the last night. With all known, {SOON} nights would tell of")
    print(f"{_oracle(np.random.default_rng(seed)):.1%}.\n")
    print(f"{'history':<20}{'alarms':>10}{'suspected':>11}{f'in {SOON} nights':>22}", end="")
    print(f"{'ever':>22}{'nights':>10}{'one kind, told':>22}{'as such':>22}")
    with ProcessPoolExecutor() as pool:
        results = list(pool.map(partial(_trial, seed=seed), range(trials)))
    names = [f"{kind}{how}" for kind in ("anchored", "absolute") for how in (", confirmed", "")]
    for name, outcomes in zip(names, zip(*results, strict=True), strict=True):
        false = [each.false for each in outcomes]
        delays = sorted(delay for each in outcomes for delay in each.delays)
        told = [delay for each in outcomes for delay in each.told]
        n = len(delays)
        median, late = delays[n // 2], delays[math.ceil(0.95 * n) - 1]
        alarms = f"{np.mean(false):.2f} / {max(false)}"
        print(
            f"{name:<20}{alarms:>10}{np.mean([each.suspected for each in outcomes]):>11.1f}"
            f"{rate(delay <= SOON for delay in delays):>22}"
            f"{rate(map(math.isfinite, delays)):>22}{f'{median:.0f} / {late:.0f}':>10}"
            f"{rate(map(math.isfinite, told)):>22}"
            f"{rate(hit for each in outcomes for hit in each.as_such):>22}"
        )
    print()
