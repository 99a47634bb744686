"""Each tool as its users call it: what it says of a pair, within a time."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from scipy import stats

from benchmarks.peers.workload import STEPS, Pair, repository

Said = Literal["slower", "faster", "same"]
# A tool may tell by several rules what one measurement says.
Tool = Callable[[Pair], Mapping[str, Said]]

SCENARIO = f"""\
schema: 1
name: work
title: Two amounts of work
question: Is the second one slower?
workload: steps:setup
environment: host
binding: one-cpu
matrix:
  parameters:
    side: [before, after]
baseline: {{parameters: {{side: before}}}}
measure:
  iterations: {STEPS}
  margin: 0.01
  launches: {{min: 4, max: 1000, until_relative_ci: 0.001}}
"""
# What starting corebound, and what reading its records in the end, takes of the time.
_COREBOUND_START_S = 1.5
# Of one pyperf process: three values of 0.1 s, one to warm up, and its start.
_PYPERF_PROCESS_S = 0.55
# Of one asv run: its start, and two processes that warm up and look for a number of calls.
_ASV_START_S = 1.2
_ASV_ROUNDS = 2
# `| +        | 5.1±0.1ms …`: what changed, in the first column of a row of figures.
_ASV_ROW = re.compile(r"^\|\s*([+\-x!~]?)\s*\|[^|]*\d[^|]*\|", re.MULTILINE)
_WELCH_P = 0.05
_ASV_SAYS: Mapping[str, Said] = {"+": "slower", "-": "faster"}


def corebound(pair: Pair) -> dict[str, Said]:
    """`corebound run` of two cells with `--budget`; what it tells as a finding."""
    (pair.folder / "work.yaml").write_text(SCENARIO, encoding="utf-8")
    budget = f"{max(1, round(pair.seconds - _COREBOUND_START_S))}s"
    words = ("run", "work.yaml", "--json", "--unlocked", "--no-operators", "--budget", budget)
    return {"corebound": corebound_says(json.loads(_run(pair, "-m", "corebound", *words)))}


def corebound_says(told: Mapping[str, Any]) -> Said:
    """The verdict of the cell that is no baseline, if it is a finding."""
    (cell,) = (one for one in told["cells"] if one["verdict"] is not None)
    verdict: Said = cell["verdict"] if cell["finding"] else "same"
    return verdict


def pyperf(pair: Pair) -> dict[str, Said]:
    """Both with pyperf's own numbers but for the processes, which fill the time; `compare_to`."""
    processes = max(2, round(pair.seconds / 2 / _PYPERF_PROCESS_S))
    for side, turns in (("before", pair.before), ("after", pair.after)):
        options = ("--processes", str(processes), "--quiet", "--output", f"{side}.json")
        _run(pair, "timed.py", *options, "--turns", str(turns))
    said = _run(pair, "-m", "pyperf", "compare_to", "before.json", "after.json")
    return {"pyperf compare_to": pyperf_says(said)}


def pyperf_says(said: str) -> Said:
    """Of one benchmark.

    Raises:
        ValueError: it says neither.
    """
    if "not significant" in said:
        return "same"
    found = re.search(r"\d+(?:\.\d+)?x (slower|faster)", said)
    if found is None:
        if "no change" in said:
            return "same"
        raise ValueError(f"pyperf said: {said}")
    return "slower" if found[1] == "slower" else "faster"


def asv(pair: Pair) -> dict[str, Said]:
    """`asv run` of both, its own numbers but for the time; `asv compare`, also from 1 % on."""
    commits = repository(pair.folder)
    _run(pair, "-m", "asv", "machine", "--yes")
    seconds = max(0.1, (pair.seconds / 2 - _ASV_START_S) / _ASV_ROUNDS)
    python = f"existing:{sys.executable}"
    for commit, turns in zip(commits, (pair.before, pair.after), strict=True):
        chosen = json.dumps({"turns": turns, "seconds": seconds})
        (pair.folder / "bench" / "chosen.json").write_text(chosen, encoding="utf-8")
        _run(pair, "-m", "asv", "run", "-E", python, "--set-commit-hash", commit)
    words = ("-m", "asv", "compare", *commits)
    return {
        "asv compare": asv_says(_run(pair, *words)),
        "asv compare --factor 1.01": asv_says(_run(pair, *words, "--factor", "1.01")),
    }


def asv_says(said: str) -> Said:
    """Of a table with one benchmark.

    Raises:
        ValueError: it has none.
    """
    found = _ASV_ROW.search(said)
    if found is None:
        raise ValueError(f"asv said: {said}")
    return _ASV_SAYS.get(found[1], "same")


def hyperfine(pair: Pair) -> dict[str, Said]:
    """Whole processes, as many as the time allows; by its own `±`, and by its script's t test."""
    folder = pair.folder
    commands = [f"{sys.executable} main.py {turns} {STEPS}" for turns in (pair.before, pair.after)]
    started_s = time.monotonic()
    _run(pair, "main.py", str(pair.before), str(STEPS))
    once_s = time.monotonic() - started_s
    runs = str(max(2, int(pair.seconds / 2 / once_s) - 1))
    subprocess.run(
        ("hyperfine", "-N", "--warmup", "1", "--runs", runs, "--export-json", "h.json", *commands),
        cwd=folder,
        check=True,
        capture_output=True,
    )
    told = json.loads((folder / "h.json").read_text(encoding="utf-8"))
    before, after = ([float(one) for one in each["times"]] for each in told["results"])
    return {
        "hyperfine, its ±": hyperfine_says(before, after),
        "hyperfine, its Welch script": welch_says(before, after),
    }


def hyperfine_says(before_s: Sequence[float], after_s: Sequence[float]) -> Said:
    """What its last line says, `1.03 ± 0.02 times faster`: a difference if 1 is not within.

    The ± is one standard deviation of the ratio by hyperfine's own formula.
    """
    mean, other = statistics.fmean(before_s), statistics.fmean(after_s)
    parts = statistics.stdev(before_s) / mean, statistics.stdev(after_s) / other
    ratio = other / mean
    if abs(ratio - 1) <= ratio * math.hypot(*parts):
        return "same"
    return "slower" if ratio > 1 else "faster"


def welch_says(before_s: Sequence[float], after_s: Sequence[float]) -> Said:
    """What hyperfine's `scripts/welch_ttest.py` says: p < 0.05."""
    found = stats.ttest_ind(after_s, before_s, equal_var=False)
    if not found.pvalue < _WELCH_P:
        return "same"
    return "slower" if found.statistic > 0 else "faster"


def present() -> dict[str, Tool]:
    """The tools that are here, by name, and what is told of those that are not."""
    found: dict[str, Tool] = {"corebound": corebound}
    if importlib.util.find_spec("asv"):
        found["asv"] = asv
    if importlib.util.find_spec("pyperf"):
        found["pyperf"] = pyperf
    if shutil.which("hyperfine"):
        found["hyperfine"] = hyperfine
    return found


def _run(pair: Pair, *words: str) -> str:
    """What a Python program writes; its files in the home folder stay in the pair's.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    done = subprocess.run(
        (sys.executable, *words),
        cwd=pair.folder,
        env={**os.environ, "HOME": str(pair.folder), "PYTHONPATH": ""},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout
