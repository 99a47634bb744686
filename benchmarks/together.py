"""Whether launches that start at once are without bias: `python -m benchmarks.together`.

Each row compares launches of `corebound run` that start at once and take turns with separate
launches of the same cell. In each round both ways launch every cell of a workload a few times, in
random order, so that a drift of the host affects both. A round is one measurement: the intervals
are over rounds, by Student's t. If starting at once changed what is measured, the times of a cell
would differ between the ways, or its ratio to the first cell would.

A workload whose environment is not installed is left out, and said so.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field

from benchmarks.alternation import interval, percentages
from corebound.analysis.scenario_result import analyse_scenario
from corebound.errors import NO_ANSWER
from corebound.records import jsonl
from corebound.stats.comparison import log_ratios

# How `measure.alternate` makes each way.
SEPARATE, TOGETHER = "never", "auto"
_BIAS = 0.01


class Kind(Struct, frozen=True, kw_only=True):
    """A workload, with the parameters that make its step short."""

    name: str
    workload: str
    environment: str
    parameters: Mapping[str, Any]


KINDS = (
    Kind(
        name="NumPy, matrix product", workload="gemm", environment="numpy",
        parameters={"size": 512, "dtype": "float32"},
    ),
    Kind(
        name="PyTorch, ResNet-50", workload="resnet50-inference", environment="pytorch",
        parameters={"batch": 1, "image": 128, "dtype": "float32"},
    ),
    Kind(
        name="TensorFlow, dense layers", workload="small-network-training",
        environment="tensorflow", parameters={"batch": 64, "width": 512, "layers": 6},
    ),
    Kind(
        name="scikit-learn, forest", workload="tree-training", environment="scikit-learn",
        parameters={"model": "forest", "rows": 2000, "columns": 20, "trees": 10},
    ),
    Kind(
        name="ONNX Runtime, ResNet-50", workload="resnet50-inference", environment="onnxruntime",
        parameters={"batch": 1, "image": 128, "dtype": "float32"},
    ),
)  # fmt: skip


class Cell(Struct, frozen=True, kw_only=True):
    """The launches of a cell in one run.

    Attributes:
        log_ns: The mean logarithm of its launches' times.
        log_ratio: The mean logarithm of its time over the first cell's; None for the first.
        started_together: For each launch, whether it started with others.
    """

    log_ns: float
    log_ratio: float | None
    started_together: list[bool]


class Rounds(Struct, frozen=True):
    """The runs of a workload: for each way, the cells of each round by their label."""

    by_way: dict[str, list[dict[str, Cell]]] = field(
        default_factory=lambda: {SEPARATE: [], TOGETHER: []}
    )

    def values(self, way: str, label: str) -> list[Cell]:
        """A cell in each round that has it both ways."""
        ways = (self.by_way[SEPARATE], self.by_way[TOGETHER])
        return [
            self.by_way[way][at][label]
            for at, both in enumerate(zip(*ways, strict=True))
            if all(label in one for one in both)
        ]


def run_once(kind: Kind, way: str, *, launches: int, iterations: int) -> dict[str, Cell]:
    """Launch every cell of a workload a few times, one way; empty if it cannot run here."""
    scenario = {
        "schema": 1,
        "name": "together",
        "title": kind.name,
        "question": "Does starting at once change the result?",
        "workload": kind.workload,
        "environment": kind.environment,
        "parameters": kind.parameters,
        "matrix": {"threads": [1, 2, "default"]},
        "measure": {
            "iterations": iterations, "warmup": {"iterations": 5}, "alternate": way,
            "duplicates": "each", "launches": {"min": launches, "max": launches},
        },
    }  # fmt: skip
    command = (sys.executable, "-m", "corebound", "run", "row.yaml", "--json")
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "row.yaml").write_text(json.dumps(scenario), encoding="utf-8")
        done = subprocess.run(
            (*command, "--unlocked", "--no-operators"), cwd=name, check=False, capture_output=True
        )
        # All launches may be invalid on a busy host.
        if done.returncode not in (0, NO_ANSWER):
            sys.exit(f"{kind.name}: {done.stderr.decode()}")
        stored = jsonl.read(Path(name) / json.loads(done.stdout)["records"])
    result = analyse_scenario(stored.run, stored.run.scenarios[0], stored.launches)
    found = {}
    for number, cell in enumerate(result.cells):
        if not cell.summary.launches:
            continue
        speedups = list(log_ratios(cell.summary, result.cells[0].summary).values())
        found[cell.cell.label] = Cell(
            log_ns=statistics.fmean(math.log(launch.median_ns) for launch in cell.summary.launches),
            log_ratio=-statistics.fmean(speedups) if number and speedups else None,
            started_together=[bool(launch.started_with) for launch in cell.launches],
        )
    return found


def measured(
    kind: Kind, *, rounds: int, launches: int, iterations: int, rng: np.random.Generator
) -> Rounds:
    """The rounds of a workload; it ends after the first if nothing was launched."""
    found = Rounds()
    for _ in range(rounds):
        for way in rng.permutation([SEPARATE, TOGETHER]).tolist():
            cells = run_once(kind, way, launches=launches, iterations=iterations)
            found.by_way[way].append(cells)
        if not any(cells for way in found.by_way.values() for cells in way):
            break
    return found


def rows(kind: Kind, rounds: Rounds) -> list[str]:
    """The rows of a workload's cells, in Markdown."""
    labels = [label for label in dict.fromkeys(
        label for cells in rounds.by_way[TOGETHER] for label in cells
    ) if len(rounds.values(TOGETHER, label)) > 1]  # fmt: skip
    if not labels:
        return [f"| {kind.name} | no launches: is `{kind.environment}` installed? | | | | | |"]
    return [_row(kind, label, rounds) for label in labels]


def _row(kind: Kind, label: str, rounds: Rounds) -> str:
    separate, together = (rounds.values(way, label) for way in (SEPARATE, TOGETHER))
    pairs = list(zip(separate, together, strict=True))
    times = [after.log_ns - before.log_ns for before, after in pairs]
    ratios = [
        after.log_ratio - before.log_ratio
        for before, after in pairs
        if after.log_ratio is not None and before.log_ratio is not None
    ]
    started = [is_so for cell in together for is_so in cell.started_together]
    texts = [
        f"{math.exp(statistics.fmean(cell.log_ns for cell in way)) / 1e6:.3f} ms"
        for way in (separate, together)
    ]
    texts += [f"{statistics.fmean(started):.0%}", _change(times)]
    texts += [_change(ratios) if len(ratios) > 1 else "", _agrees(times, ratios)]
    return f"| {kind.name} | {label} | {' | '.join(texts)} |"


def _change(logs: Sequence[float]) -> str:
    return f"{math.expm1(statistics.fmean(logs)):+.1%} ({percentages(interval(logs))})"


def _agrees(*differences: Sequence[float]) -> str:
    """Whether each mean is within 1 %, or its interval contains no change."""
    judged = [logs for logs in differences if len(logs) > 1]
    agree = [
        abs(math.expm1(statistics.fmean(logs))) <= _BIAS
        or interval(logs).low <= 1 <= interval(logs).high
        for logs in judged
    ]
    return "yes" if all(agree) else "no"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10, help="rounds of each workload, 2 or more")
    parser.add_argument("--launches", type=int, default=3, help="of each cell, way and round")
    parser.add_argument("--iterations", type=int, default=60, help="of each launch")
    parser.add_argument("--only", default="", help="workloads whose name contains this")
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    print(
        "| workload | threads | separately | at once | of these started at once"
        " | change of the time | change of the ratio to one thread | agree |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---|")
    for kind in KINDS:
        if options.only in kind.name:
            rounds = measured(
                kind,
                rounds=options.rounds,
                launches=options.launches,
                iterations=options.iterations,
                rng=rng,
            )
            print("\n".join(rows(kind, rounds)), flush=True)


if __name__ == "__main__":
    main()
