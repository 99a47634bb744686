"""Check compare-commits and bisect on a repository with known slowdowns.

It has 30 commits; three of them are slower by 3, 5 and 10 %, the others change nothing. Run on a
quiet machine, from the root of the repository:

    python -m benchmarks.commits [--folder DIR] [--launches 30] [--pairs 6] [--json]

With `--folder`, the repository and its environments are kept, and an interrupted study resumes.
The exit code is 1 if any result is wrong.
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

SLOWDOWNS = {6: 0.03, 14: 0.05, 23: 0.10}
COMMITS = 30


def main() -> int:
    """Run the study; print a line for each result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, help="keep the repository in this folder")
    parser.add_argument("--launches", type=int, default=30, help="most launches of each commit")
    parser.add_argument("--pairs", type=int, default=6, help="number of pairs without a change")
    parser.add_argument("--json", action="store_true", help="print every result as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        toy = _toy(options.folder or Path(scratch) / "toy", options.launches)
        results = []
        for result in _run_study(toy, options.pairs):
            results.append(result)
            if not options.json:
                print(f"{'right' if result['right'] else 'WRONG':6}{result['text']}", flush=True)
    wrong = sum(not result["right"] for result in results)
    if options.json:
        print(json.dumps(results, indent=1))
    else:
        print(f"{len(results)} results, {wrong} wrong")
    return 1 if wrong else 0


def _toy(folder: Path, launches: int) -> Toy:
    if not (folder / ".git").is_dir():
        return repositories.make_toy(
            folder, commits=COMMITS, slower=SLOWDOWNS, least=6, most=launches, width=0.005
        )
    line = repositories.git(folder, "rev-list", "--reverse", "main").split()
    return Toy(folder=folder, commits=tuple(line))


def _run_study(toy: Toy, pairs: int) -> Iterator[dict[str, Any]]:
    """Compare each slower commit with its parent, and equal neighbours; then bisect."""
    for place, share in SLOWDOWNS.items():
        yield _compare(toy, place - 1, place, share)
    equal = [place for place in range(1, COMMITS) if place not in SLOWDOWNS]
    for place in equal[:: max(1, len(equal) // max(pairs, 1))][:pairs]:
        yield _compare(toy, place - 1, place, 0.0)
    for place in SLOWDOWNS:
        # The range has no other slower commit, so there is one correct result.
        below = max((other for other in SLOWDOWNS if other < place), default=0)
        above = min((other for other in SLOWDOWNS if other > place), default=COMMITS) - 1
        yield _bisect(toy, below, above, {place})
    yield _bisect(toy, 0, COMMITS - 1, set(SLOWDOWNS))
    yield _bisect(toy, 24, COMMITS - 1, set())


def _compare(toy: Toy, base: int, head: int, share: float) -> dict[str, Any]:
    output = _corebound(toy, "compare-commits", toy.commits[base], toy.commits[head], "--resume")
    (cell,) = output["cells"]
    low, high = cell["slowdown_interval"] or (float("nan"), float("nan"))
    right = cell["is_regression"] if share else cell["verdict"] in {"equivalent", "inconclusive"}
    return {
        "text": f"{base}..{head}, slower {share:.0%}: {cell['verdict']},"
        f" {cell['slowdown_ratio']:.3f} ({low:.3f}–{high:.3f}), {cell['pairs']} pairs",
        "right": right,
        **cell,
    }


def _bisect(toy: Toy, good: int, bad: int, slower: set[int]) -> dict[str, Any]:
    output = _corebound(
        toy, "bisect", toy.commits[good], toy.commits[bad], "--scenario", "scenarios/toy.yaml"
    )
    places = {toy.commits.index(commit["sha"]) for commit in output["suspects"]}
    # A range that contains the commit is correct, though not precise.
    right = bool(places & slower) if slower else not places
    return {
        "text": f"{good}..{bad}, slower {sorted(slower)}: {output['outcome']} {sorted(places)},"
        f" {output['slowdown_ratio']:.3f} {output['slowdown_interval']}, {output['tests']} tests",
        "right": right,
        **output,
    }


def _corebound(toy: Toy, *words: str) -> dict[str, Any]:
    completed = subprocess.run(
        (sys.executable, "-m", "corebound", *words, "--json"),
        cwd=toy.folder,
        stdout=subprocess.PIPE,
        check=False,
    )
    output: dict[str, Any] = json.loads(completed.stdout)
    return output


if __name__ == "__main__":
    sys.exit(main())
