"""Run each tool as its users do, and read its verdict on a pair of workloads."""

from __future__ import annotations

import json
import math
import re
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Literal

from msgspec import Struct
from scipy import stats

from benchmarks.peers.runtime import Step, base_variables, output_of
from benchmarks.peers.workload import STEPS_PER_PROCESS, Pair, create_repository
from corebound.errors import NO_ANSWER
from corebound.launch.environments import HOST

Verdict = Literal["slower", "faster", "same"]


class Judgement(Struct, frozen=True, kw_only=True):
    """The verdict of one decision rule of a tool.

    Attributes:
        rule: The name of the rule.
        verdict: The verdict on the second step.
        half_width: Half the width of the 95 % interval of the ratio, if the tool gives one.
    """

    rule: str
    verdict: Verdict
    half_width: float | None = None


# Measures a pair. Returns a judgement for each decision rule: a tool can have several.
Tool = Callable[[Pair], Sequence[Judgement]]

SCENARIO = """\
schema: 1
name: work
title: A step and a slower one
question: Is the second one slower?
workload: steps:setup
environment: {environment}
{threads}
matrix:
  parameters:
    side: [before, after]
baseline: {{parameters: {{side: before}}}}
measure:
  margin: 0.01
  launches: {{min: 4, max: 1000, until_relative_ci: 0.001}}
"""
# Time to start corebound and to read its records at the end.
_COREBOUND_START_S = 1.5
# A pyperf process takes this long beyond its start-up: a warm-up and three values of 0.1 s.
_PYPERF_PROCESS_S = 0.5
# Start of one asv run, which starts three processes: one finds the benchmarks, the others warm
# up, determine the number of calls and measure.
_ASV_START_S = 1.2
_ASV_PROCESSES, _ASV_ROUNDS = 3, 2
# How long a process with PyTorch's Timer measures, and how long it takes to choose block sizes.
_TIMER_S, _TIMER_ESTIMATE_S = 2.0, 0.3
# `  step  |   6.10  |   6.2 (! 12%)`: two medians, and the quartiles if they are far apart.
_COMPARE_ROW = re.compile(r"^\s*step\s*\|\s*([\d.]+)[^|]*\|\s*([\d.]+)", re.MULTILINE)
# `| +        | 5.1±0.1ms …`: the mark of a change in the first column, in rows with values.
_ASV_ROW = re.compile(r"^\|\s*([+\-x!~]?)\s*\|[^|]*\d[^|]*\|", re.MULTILINE)
_WELCH_P = 0.05
_ASV_MARKS: Mapping[str, Verdict] = {"+": "slower", "-": "faster"}


def corebound(pair: Pair) -> list[Judgement]:
    """Run two cells with `corebound run --budget`; only findings count as differences."""
    step = pair.runtime.step
    threads = f"threads: {step.threads}" if step.threads else "binding: one-cpu"
    scenario = SCENARIO.format(environment=step.environment, threads=threads)
    (pair.folder / "work.yaml").write_text(scenario, encoding="utf-8")
    budget = f"{max(1, round(pair.seconds - _COREBOUND_START_S))}s"
    words = ("run", "work.yaml", "--json", "--unlocked", "--no-operators", "--budget", budget)
    # All launches of a cell can be discarded on a busy host.
    output = _run(pair, "-m", "corebound", *words, accepted_codes=(0, NO_ANSWER))
    return [corebound_judgement(json.loads(output))]


def corebound_judgement(output: Mapping[str, Any]) -> Judgement:
    """The verdict on the cell that is not the baseline; `same` without a finding."""
    compared = [cell for cell in output["cells"] if cell["verdict"] is not None]
    if not compared:
        return Judgement(rule="corebound", verdict="same")
    (cell,) = compared
    interval = cell["speedup_interval"]
    return Judgement(
        rule="corebound",
        verdict=cell["verdict"] if cell["is_significant"] else "same",
        half_width=None if interval is None else (interval[1] - interval[0]) / 2,
    )


def pyperf(pair: Pair) -> list[Judgement]:
    """Measure with pyperf's defaults, except for the number of processes, then `compare_to`."""
    # The main process sets up the step too, and one more process determines the number of calls.
    process_s = pair.startup_s + _PYPERF_PROCESS_S
    processes = max(2, round((pair.seconds / 2 - pair.startup_s) / process_s) - 1)
    inherited = pair.runtime.thread_variables
    for side, size in pair.sides:
        options = ["--processes", str(processes), "--quiet", "--output", f"{side}.json"]
        if inherited:
            options += ["--inherit-environ", ",".join(inherited)]
        pair.runtime.run(pair.folder, "timed.py", *options, "--size", str(size))
    output = _run(pair, "-m", "pyperf", "compare_to", "before.json", "after.json")
    return [Judgement(rule="pyperf compare_to", verdict=pyperf_verdict(output))]


def pyperf_verdict(output: str) -> Verdict:
    """Read the verdict of `pyperf compare_to` on one benchmark.

    Raises:
        ValueError: The output has no verdict.
    """
    if "not significant" in output:
        return "same"
    match = re.search(r"\d+(?:\.\d+)?x (slower|faster)", output)
    if match is None:
        if "no change" in output:
            return "same"
        raise ValueError(f"no verdict in the output of pyperf: {output}")
    return "slower" if match[1] == "slower" else "faster"


def asv(pair: Pair) -> list[Judgement]:
    """Measure with asv's defaults, except for the time; `asv compare`, also with factor 1.01."""
    commits = create_repository(pair.folder)
    variables = pair.runtime.variables(pair.folder)

    def run(*words: str) -> str:
        return output_of((sys.executable, "-m", "asv", *words), pair.folder, variables)

    run("machine", "--yes")
    start_s = _ASV_START_S + _ASV_PROCESSES * pair.startup_s
    seconds = max(0.1, (pair.seconds / 2 - start_s) / _ASV_ROUNDS)
    python = f"existing:{pair.runtime.python}"
    for commit, (_, size) in zip(commits, pair.sides, strict=True):
        settings = json.dumps({"size": size, "seconds": seconds})
        (pair.folder / "bench" / "settings.json").write_text(settings, encoding="utf-8")
        run("run", "-E", python, "--set-commit-hash", commit)
    words = ("compare", *commits)
    return [
        Judgement(rule="asv compare", verdict=asv_verdict(run(*words))),
        Judgement(
            rule="asv compare --factor 1.01", verdict=asv_verdict(run(*words, "--factor", "1.01"))
        ),
    ]


def asv_verdict(output: str) -> Verdict:
    """Read the verdict of `asv compare` from its table with one benchmark.

    Raises:
        ValueError: The output has no row with values.
    """
    row = _ASV_ROW.search(output)
    if row is None:
        raise ValueError(f"no verdict in the output of asv: {output}")
    return _ASV_MARKS.get(row[1], "same")


def torch_timer(pair: Pair) -> list[Judgement]:
    """Measure with PyTorch's Timer in new processes, which alternate; merge and `Compare` them.

    `Compare` has no verdict: one rule is that the medians differ as it prints them, with the
    digits that it considers significant; the other, that the interquartile ranges do not overlap.
    """
    process_s = pair.startup_s + _TIMER_S + _TIMER_ESTIMATE_S
    # One more process compares.
    processes = max(1, round((pair.seconds - pair.startup_s) / 2 / process_s))
    for number in range(processes):
        for side, size in pair.sides:
            words = (side, str(size), str(pair.runtime.step.threads), str(_TIMER_S))
            file = f"{number}-{side}.pickle"
            pair.runtime.run(pair.folder, "torch_timer.py", *words, file)
    output = json.loads(pair.runtime.run(pair.folder, "torch_compare.py"))
    return [
        Judgement(rule="torch Compare, digits", verdict=compare_verdict(output["table"])),
        Judgement(
            rule="torch, quartiles apart",
            verdict=quartiles_verdict(output["times"]["before"], output["times"]["after"]),
        ),
    ]


def compare_verdict(table: str) -> Verdict:
    """Whether the two medians of one row in the table of PyTorch's `Compare` differ.

    Raises:
        ValueError: The table has no such row.
    """
    row = _COMPARE_ROW.search(table)
    if row is None:
        raise ValueError(f"no medians in the output of Compare: {table}")
    return _order(float(row[1]), float(row[2]))


def quartiles_verdict(before_s: Sequence[float], after_s: Sequence[float]) -> Verdict:
    """They differ if the interquartile ranges do not overlap."""
    before_low_s, _, before_high_s = statistics.quantiles(before_s, n=4)
    after_low_s, _, after_high_s = statistics.quantiles(after_s, n=4)
    if after_low_s > before_high_s:
        return "slower"
    return "faster" if after_high_s < before_low_s else "same"


def _order(before: float, after: float) -> Verdict:
    if before == after:
        return "same"
    return "slower" if after > before else "faster"


def hyperfine(pair: Pair) -> list[Judgement]:
    """Time as many processes as the time allows; judge by hyperfine's `±` and by its t test."""
    python, steps = pair.runtime.python, STEPS_PER_PROCESS
    commands = [f"{python} main.py {size} {steps}" for _, size in pair.sides]
    started_s = time.monotonic()
    pair.runtime.run(pair.folder, "main.py", str(pair.before), str(steps))
    once_s = time.monotonic() - started_s
    runs = str(max(2, int(pair.seconds / 2 / once_s) - 1))
    options = ("-N", "--warmup", "1", "--runs", runs, "--export-json", "h.json")
    variables = pair.runtime.variables(pair.folder)
    output_of(("hyperfine", *options, *commands), pair.folder, variables)
    output = json.loads((pair.folder / "h.json").read_text(encoding="utf-8"))
    before, after = ([float(time) for time in result["times"]] for result in output["results"])
    return [
        Judgement(rule="hyperfine, its ±", verdict=hyperfine_verdict(before, after)),
        Judgement(rule="hyperfine, its Welch script", verdict=welch_verdict(before, after)),
    ]


def hyperfine_verdict(before_s: Sequence[float], after_s: Sequence[float]) -> Verdict:
    """The verdict of hyperfine's last line, `1.03 ± 0.02 times faster`: does it exclude 1?

    The ± is one standard deviation of the ratio, by hyperfine's own formula.
    """
    before_mean_s, after_mean_s = statistics.fmean(before_s), statistics.fmean(after_s)
    before_spread = statistics.stdev(before_s) / before_mean_s
    after_spread = statistics.stdev(after_s) / after_mean_s
    ratio = after_mean_s / before_mean_s
    if abs(ratio - 1) <= ratio * math.hypot(before_spread, after_spread):
        return "same"
    return "slower" if ratio > 1 else "faster"


def welch_verdict(before_s: Sequence[float], after_s: Sequence[float]) -> Verdict:
    """The verdict of hyperfine's `scripts/welch_ttest.py`: p < 0.05."""
    test = stats.ttest_ind(after_s, before_s, equal_var=False)
    if not test.pvalue < _WELCH_P:
        return "same"
    return "slower" if test.statistic > 0 else "faster"


TOOLS: Mapping[str, Tool] = {
    "corebound": corebound,
    "asv": asv,
    "pyperf": pyperf,
    "hyperfine": hyperfine,
    "torch": torch_timer,
}


def tools_for(step: Step) -> tuple[str, ...]:
    """The tools that suit a step, by name.

    PyTorch's Timer is for PyTorch. hyperfine times whole processes, of which importing a
    framework is the larger part.
    """
    unsuitable = {"hyperfine"} if step.environment != HOST else set()
    if step.environment != "pytorch":
        unsuitable.add("torch")
    return tuple(name for name in TOOLS if name not in unsuitable)


def is_installed(name: str) -> bool:
    """Whether a tool is installed; `torch` is part of its environment."""
    if name == "hyperfine":
        return shutil.which(name) is not None
    return name == "torch" or find_spec(name) is not None


def _run(pair: Pair, *words: str, accepted_codes: tuple[int, ...] = (0,)) -> str:
    """Run this Python with these arguments and the pair's folder as home; return its output.

    Raises:
        subprocess.CalledProcessError: Its exit code is not accepted.
    """
    variables = base_variables(pair.folder)
    return output_of((sys.executable, *words), pair.folder, variables, accepted_codes)
