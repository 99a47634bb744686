"""Do compare-commits and bisect name what was planted, and nothing else?

A repository of 30 commits, three of them slower by 3, 5 and 10 %, the others refactorings that
change nothing. Run on a machine that is otherwise quiet, from the root of the repository:

    python -m benchmarks.commits [--folder DIR] [--launches 30] [--pairs 6] [--json]

With `--folder` the repository and its environments are kept, and a study that was cut short
goes on. Exit code 1 if anything was told wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import repositories  # test code, which is not a package
from support.repositories import Toy  # as above

PLANTED = {6: 0.03, 14: 0.05, 23: 0.10}
COMMITS = 30


def main() -> int:
    """Run the study; print a line for each question."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--folder", type=Path)
    options.add_argument("--launches", type=int, default=30)
    options.add_argument("--pairs", type=int, default=6, help="of neighbours without a change")
    options.add_argument("--json", action="store_true")
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        toy = _toy(asked.folder or Path(scratch) / "toy", asked.launches)
        answers = []
        for answer in _study(toy, asked.pairs):
            answers.append(answer)
            if not asked.json:
                print(f"{'right' if answer['right'] else 'WRONG':6}{answer['said']}", flush=True)
    wrong = sum(not answer["right"] for answer in answers)
    print(json.dumps(answers, indent=1) if asked.json else f"{len(answers)} asked, {wrong} wrong")
    return 1 if wrong else 0


def _toy(folder: Path, launches: int) -> Toy:
    if not (folder / ".git").is_dir():
        return repositories.make_toy(
            folder, commits=COMMITS, slower=PLANTED, least=6, most=launches, width=0.005
        )
    line = repositories.git(folder, "rev-list", "--reverse", "main").split()
    return Toy(folder=folder, commits=tuple(line))


def _study(toy: Toy, pairs: int) -> Iterator[dict[str, Any]]:
    """Every planted commit with the one before; neighbours that are equal; searches."""
    for place, share in PLANTED.items():
        yield _compared(toy, place - 1, place, share)
    equal = [place for place in range(1, COMMITS) if place not in PLANTED]
    for place in equal[:: max(1, len(equal) // max(pairs, 1))][:pairs]:
        yield _compared(toy, place - 1, place, 0.0)
    for place in PLANTED:
        # Each between others that change nothing, so that there is one right answer.
        below = max((other for other in PLANTED if other < place), default=0)
        above = min((other for other in PLANTED if other > place), default=COMMITS) - 1
        yield _searched(toy, below, above, {place})
    yield _searched(toy, 0, COMMITS - 1, set(PLANTED))
    yield _searched(toy, 24, COMMITS - 1, set())


def _compared(toy: Toy, base: int, head: int, share: float) -> dict[str, Any]:
    told = _corebound(toy, "compare-commits", toy.commits[base], toy.commits[head], "--resume")
    (cell,) = told["cells"]
    low, high = cell["slowdown_interval"] or (float("nan"), float("nan"))
    right = cell["is_regression"] if share else cell["verdict"] in {"equivalent", "undecided"}
    return {
        "said": f"{base}..{head}, planted {share:.0%}: {cell['verdict']},"
        f" {cell['slowdown_ratio']:.3f} ({low:.3f}–{high:.3f}), {cell['pairs']} pairs",
        "right": right,
        **cell,
    }


def _searched(toy: Toy, good: int, bad: int, planted: set[int]) -> dict[str, Any]:
    told = _corebound(
        toy, "bisect", toy.commits[good], toy.commits[bad], "--scenario", "scenarios/toy.yaml"
    )
    places = {toy.commits.index(one["sha"]) for one in told["suspects"]}
    # A range that holds it is no wrong answer, though not the best.
    right = bool(places & planted) if planted else not places
    return {
        "said": f"{good}..{bad}, planted {sorted(planted)}: {told['outcome']} {sorted(places)},"
        f" {told['slowdown_ratio']:.3f} {told['slowdown_interval']}, {told['tests']} tests",
        "right": right,
        **told,
    }


def _corebound(toy: Toy, *words: str) -> dict[str, Any]:
    done = subprocess.run(
        (sys.executable, "-m", "corebound", *words, "--json"),
        cwd=toy.folder,
        stdout=subprocess.PIPE,
        check=False,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


if __name__ == "__main__":
    sys.exit(main())
