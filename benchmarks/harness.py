"""The overhead of corebound per launch and iteration, and the speed of its pages.

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
from corebound.worker.timing import Timings

LAUNCHES = 20
ITERATIONS = 100_000

SCENARIO = f"""\
schema: 1
name: empty
title: Nothing at all
question: How long does an empty launch take?
workload: empty:setup
environment: host
measure:
  iterations: 10
  launches: {{min: {LAUNCHES}, max: {LAUNCHES}}}
"""
WORKLOAD = "def setup():\n    return lambda: None\n"


class Measurement(Struct, frozen=True, kw_only=True):
    """One line of the table; `target` is the upper limit, or None."""

    name: str
    unit: str
    target: float | None
    values: Sequence[float]


def launch_overheads_ms() -> list[float]:
    """The time of the runner beyond that of the worker, for each launch, in milliseconds.

    It is read from the records of a real run, so it includes planning, supervision, telemetry,
    statistics and the disk.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "empty.yaml").write_text(SCENARIO, encoding="utf-8")
        (folder / "empty.py").write_text(WORKLOAD, encoding="utf-8")
        command = (sys.executable, "-m", "corebound", "run", "empty.yaml", "--unlocked", "--json")
        completed = subprocess.run(command, cwd=folder, check=True, capture_output=True)
        launches = jsonl.read(folder / json.loads(completed.stdout)["records"]).launches
        return [launch.overhead_ns / 1e6 for launch in launches]


def timer_costs_ns() -> list[float]:
    """The time that the loop adds to an iteration, in nanoseconds, measured ten times."""

    def step() -> None:
        pass

    costs = []
    for _ in range(10):
        timings = Timings(ITERATIONS)
        began_ns = time.perf_counter_ns()
        timings.measure(
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
    """The time that the timer adds to a sample: the duration of an empty step, in nanoseconds."""
    timings = Timings(ITERATIONS)
    timings.measure(
        lambda: None,
        iterations=ITERATIONS,
        wall_ns=time.perf_counter_ns,
        cpu_ns=time.process_time_ns,
    )
    return [float(sample) for sample in timings.walls]


def _tracked(values: Callable[[], Sequence[float]]) -> float:
    return statistics.median(values())


class LaunchOverhead:
    """The overhead of the runner per launch, as an asv benchmark."""

    unit = "ms"

    def track_median(self) -> float:
        """Median of `launch_overheads_ms`."""
        return _tracked(launch_overheads_ms)


class TimerCost:
    """The overhead of timing per iteration, as an asv benchmark."""

    unit = "ns"

    def track_median(self) -> float:
        """Median of `timer_costs_ns`."""
        return _tracked(timer_costs_ns)


class TelemetryCost:
    """The cost of sampling for a step of 5 ms, as an asv benchmark."""

    unit = "%"
    timeout = 300

    def track_median(self) -> float:
        """Median over pairs of launches with and without sampling."""
        return _tracked(lambda: [(ratio - 1) * 100 for ratio in telemetry_cost.measure().ratios])


class FirstPaint:
    """The first paint of an overview of 500 scenarios, as an asv benchmark."""

    unit = "ms"
    timeout = 1800

    def setup(self) -> None:
        """Skip if there is no browser."""
        if reason := paint.missing():
            raise SkipNotImplemented(reason)

    def track_median(self) -> float:
        """Median over loads."""
        return _tracked(lambda: paint.measure()[0].first_paints_ms)


def measurements() -> list[Measurement]:
    """Measure the lines of the table."""
    return [
        Measurement(
            name="runner, per launch",
            unit="ms",
            target=50,
            values=launch_overheads_ms(),
        ),
        Measurement(name="timer, per iteration", unit="ns", target=1000, values=timer_costs_ns()),
        Measurement(name="of that, in the sample", unit="ns", target=None, values=timer_bias_ns()),
    ]


def main() -> None:
    """Print the table."""
    print(f"{'':36}{'median':>10}{'min':>10}{'max':>12}   target")
    for measurement in measurements():
        median = statistics.median(measurement.values)
        least, most = min(measurement.values), max(measurement.values)
        target = (
            "" if measurement.target is None else f"under {measurement.target:g} {measurement.unit}"
        )
        unit = measurement.unit
        print(
            f"{measurement.name:36}{median:>7.1f} {unit}{least:>7.1f} {unit}"
            f"{most:>9.1f} {unit}   {target}"
        )
    print()
    telemetry_cost.main()
    print()
    reason = paint.missing()
    if reason is None:
        paint.table(paint.measure())
    else:
        print(reason)
    print()
    reason = publish.missing()
    if reason is None:
        print("The site of a real history, compared with `asv publish`:")
        publish.table(*publish.measure(publish.SUNPY, rounds=1))
    else:
        print(reason)


if __name__ == "__main__":
    main()
