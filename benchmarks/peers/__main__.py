"""False alarms and detected slowdowns of corebound and other tools in equal time.

Run from the root of the repository, with `.[dev]` installed:

    python -m benchmarks.peers --seconds 8 --trials 10 [--shares 0 0.02 0.03 0.05]
    python -m benchmarks.peers --step resnet50 --seconds 60 --shares 0 0.01 0.02 0.03

In each trial, every tool measures a pair of steps, the second of which does a given share more
work. Tools, and trials of all shares, run in random order. Each tool's time is adjusted after
every trial, so that all take equally long on average (last column). A share of 0 is an A/A pair:
`slower` or `faster` is a false alarm. For the other shares, `slower` is correct.

The steps `convolutions`, `resnet50` and `numpy` use two threads and run in corebound's
environments, which are made if missing. The extra work is calibrated first
(`benchmarks.peers.calibration`), which takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import asdict

from benchmarks.peers.calibration import Planted, calibrate
from benchmarks.peers.runtime import STEPS, Runtime, make_runtime
from benchmarks.peers.tools import TOOLS, Judgement, Verdict, is_installed, tools_for
from benchmarks.peers.workload import create_pair, write_step
from benchmarks.simulation.histories import rate

SHARES = (0.0, 0.02, 0.03, 0.05)
# A tool's time is corrected by half of its deviation, because a busy machine is slow at times.
_GAIN = 0.5
# The least time of a tool, as a share of the intended time.
_LEAST_SHARE = 0.2


class Result(Struct, frozen=True, kw_only=True):
    """The verdict of one decision rule on a pair.

    Attributes:
        rule: The name of the rule.
        share: How much more work the second step does.
        verdict: The verdict on the second step.
        took_s: How long the tool took.
        half_width: Half the width of the 95 % interval of the ratio, if the tool gives one.
    """

    rule: str
    share: float
    verdict: Verdict
    took_s: float
    half_width: float | None = None


class Bench(Struct, frozen=True, kw_only=True):
    """What all trials share.

    Attributes:
        runtime: Where the step runs.
        planted: The planted slowdowns by share.
        startup_s: How long a process takes to start and to set up the step.
        intended_s: How long each tool should take for a pair.
    """

    runtime: Runtime
    planted: dict[float, Planted]
    startup_s: float
    intended_s: float


def main() -> int:
    """Measure, then print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--step", choices=STEPS, default="python", help="what the tools measure")
    parser.add_argument("--seconds", type=float, default=8.0, help="time of each tool per pair")
    parser.add_argument("--trials", type=int, default=10, help="number of trials of each share")
    parser.add_argument(
        "--shares", type=float, nargs="+", default=SHARES, help="additional work; 0: an A/A pair"
    )
    parser.add_argument("--tools", nargs="+", help="tools to run; default: all that are installed")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random order")
    parser.add_argument("--json", action="store_true", help="print every result as JSON")
    options = parser.parse_args()
    step = STEPS[options.step]
    suitable = [name for name in tools_for(step) if name in (options.tools or TOOLS)]
    tools = [name for name in suitable if is_installed(name)]
    order = trials(options.shares, options.trials, tools, seed=options.seed)
    total_s = len(order) * len(tools) * options.seconds
    plan = f"{len(order)} trials of {', '.join(tools)}: about {total_s / 60:.0f} minutes."
    missing = sorted(set(suitable).difference(tools))
    note = f" Not installed: {', '.join(missing)}." if missing else ""
    print(plan + note, file=sys.stderr)
    bench = _prepare(make_runtime(step), options.shares, options.seconds)
    results = list(_run_trials(bench, order, tools))
    if options.json:
        print(json.dumps([asdict(result) for result in results], indent=1))
    else:
        planted = f"Calibrated ratios: {'; '.join(map(str, bench.planted.values()))}"
        print("\n".join((*table(results), *noise_floors(results), planted)))
    return 0


def _prepare(runtime: Runtime, shares: Sequence[float], seconds: float) -> Bench:
    """Calibrate the extra work and time the start of a process."""
    with tempfile.TemporaryDirectory() as folder:
        write_step(Path(folder), runtime)
        startup_s = runtime.startup_s(Path(folder))
    planted = {one.share: one for one in calibrate(runtime, shares)}
    print("Calibrated ratios:", "; ".join(map(str, planted.values())), file=sys.stderr)
    if not all(one.is_exact for one in planted.values()):
        message = "Not calibrated to 0.2 %: other programs use the CPUs, or launches vary too much."
        print(message, file=sys.stderr)
    return Bench(runtime=runtime, planted=planted, startup_s=startup_s, intended_s=seconds)


def trials(
    shares: Iterable[float], count: int, tools: Sequence[str], *, seed: int
) -> tuple[tuple[float, tuple[str, ...]], ...]:
    """Plan `count` trials of each share, in random order, each with the tools in random order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation([share for share in shares for _ in range(count)])
    return tuple(
        (float(share), tuple(str(name) for name in rng.permutation(tools))) for share in order
    )


def _run_trials(
    bench: Bench, order: Sequence[tuple[float, tuple[str, ...]]], tools: Sequence[str]
) -> Iterator[Result]:
    # A first A/A pair for each tool, to see how long it takes; its verdict does not count.
    budgets_s = dict.fromkeys(tools, bench.intended_s)
    for name in tools:
        _measure(bench, name, 0.0, budgets_s)
    for number, (share, names) in enumerate(order, start=1):
        for name in names:
            judgements, took_s = _measure(bench, name, share, budgets_s)
            for judgement in judgements:
                yield Result(share=share, took_s=took_s, **asdict(judgement))
            text = ", ".join(f"{one.rule}: {one.verdict}" for one in judgements)
            print(f"{number}/{len(order)} {share:.0%} {took_s:.1f} s  {text}", file=sys.stderr)


def _measure(
    bench: Bench, name: str, share: float, budgets_s: dict[str, float]
) -> tuple[Sequence[Judgement], float]:
    """Measure a new pair with a tool, and set the tool's next budget.

    Returns:
        The tool's judgements, and how long it took in seconds.
    """
    size = bench.planted[share].size if share else 0
    with tempfile.TemporaryDirectory() as scratch:
        pair = create_pair(
            Path(scratch) / name,
            bench.runtime,
            size=size,
            seconds=budgets_s[name],
            startup_s=bench.startup_s,
        )
        started_s = time.monotonic()
        judgements = TOOLS[name](pair)
        took_s = time.monotonic() - started_s
    budgets_s[name] = next_budget_s(budgets_s[name], took_s=took_s, intended_s=bench.intended_s)
    return judgements, took_s


def next_budget_s(budget_s: float, *, took_s: float, intended_s: float) -> float:
    """The next time budget of a tool, chosen so that all tools take equally long on average.

    No tool keeps to its budget exactly, because that excludes its start and end.
    """
    return max(budget_s + _GAIN * (intended_s - took_s), intended_s * _LEAST_SHARE)


def table(results: Sequence[Result]) -> list[str]:
    """For each rule: false alarms, detected slowdowns, wrong directions, and mean time.

    Rates have their 95 % interval (Wilson) in brackets.
    """
    shares = sorted({result.share for result in results})
    headings = ("alarms, A/A" if not share else f"{share:.0%} slower" for share in shares)
    columns = "".join(f"{heading:>24}" for heading in headings)
    lines = [f"{'':<28}{columns}{'called faster':>15}{'s':>7}"]
    for rule in dict.fromkeys(result.rule for result in results):
        of_rule = [result for result in results if result.rule == rule]
        rates = [
            rate(_is_hit(result) for result in of_rule if result.share == share) for share in shares
        ]
        wrong = sum(result.verdict == "faster" for result in of_rule if result.share)
        took_s = sum(result.took_s for result in of_rule) / len(of_rule)
        columns = "".join(f"{text:>24}" for text in rates)
        lines.append(f"{rule:<28}{columns}{wrong:>15}{took_s:>7.1f}")
    return lines


def noise_floors(results: Sequence[Result]) -> list[str]:
    """The median half-width of the intervals of A/A pairs, for each rule that has intervals."""
    lines = []
    for rule in dict.fromkeys(result.rule for result in results):
        half_widths = [
            result.half_width
            for result in results
            if result.rule == rule and not result.share and result.half_width is not None
        ]
        if half_widths:
            floor = statistics.median(half_widths)
            lines.append(f"{rule}: median half-width of the 95 % interval, A/A: ±{floor:.2%}")
    return lines


def _is_hit(result: Result) -> bool:
    """Whether it is a false alarm (share 0), or a detected slowdown."""
    return result.verdict == "slower" if result.share else result.verdict != "same"


if __name__ == "__main__":
    sys.exit(main())
