"""How fast corebound itself is: what it adds to a launch, and how soon its pages are seen.

Run `python -m benchmarks.harness` for a table; asv runs the same functions
(`asv run -b harness`) to follow them from commit to commit.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from asv_runner.benchmarks.mark import SkipNotImplemented
from msgspec import Struct

from benchmarks import paint, publish, telemetry_cost
from corebound.records import jsonl
from corebound.worker.timing import measure

LAUNCHES = 20
ITERATIONS = 100_000

SCENARIO = f"""\
schema: 1
name: empty
title: Nothing at all
question: What does a launch cost beside its work?
workload: empty:setup
environment: host
measure:
  iterations: 10
  launches: {{min: {LAUNCHES}, max: {LAUNCHES}}}
"""
WORKLOAD = "def setup():\n    return lambda: None\n"


class Figure(Struct, frozen=True, kw_only=True):
    """One line of the table; `target` is what it has to stay under, or None."""

    name: str
    unit: str
    target: float | None
    values: Sequence[float]


def launch_overheads_ms() -> list[float]:
    """Runner time beyond the worker's own life, launch by launch, in milliseconds.

    A real run of the command line, read from its records, so that planning,
    supervision, telemetry, statistics and the disk are all in it.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "empty.yaml").write_text(SCENARIO, encoding="utf-8")
        (folder / "empty.py").write_text(WORKLOAD, encoding="utf-8")
        command = (sys.executable, "-m", "corebound", "run", "empty.yaml", "--unlocked", "--json")
        done = subprocess.run(command, cwd=folder, check=True, capture_output=True)
        began_to_end = jsonl.read(folder / json.loads(done.stdout)["records"]).launches
        return [launch.overhead_ns / 1e6 for launch in began_to_end]


def timer_costs_ns() -> list[float]:
    """What the loop adds to an iteration besides the step, in nanoseconds, ten times."""

    def step() -> None:
        pass

    costs = []
    for _ in range(10):
        began_ns = time.perf_counter_ns()
        measure(
            step,
            iterations=ITERATIONS,
            wall_ns=time.perf_counter_ns,
            cpu_ns=time.process_time_ns,
        )
        looped_ns = time.perf_counter_ns()
        for _ in range(ITERATIONS):
            step()
        bare_ns = time.perf_counter_ns() - looped_ns
        costs.append((looped_ns - began_ns - bare_ns) / ITERATIONS)
    return costs


def timer_bias_ns() -> list[float]:
    """What the timer adds to a sample itself: an empty step's duration, in nanoseconds."""
    walls, _ = measure(
        lambda: None,
        iterations=ITERATIONS,
        wall_ns=time.perf_counter_ns,
        cpu_ns=time.process_time_ns,
    )
    return [float(sample) for sample in walls]


def _tracked(values: Callable[[], Sequence[float]]) -> float:
    return statistics.median(values())


class LaunchOverhead:
    """What the runner adds to a launch, as asv follows it."""

    unit = "ms"

    def track_median(self) -> float:
        """Median of `launch_overheads_ms`."""
        return _tracked(launch_overheads_ms)


class TimerCost:
    """What timing adds to an iteration, as asv follows it."""

    unit = "ns"

    def track_median(self) -> float:
        """Median of `timer_costs_ns`."""
        return _tracked(timer_costs_ns)


class TelemetryCost:
    """What looking at a launch adds to a step of 5 ms, as asv follows it."""

    unit = "%"
    timeout = 300

    def track_median(self) -> float:
        """Median over pairs of launches with looks and without."""
        return _tracked(lambda: [(one - 1) * 100 for one in telemetry_cost.measure().ratios])


class FirstPaint:
    """How soon the overview of 500 scenarios is seen, as asv follows it."""

    unit = "ms"
    timeout = 1800

    def setup(self) -> None:
        """Skip where there is no browser."""
        if why := paint.missing():
            raise SkipNotImplemented(why)

    def track_median(self) -> float:
        """Median over loads."""
        return _tracked(lambda: paint.measure()[0].first_paints_ms)


def figures() -> list[Figure]:
    """Everything there is to show."""
    return [
        Figure(
            name="runner beyond the worker, a launch",
            unit="ms",
            target=50,
            values=launch_overheads_ms(),
        ),
        Figure(name="timer, an iteration", unit="ns", target=1000, values=timer_costs_ns()),
        Figure(name="of that, within the sample", unit="ns", target=None, values=timer_bias_ns()),
    ]


def main() -> None:
    """Print the table."""
    print(f"{'':36}{'median':>10}{'least':>10}{'most':>12}   target")
    for figure in figures():
        median = statistics.median(figure.values)
        least, most = min(figure.values), max(figure.values)
        target = "" if figure.target is None else f"under {figure.target:g} {figure.unit}"
        print(
            f"{figure.name:36}{median:>7.1f} {figure.unit}{least:>7.1f} {figure.unit}"
            f"{most:>9.1f} {figure.unit}   {target}"
        )
    print()
    telemetry_cost.main()
    print()
    why = paint.missing()
    if why is None:
        paint.table(paint.measure())
    else:
        print(why)
    print()
    why = publish.missing()
    if why is None:
        print("The site of a real history, beside `asv publish`:")
        publish.table(*publish.measure(publish.SUNPY, rounds=1))
    else:
        print(why)


if __name__ == "__main__":
    main()
