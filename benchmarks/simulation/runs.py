"""Two runs of the same thing: how often `compare` calls them different, and what it can see.

Recorded runs are judged with what was known before the later one began. Simulated ones have
levels and launches that vary by so much.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.simulation.histories import rate
from benchmarks.simulation.verdicts import BASELINE, CELL, MARGIN, TYPICAL_NS, summary_of
from corebound.stats.between_runs import BetweenRuns, EarlierRun, between_runs
from corebound.stats.comparison import Comparison, compare

# Of so many runs in the beginning one way of judging learns, and judges only those after them.
LEARNED = 5
LAUNCHES = 10
_FAR_S = 30 * 60


class Run(Struct, frozen=True, kw_only=True):
    """One cell in one run: when it began, its launches' medians, and what delayed each."""

    at_s: float
    medians_ns: tuple[float, ...]
    delays: tuple[float, ...]

    @property
    def earlier(self) -> EarlierRun:
        """As what a later comparison learns from."""
        return EarlierRun(
            logs=tuple(math.log(ns) for ns in self.medians_ns),
            commit="a",
            delay=sum(self.delays) / len(self.delays),
        )


class Judged(Struct, frozen=True, kw_only=True):
    """Two runs of one cell and what is said of them; `neighbours` if none lies between."""

    comparison: Comparison
    apart_s: float
    neighbours: bool

    @property
    def differs(self) -> bool:
        """Whether they are called different."""
        return self.comparison.verdict in {"faster", "slower"}

    @property
    def reach(self) -> float:
        """How far the interval reaches either way, as a share."""
        bounds = self.comparison.interval
        return bounds.relative_half_width if bounds else math.inf


def load(path: Path) -> list[list[Run]]:
    """Each cell's runs, oldest first; a run without two launches of it is left out."""
    cells: dict[str, list[Run]] = {}
    for one in json.loads(path.read_text()):
        at_s = datetime.fromisoformat(one["at"]).timestamp()
        for name, launches in one["cells"].items():
            if len(launches) >= 2:
                medians_ns, delays = zip(*launches, strict=True)
                cells.setdefault(name, []).append(
                    Run(at_s=at_s, medians_ns=medians_ns, delays=delays)
                )
    return list(cells.values())


def by_launches_alone(runs: Sequence[Run]) -> Iterator[Judged]:
    """All pairs as before: by Welch's t test of the launches."""
    alike = BetweenRuns(variance=0.0, freedom=1.0, runs=0, whole=0.0)
    for one, other in itertools.combinations(range(len(runs)), 2):
        pair = [replace(run, delays=(0.0,)) for run in (runs[one], runs[other])]
        yield _judged(pair[0], pair[1], alike, neighbours=other == one + 1)


def without_history(runs: Sequence[Run]) -> Iterator[Judged]:
    """All pairs, each as if nothing else were known."""
    for one, other in itertools.combinations(range(len(runs)), 2):
        yield _judged(runs[one], runs[other], between_runs([]), neighbours=other == one + 1)


def after_the_first(runs: Sequence[Run]) -> Iterator[Judged]:
    """All pairs of later runs, by what the first ones showed."""
    between = between_runs([run.earlier for run in runs[:LEARNED]])
    for one, other in itertools.combinations(range(LEARNED, len(runs)), 2):
        yield _judged(runs[one], runs[other], between, neighbours=other == one + 1)


def as_time_goes(runs: Sequence[Run]) -> Iterator[Judged]:
    """Each run with every earlier one, by all others before it, as `compare` does."""
    for other in range(LEARNED + 1, len(runs)):
        for one in range(other):
            past = [run.earlier for at, run in enumerate(runs[:other]) if at != one]
            between = between_runs(past)
            yield _judged(runs[one], runs[other], between, neighbours=other == one + 1)


WAYS = {
    "by their launches alone": by_launches_alone,
    "without a history": without_history,
    f"learned from the first {LEARNED} runs": after_the_first,
    "learned from all runs before": as_time_goes,
}


def recorded(path: Path) -> None:
    """How often recorded runs of the same are called different, near and far apart."""
    cells = load(path)
    print(f"{len(cells)} cells, {max(map(len, cells))} runs: pairs of runs called different,")
    print("and how far the interval reaches either way, in the middle.\n")
    print(f"{'':<32}{'all':>28}{'neighbours':>28}{'30 minutes apart':>28}{'reach':>7}")
    for name, way in WAYS.items():
        judged = [one for runs in cells for one in way(runs)]
        parts = (
            judged,
            [one for one in judged if one.neighbours],
            [one for one in judged if one.apart_s >= _FAR_S],
        )
        reach = np.median([one.reach for one in judged])
        print(f"{name:<32}{''.join(f'{_told(part):>28}' for part in parts)}{reach:>7.0%}")
    print()


def simulated(rng: np.random.Generator, trials: int) -> None:
    """False alarms and slowdowns found between runs whose levels vary, by how many are known."""
    print(f"{LAUNCHES} launches of each run, which differ by 1 %; {trials} trials.\n")
    print(
        f"{'runs differ by':>15}{'earlier runs':>14}{'alarms':>22}{'5 %':>8}{'20 %':>8}{'reach':>8}"
    )
    for spread in (0.0, 0.005, 0.02):
        for earlier in (None, 0, 5, 10, 20):
            found = {
                slowdown: [_trial(rng, spread, earlier, slowdown) for _ in range(trials)]
                for slowdown in (0.0, 0.05, 0.2)
            }
            alarms = rate(one.differs for one in found[0.0])
            shares = [
                np.mean([one.comparison.verdict == "slower" for one in found[slowdown]])
                for slowdown in (0.05, 0.2)
            ]
            reach = np.median([one.reach for one in found[0.0]])
            told = "launches alone" if earlier is None else earlier
            print(
                f"{spread:>15.1%}{told:>16}{alarms:>22}"
                f"{shares[0]:>8.0%}{shares[1]:>8.0%}{reach:>8.1%}",
                flush=True,
            )
    print()


def _trial(rng: np.random.Generator, spread: float, earlier: int | None, slowdown: float) -> Judged:
    past = [_run(rng, spread, 0.0).earlier for _ in range(earlier or 0)]
    between = BetweenRuns(variance=0.0, freedom=1.0, runs=0, whole=0.0)
    return _judged(
        _run(rng, spread, 0.0),
        _run(rng, spread, slowdown),
        between if earlier is None else between_runs(past),
        neighbours=True,
    )


def _run(rng: np.random.Generator, spread: float, slowdown: float) -> Run:
    level = rng.normal(0, spread) + math.log1p(slowdown)
    medians_ns = TYPICAL_NS * np.exp(level + rng.normal(0, 0.01, LAUNCHES))
    return Run(at_s=0.0, medians_ns=tuple(medians_ns.tolist()), delays=(0.0,) * LAUNCHES)


def _judged(before: Run, after: Run, between: BetweenRuns, *, neighbours: bool) -> Judged:
    sides = []
    for cell, run in ((CELL, after), (BASELINE, before)):
        plain = summary_of(cell, run.medians_ns)
        delay = sum(run.delays) / len(run.delays)
        sides.append(
            replace(plain, launches=tuple(replace(one, delay=delay) for one in plain.launches))
        )
    found = compare(*sides, margin=MARGIN, between=between)
    assert found is not None
    return Judged(comparison=found, apart_s=abs(after.at_s - before.at_s), neighbours=neighbours)


def _told(judged: Iterable[Judged]) -> str:
    every = [one.differs for one in judged]
    return f"{rate(every)} of {len(every)}"
