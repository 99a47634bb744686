"""Print what was simulated: `python -m benchmarks.simulation [verdicts|history|nights]`."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks.simulation import histories, nights, recorded, verdicts, warm_up


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.simulation", description=__doc__)
    parser.add_argument(
        "what", nargs="?", choices=("verdicts", "history", "nights"), default="verdicts"
    )
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--labelled", type=Path, help="labelled launches, a gzipped JSON list")
    parser.add_argument(
        "--asv", type=Path, action="append", default=[], help="an asv history, a tar file"
    )
    chosen = parser.parse_args()
    rng = np.random.default_rng(chosen.seed)
    if chosen.what == "verdicts":
        verdicts.compared(rng, chosen.trials)
        verdicts.ordered(rng, chosen.trials)
        verdicts.stopped(rng, max(chosen.trials // 4, 1))
        warm_up.settled(rng, max(chosen.trials // 20, 1))
        if chosen.labelled:
            warm_up.labelled(chosen.labelled)
        return
    if chosen.what == "nights":
        nights.watched(chosen.seed, max(chosen.trials // 5, 1))
        return
    histories.found(chosen.seed, chosen.trials)
    histories.nightly(chosen.seed, max(chosen.trials // 25, 1))
    if chosen.labelled:
        recorded.launches(rng, chosen.labelled)
    for path in chosen.asv:
        recorded.asv(rng, path)


if __name__ == "__main__":
    main()
