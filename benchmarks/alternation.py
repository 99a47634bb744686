"""Whether alternating is without bias, and what it is worth: `python -m benchmarks.alternation`.

Each row of the table compares two configurations of a step twice: with launches that alternate,
and with launches that run one after the other. If stopping a launch while the other runs changed
what is measured, the two ratios would differ, or the times of a configuration would. Rounds of
both kinds follow one another, so that both see the same host.

The last columns show the benefit: how much the ratio of a block varies, either way.
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

from msgspec import Struct

from corebound.records import jsonl
from corebound.records.launch_record import Launch
from corebound.stats.comparison import log_ratios
from corebound.stats.intervals import Interval, log_interval
from corebound.stats.launch_summary import CellSummary, summarise

STEPS = '''\
def products(*, side, repeat=1, copy="first"):
    """Matrix products in NumPy: small ones stay in the cache, large ones fill it."""
    import numpy

    left = numpy.random.default_rng(0).random((side, side), dtype="float32")

    def step():
        for _ in range(repeat):
            left @ left

    return step


def convolutions(*, image=56, layers=8):
    """Convolutions of 64 channels in PyTorch."""
    import torch

    torch.manual_seed(0)
    network = torch.nn.Sequential(
        *(torch.nn.Conv2d(64, 64, 3, padding=1) for _ in range(layers))
    )
    batch = torch.rand(1, 64, image, image)

    def step():
        with torch.inference_mode():
            return network(batch)

    return step


def dense_tensorflow(*, width=512):
    """Dense layers in TensorFlow."""
    import tensorflow as tf

    tf.random.set_seed(0)
    weights = [tf.random.normal((width, width)) for _ in range(8)]
    batch = tf.random.normal((64, width))

    @tf.function
    def forward():
        values = batch
        for weight in weights:
            values = tf.nn.relu(values @ weight)
        return values

    return lambda: forward().numpy()


def dense_mindspore(*, width=512):
    """Dense layers in MindSpore."""
    import mindspore as ms
    import numpy

    numbers = numpy.random.default_rng(0)
    weights = [
        ms.Tensor(numbers.standard_normal((width, width)).astype("float32")) for _ in range(8)
    ]
    batch = ms.Tensor(numbers.standard_normal((64, width)).astype("float32"))

    @ms.jit
    def forward(values):
        for weight in weights:
            values = ms.ops.relu(ms.ops.matmul(values, weight))
        return values

    return lambda: forward(batch).asnumpy()


def background(*, spinning):
    """A step in Python beside threads that never rest."""
    import threading

    def spin():
        while True:
            pass

    for _ in range(spinning):
        threading.Thread(target=spin, daemon=True).start()

    def step():
        value = 0
        for number in range(40_000):
            value += number & 7
        return value

    return step


def prefetching(*, depth):
    """A step that takes batches from a thread that prepares them ahead."""
    import queue
    import threading

    import numpy

    batches = queue.Queue(maxsize=depth)
    numbers = numpy.random.default_rng(0)

    def prepare():
        while True:
            batches.put(numbers.standard_normal((200, 200)).astype("float32"))

    threading.Thread(target=prepare, daemon=True).start()

    def step():
        batch = batches.get()
        for _ in range(4):
            batch @ batch

    return step
'''


class Kind(Struct, frozen=True, kw_only=True):
    """One row: a workload and two configurations; the first is the baseline."""

    name: str
    workload: str
    framework: str
    axis: str
    values: tuple[Any, Any]
    fixed: Mapping[str, Any] = {}
    iterations: int = 100


KINDS = (
    Kind(
        name="NumPy, small products, one thread: the same twice",
        workload="products", framework="numpy", axis="copy", values=("first", "second"),
        fixed={"threads": 1, "parameters": {"side": 128, "repeat": 8}},
    ),
    Kind(
        name="NumPy: small against large working set",
        workload="products", framework="numpy", axis="side", values=(160, 1024),
        fixed={"threads": 1, "parameters": {"repeat": 1}}, iterations=60,
    ),
    Kind(
        name="NumPy: one thread against two",
        workload="products", framework="numpy", axis="threads", values=(1, 2),
        fixed={"parameters": {"side": 768}}, iterations=60,
    ),
    Kind(
        name="PyTorch: one thread against two",
        workload="convolutions", framework="pytorch", axis="threads", values=(1, 2),
    ),
    Kind(
        name="PyTorch, two threads: unbound against bound",
        workload="convolutions", framework="pytorch", axis="binding",
        values=("none", "logical-cpus"), fixed={"threads": 2},
    ),
    Kind(
        name="PyTorch, two threads: waiting passively against actively",
        workload="convolutions", framework="pytorch", axis="wait_policy",
        values=("passive", "active"), fixed={"threads": 2},
    ),
    Kind(
        name="PyTorch, two threads: small against large working set",
        workload="convolutions", framework="pytorch", axis="image", values=(14, 112),
        fixed={"threads": 2, "parameters": {"layers": 4}},
    ),
    Kind(
        name="TensorFlow: one thread against two",
        workload="dense_tensorflow", framework="tensorflow", axis="threads", values=(1, 2),
    ),
    Kind(
        name="MindSpore: one CPU against unbound",
        workload="dense_mindspore", framework="mindspore", axis="binding",
        values=("one-cpu", "none"),
    ),
    Kind(
        name="Python: without and with a thread that never rests",
        workload="background", framework="none", axis="spinning", values=(0, 1),
    ),
    Kind(
        name="NumPy: batches prepared one or eight ahead",
        workload="prefetching", framework="numpy", axis="depth", values=(1, 8),
        fixed={"threads": 1},
    ),
)  # fmt: skip
AXES = {"threads", "binding", "wait_policy"}


def scenario(kind: Kind, alternate: str, blocks: int) -> dict[str, Any]:
    """The scenario of a row, as JSON, which is YAML too."""
    is_parameter = kind.axis not in AXES
    axis = {"parameters": {kind.axis: list(kind.values)}} if is_parameter else {
        kind.axis: list(kind.values)
    }  # fmt: skip
    value = kind.values[0]
    environment = "host" if kind.framework == "none" else kind.framework
    return {
        "schema": 1,
        "name": f"alternation-{alternate}",
        "title": kind.name,
        "question": "Does alternating change the result?",
        "workload": f"alternation_steps:{kind.workload}",
        "environment": environment,
        "matrix": axis,
        "measure": {
            "iterations": kind.iterations,
            "launches": {"min": blocks, "max": blocks},
            "alternate": alternate,
            "relaunch_disturbed": 0,
        },
        "baseline": {"parameters": {kind.axis: value}} if is_parameter else {kind.axis: value},
        **kind.fixed,
    }


def launches(kind: Kind, alternate: str, blocks: int, folder: Path) -> Sequence[Launch]:
    """Run a row's scenario once."""
    (folder / "alternation_steps.py").write_text(STEPS, encoding="utf-8")
    file = folder / f"{alternate}.yaml"
    file.write_text(json.dumps(scenario(kind, alternate, blocks)), encoding="utf-8")
    command = (sys.executable, "-m", "corebound", "run", file.name, "--unlocked", "--json")
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode not in {0, 4}:
        sys.exit(f"{kind.name}: {done.stderr}")
    return jsonl.read(folder / json.loads(done.stdout)["records"]).launches


def sides(kind: Kind, made: Sequence[Launch]) -> tuple[CellSummary, CellSummary]:
    """The summaries of the baseline and of the other cell of one run."""
    cells = {launch.cell.key: launch.cell for launch in made}
    summaries = [
        summarise(cell, [launch for launch in made if launch.cell.key == key], "auto")
        for key, cell in cells.items()
    ]
    first, second = sorted(
        summaries,
        key=lambda summary: dict(summary.cell.axes)[kind.axis] != str(kind.values[0]),
    )
    return first, second


class Results(Struct, frozen=True, kw_only=True):
    """What one way of launching showed: logarithms, by block."""

    ratios: list[float]
    first_ns: list[float]
    second_ns: list[float]

    def add(self, first: CellSummary, second: CellSummary) -> None:
        """Add the blocks of one run: of its baseline and of the other cell."""
        self.ratios.extend(log_ratios(second, first).values())
        self.first_ns.extend(math.log(launch.median_ns) for launch in first.launches)
        self.second_ns.extend(math.log(launch.median_ns) for launch in second.launches)


def no_results() -> Results:
    """Results before the first run."""
    return Results(ratios=[], first_ns=[], second_ns=[])


def difference(here: Sequence[float], there: Sequence[float]) -> Interval | None:
    """The 95 % interval of the ratio of two geometric means, by Welch's t.

    Args:
        here: Logarithms.
        there: The logarithms of the values that they are divided by.
    """
    if min(len(here), len(there)) < 2:
        return None
    parts = [statistics.variance(values) / len(values) for values in (here, there)]
    error = math.sqrt(sum(parts))
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (here, there), strict=True)
    )
    middle = statistics.fmean(here) - statistics.fmean(there)
    return log_interval(middle, standard_error=error, freedom=freedom, confidence=0.95)


def row(kind: Kind, alternating: Results, separate: Results) -> str:
    """A row of the table, in Markdown."""
    ratios = [
        f"{math.exp(statistics.fmean(results.ratios)):.3f}" for results in (separate, alternating)
    ]
    differences = [
        percentages(difference(*pair))
        for pair in (
            (alternating.ratios, separate.ratios),
            (alternating.first_ns, separate.first_ns),
            (alternating.second_ns, separate.second_ns),
        )
    ]
    spreads = [f"{statistics.stdev(results.ratios):.1%}" for results in (separate, alternating)]
    return f"| {kind.name} | {' | '.join((*ratios, *differences, *spreads))} |"


def percentages(interval: Interval | None) -> str:
    """An interval of a factor near 1, as a difference in per cent."""
    if interval is None:
        return "–"
    return f"{interval.low - 1:+.1%} to {interval.high - 1:+.1%}"


def measured(kind: Kind, *, rounds: int, blocks: int) -> tuple[Results, Results]:
    """The results of a row, alternating and separate."""
    alternating, separate = no_results(), no_results()
    with tempfile.TemporaryDirectory() as name:
        for number in range(rounds):
            order = (("auto", alternating), ("never", separate))
            for alternate, results in order if number % 2 else reversed(order):
                results.add(*sides(kind, launches(kind, alternate, blocks, Path(name))))
    return alternating, separate


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10, help="runs of each kind")
    parser.add_argument("--blocks", type=int, default=3, help="blocks of each run")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    print(
        "| step | ratio, separate | alternating | alternating / separate: ratio | baseline's time"
        " | other's time | spread of a block's ratio, separate | alternating |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for kind in KINDS:
        if options.only in kind.name:
            results = measured(kind, rounds=options.rounds, blocks=options.blocks)
            print(row(kind, *results), flush=True)


if __name__ == "__main__":
    main()
