"""Comparisons of two runs of an unchanged workload: false alarms and power of `compare`.

Recorded runs are judged with the knowledge before the later one began. Simulated runs have given
variation between runs and between launches.
"""

from __future__ import annotations

import functools
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
from corebound.stats.launch_summary import CellSummary

# One method learns from this many first runs, and judges only those after them.
LEARNED = 5
LAUNCHES = 10
_FAR_S = 30 * 60


class Run(Struct, frozen=True, kw_only=True):
    """One cell in one run: its start, the medians of its launches, and the delay of each."""

    at_s: float
    medians_ns: tuple[float, ...]
    delays: tuple[float, ...]

    @property
    def earlier(self) -> EarlierRun:
        """The run in the form that later comparisons learn from."""
        return EarlierRun(
            logs=tuple(math.log(ns) for ns in self.medians_ns),
            commit="a",
            delay=sum(self.delays) / len(self.delays),
        )


class ComparedRuns(Struct, frozen=True, kw_only=True):
    """The comparison of two runs of one cell; `neighbours` if there is no run between them."""

    comparison: Comparison
    apart_s: float
    neighbours: bool

    @property
    def differs(self) -> bool:
        """Whether the verdict is a difference."""
        return self.comparison.verdict in {"faster", "slower"}

    @property
    def half_width(self) -> float:
        """The half-width of the interval, as a share."""
        bounds = self.comparison.interval
        return bounds.relative_half_width if bounds else math.inf


def load(path: Path) -> list[list[Run]]:
    """The runs of each cell, oldest first, without runs with fewer than two launches of it."""
    cells: dict[str, list[Run]] = {}
    for run in json.loads(path.read_text()):
        at_s = datetime.fromisoformat(run["at"]).timestamp()
        for name, launches in run["cells"].items():
            if len(launches) >= 2:
                medians_ns, delays = zip(*launches, strict=True)
                cells.setdefault(name, []).append(
                    Run(at_s=at_s, medians_ns=medians_ns, delays=delays)
                )
    return list(cells.values())


def by_launches_alone(runs: Sequence[Run]) -> Iterator[ComparedRuns]:
    """Compare all pairs by Welch's t test of their launches."""
    alike = BetweenRuns(variance=0.0, freedom=1.0, runs=0, whole=0.0)
    for first, second in itertools.combinations(range(len(runs)), 2):
        pair = [replace(run, delays=(0.0,)) for run in (runs[first], runs[second])]
        yield _compare(pair[0], pair[1], alike, neighbours=second == first + 1)


def without_history(runs: Sequence[Run]) -> Iterator[ComparedRuns]:
    """Compare all pairs, each without any earlier run."""
    for first, second in itertools.combinations(range(len(runs)), 2):
        yield _compare(runs[first], runs[second], between_runs([]), neighbours=second == first + 1)


def after_the_first(runs: Sequence[Run]) -> Iterator[ComparedRuns]:
    """Compare all pairs of later runs, with the variation of the first runs."""
    between = between_runs([run.earlier for run in runs[:LEARNED]])
    for first, second in itertools.combinations(range(LEARNED, len(runs)), 2):
        yield _compare(runs[first], runs[second], between, neighbours=second == first + 1)


def as_time_goes(runs: Sequence[Run]) -> Iterator[ComparedRuns]:
    """Compare each run with every earlier one, with the variation of all other earlier runs."""
    for second in range(LEARNED + 1, len(runs)):
        for first in range(second):
            past = [run.earlier for at, run in enumerate(runs[:second]) if at != first]
            between = between_runs(past)
            yield _compare(runs[first], runs[second], between, neighbours=second == first + 1)


METHODS = {
    "by their launches alone": by_launches_alone,
    "without a history": without_history,
    f"learned from the first {LEARNED} runs": after_the_first,
    "learned from all runs before": as_time_goes,
}


def recorded(path: Path) -> None:
    """Print how often recorded runs of an unchanged workload differ, by their distance."""
    cells = load(path)
    print(
        f"{len(cells)} cells, {max(map(len, cells))} runs: pairs of runs with a difference, and the"
    )
    print("median half-width of the interval.\n")
    print(f"{'':<32}{'all':>28}{'neighbours':>28}{'30 minutes apart':>28}{'width':>7}")
    for name, method in METHODS.items():
        pairs = [pair for runs in cells for pair in method(runs)]
        groups = (
            pairs,
            [pair for pair in pairs if pair.neighbours],
            [pair for pair in pairs if pair.apart_s >= _FAR_S],
        )
        width = np.median([pair.half_width for pair in pairs])
        rates = "".join(f"{_rate_of(group):>28}" for group in groups)
        print(f"{name:<32}{rates}{width:>7.0%}")
    print()


def simulated(rng: np.random.Generator, trials: int) -> None:
    """Print false alarms and power by the variation between runs and the number of known runs."""
    print(f"{LAUNCHES} launches per run, which differ by 1 %; {trials} trials.\n")
    print(
        f"{'runs differ by':>15}{'earlier runs':>14}{'alarms':>22}{'5 %':>8}{'20 %':>8}{'width':>8}"
    )
    for spread in (0.0, 0.005, 0.02):
        for earlier in (None, 0, 5, 10, 20):
            found = {
                slowdown: [_trial(rng, spread, earlier, slowdown) for _ in range(trials)]
                for slowdown in (0.0, 0.05, 0.2)
            }
            alarms = rate(pair.differs for pair in found[0.0])
            shares = [
                np.mean([pair.comparison.verdict == "slower" for pair in found[slowdown]])
                for slowdown in (0.05, 0.2)
            ]
            width = np.median([pair.half_width for pair in found[0.0]])
            known = "launches alone" if earlier is None else earlier
            print(
                f"{spread:>15.1%}{known:>16}{alarms:>22}"
                f"{shares[0]:>8.0%}{shares[1]:>8.0%}{width:>8.1%}",
                flush=True,
            )
    print()


def _trial(
    rng: np.random.Generator, spread: float, earlier: int | None, slowdown: float
) -> ComparedRuns:
    past = [_run(rng, spread, 0.0).earlier for _ in range(earlier or 0)]
    between = BetweenRuns(variance=0.0, freedom=1.0, runs=0, whole=0.0)
    return _compare(
        _run(rng, spread, 0.0),
        _run(rng, spread, slowdown),
        between if earlier is None else between_runs(past),
        neighbours=True,
    )


def _run(rng: np.random.Generator, spread: float, slowdown: float) -> Run:
    level = rng.normal(0, spread) + math.log1p(slowdown)
    medians_ns = TYPICAL_NS * np.exp(level + rng.normal(0, 0.01, LAUNCHES))
    return Run(at_s=0.0, medians_ns=tuple(medians_ns.tolist()), delays=(0.0,) * LAUNCHES)


def _compare(before: Run, after: Run, between: BetweenRuns, *, neighbours: bool) -> ComparedRuns:
    sides = _side(after, is_baseline=False), _side(before, is_baseline=True)
    comparison = compare(*sides, margin=MARGIN, between=between)
    assert comparison is not None
    return ComparedRuns(
        comparison=comparison, apart_s=abs(after.at_s - before.at_s), neighbours=neighbours
    )


@functools.cache
def _side(run: Run, *, is_baseline: bool) -> CellSummary:
    plain = summary_of(BASELINE if is_baseline else CELL, run.medians_ns)
    delay = sum(run.delays) / len(run.delays)
    return replace(plain, launches=tuple(replace(each, delay=delay) for each in plain.launches))


def _rate_of(pairs: Iterable[ComparedRuns]) -> str:
    differs = [pair.differs for pair in pairs]
    return f"{rate(differs)} of {len(differs)}"
