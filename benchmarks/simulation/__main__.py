"""Simulate and print a table of error rates: `python -m benchmarks.simulation [STUDY]`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.simulation import (
    alarms,
    allocation,
    anchored,
    budgets,
    coverage,
    disturbances,
    few,
    fleets,
    histories,
    host_speeds,
    hosts,
    modes,
    nights,
    percentiles,
    rates,
    recorded,
    runs,
    stopping,
    suites,
    tune,
    turns,
    verdicts,
    votes,
    warm_up,
)


def main() -> None:
    studies: dict[str, Callable[[argparse.Namespace], None]] = {
        "verdicts": _verdicts,
        "coverage": _coverage,
        "few": _few,
        "alarms": _alarms,
        "focus": _focus,
        "disturbances": _disturbances,
        "allocation": _allocation,
        "percentiles": _percentiles,
        "rates": _rates,
        "stopping": _stopping,
        "suites": _suites,
        "history": _history,
        "nights": _nights,
        "anchored": _anchored,
        "turns": _turns,
        "scores": _scores,
        "votes": _votes,
        "runs": _runs,
        "modes": _modes,
        "host-speeds": _host_speeds,
        "tune": _tune,
        "budgets": _budgets,
        "hosts": _hosts,
        "fleets": _fleets,
    }
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.add_argument("study", nargs="?", choices=tuple(studies), default="verdicts")
    parser.add_argument("--trials", type=int, default=1000, help="trials per row of a table")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random numbers")
    parser.add_argument("--jobs", type=int, help="processes of alarms; default: one for each CPU")
    parser.add_argument("--only", choices=("fixed", "adaptive"), help="the table of alarms to make")
    parser.add_argument(
        "--noises",
        type=int,
        nargs="*",
        choices=range(len(alarms.NOISES)),
        metavar="INDEX",
        help="the noises of alarms, by their row from 0",
    )
    parser.add_argument("--labelled", type=Path, help="launches with labels, a gzipped JSON list")
    parser.add_argument("--tcpd", type=Path, help="a clone of alan-turing-institute/TCPD")
    parser.add_argument("--otava", type=Path, help="a clone of apache/otava, which is installed")
    parser.add_argument(
        "--asv", type=Path, action="append", default=[], help="an asv history, a tar file"
    )
    parser.add_argument(
        "--recorded",
        type=Path,
        default=Path("tests/data/runs/changing-load.json"),
        help="runs of an unchanged workload, as in tests/data/runs",
    )
    options = parser.parse_args()
    studies[options.study](options)


def _anchored(options: argparse.Namespace) -> None:
    anchored.found_soon(options.seed, 8 * options.trials)
    anchored.changing_machines(options.seed, options.trials)


def _verdicts(options: argparse.Namespace) -> None:
    rng = np.random.default_rng(options.seed)
    verdicts.compared(rng, options.trials)
    verdicts.ordered(rng, options.trials)
    warm_up.settled(rng, max(options.trials // 20, 1))
    if options.labelled:
        warm_up.labelled(options.labelled)


def _coverage(options: argparse.Namespace) -> None:
    coverage.ratios(np.random.default_rng(options.seed), options.trials)


def _host_speeds(options: argparse.Namespace) -> None:
    host_speeds.weighted(np.random.default_rng(options.seed), options.trials)


def _hosts(options: argparse.Namespace) -> None:
    rng = np.random.default_rng(options.seed)
    hosts.findings(rng, max(options.trials // 10, 1))
    hosts.one_percent(rng, max(options.trials // 10, 1))


def _fleets(options: argparse.Namespace) -> None:
    rng = np.random.default_rng(options.seed)
    fleets.null_fleets(rng, max(options.trials // 10, 1))
    fleets.planted(rng, max(options.trials // 10, 1))


def _few(options: argparse.Namespace) -> None:
    few.held(np.random.default_rng(options.seed), max(options.trials // 10, 1))


def _alarms(options: argparse.Namespace) -> None:
    parts = {"fixed": [False], "adaptive": [True]}
    alarms.alarms(
        options.seed,
        options.trials,
        jobs=options.jobs,
        adaptive=parts.get(options.only, [False, True]),
        noises=options.noises or range(len(alarms.NOISES)),
    )


def _focus(options: argparse.Namespace) -> None:
    alarms.focused(options.seed, options.trials)


def _disturbances(options: argparse.Namespace) -> None:
    disturbances.judged(np.random.default_rng(options.seed), max(options.trials // 200, 1))


def _allocation(options: argparse.Namespace) -> None:
    allocation.allocated(np.random.default_rng(options.seed), 4 * options.trials)


def _percentiles(options: argparse.Namespace) -> None:
    percentiles.tails(np.random.default_rng(options.seed), options.trials)


def _rates(options: argparse.Namespace) -> None:
    rates.rates(options.seed, options.trials)


def _stopping(options: argparse.Namespace) -> None:
    stopping.stopped(np.random.default_rng(options.seed), options.trials)
    stopping.decided(np.random.default_rng(options.seed), max(options.trials // 2, 1))
    stopping.forecast(np.random.default_rng(options.seed), options.trials)


def _suites(options: argparse.Namespace) -> None:
    suites.judged(np.random.default_rng(options.seed), max(options.trials // 20, 1))


def _nights(options: argparse.Namespace) -> None:
    nights.watched(options.seed, max(options.trials // 5, 1))


def _turns(options: argparse.Namespace) -> None:
    turns.by_turns(options.seed, max(options.trials // 5, 1))


def _votes(options: argparse.Namespace) -> None:
    votes.voted(
        options.seed, options.trials, tcpd=options.tcpd, otava=options.otava, asv=options.asv
    )


def _scores(options: argparse.Namespace) -> None:
    histories.scores(options.seed, options.trials)


def _runs(options: argparse.Namespace) -> None:
    runs.recorded(options.recorded)
    runs.simulated(np.random.default_rng(options.seed), options.trials)


def _modes(options: argparse.Namespace) -> None:
    rng = np.random.default_rng(options.seed)
    modes.recognised(rng, 20 * options.trials)
    modes.judged(rng, options.trials)


def _budgets(options: argparse.Namespace) -> None:
    budgets.budgets(np.random.default_rng(options.seed), options.trials)


def _tune(options: argparse.Namespace) -> None:
    tune.confirmed(np.random.default_rng(options.seed), options.trials)
    tune.raced(np.random.default_rng(options.seed), max(options.trials // 5, 1))


def _history(options: argparse.Namespace) -> None:
    histories.found(options.seed, options.trials)
    histories.nightly(options.seed, max(options.trials // 25, 1))
    if options.labelled:
        recorded.launches(np.random.default_rng(options.seed), options.labelled)
    for path in options.asv:
        recorded.asv(np.random.default_rng(options.seed), path)


if __name__ == "__main__":
    main()
