"""Print what was simulated: `python -m benchmarks.simulation [WHAT]`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.simulation import (
    coverage,
    histories,
    nights,
    percentiles,
    recorded,
    runs,
    stopping,
    suites,
    turns,
    verdicts,
    warm_up,
)


def main() -> None:
    studies: dict[str, Callable[[argparse.Namespace], None]] = {
        "verdicts": _verdicts,
        "coverage": _coverage,
        "percentiles": _percentiles,
        "stopping": _stopping,
        "suites": _suites,
        "history": _history,
        "nights": _nights,
        "turns": _turns,
        "scores": _scores,
        "runs": _runs,
    }
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.add_argument("what", nargs="?", choices=tuple(studies), default="verdicts")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--labelled", type=Path, help="labelled launches, a gzipped JSON list")
    parser.add_argument(
        "--asv", type=Path, action="append", default=[], help="an asv history, a tar file"
    )
    parser.add_argument(
        "--recorded",
        type=Path,
        default=Path("tests/data/runs/changing-load.json"),
        help="runs of the same, as in tests/data/runs",
    )
    chosen = parser.parse_args()
    studies[chosen.what](chosen)


def _verdicts(chosen: argparse.Namespace) -> None:
    rng = np.random.default_rng(chosen.seed)
    verdicts.compared(rng, chosen.trials)
    verdicts.ordered(rng, chosen.trials)
    warm_up.settled(rng, max(chosen.trials // 20, 1))
    if chosen.labelled:
        warm_up.labelled(chosen.labelled)


def _coverage(chosen: argparse.Namespace) -> None:
    coverage.ratios(np.random.default_rng(chosen.seed), chosen.trials)


def _percentiles(chosen: argparse.Namespace) -> None:
    percentiles.tails(np.random.default_rng(chosen.seed), chosen.trials)


def _stopping(chosen: argparse.Namespace) -> None:
    stopping.stopped(np.random.default_rng(chosen.seed), chosen.trials)
    stopping.forecast(np.random.default_rng(chosen.seed), chosen.trials)


def _suites(chosen: argparse.Namespace) -> None:
    suites.judged(np.random.default_rng(chosen.seed), max(chosen.trials // 20, 1))


def _nights(chosen: argparse.Namespace) -> None:
    nights.watched(chosen.seed, max(chosen.trials // 5, 1))


def _turns(chosen: argparse.Namespace) -> None:
    turns.by_turns(chosen.seed, max(chosen.trials // 5, 1))


def _scores(chosen: argparse.Namespace) -> None:
    histories.scores(chosen.seed, chosen.trials)


def _runs(chosen: argparse.Namespace) -> None:
    runs.recorded(chosen.recorded)
    runs.simulated(np.random.default_rng(chosen.seed), chosen.trials)


def _history(chosen: argparse.Namespace) -> None:
    histories.found(chosen.seed, chosen.trials)
    histories.nightly(chosen.seed, max(chosen.trials // 25, 1))
    if chosen.labelled:
        recorded.launches(np.random.default_rng(chosen.seed), chosen.labelled)
    for path in chosen.asv:
        recorded.asv(np.random.default_rng(chosen.seed), path)


if __name__ == "__main__":
    main()
