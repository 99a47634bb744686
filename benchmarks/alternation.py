"""Whether alternating is without bias, and what it is worth: `python -m benchmarks.alternation`.

Each row compares two configurations of a step, in two processes that are planned and placed like
those of `corebound run`. In each round both are timed twice, in random order: without
interruption, one after the other, and alternating, in time slices as short as a run's. Meanwhile
the other process is stopped, as in a run. If stopping changed what is measured, the two ratios
would differ, or the times of a configuration would.

Both ways are measured in the same processes, because processes of one configuration differ by
more than what is to be found. `--processes` is how many pairs of processes there are of each row.

The last columns show the benefit: how much the ratio varies from round to round, either way.

`--launches N` measures N launches of `corebound run` that alternate against N that do not, of more
rows. They show what processes decide for all their life, such as how often glibc returns memory to
the kernel. Runs of a few launches take turns, in random order. Page faults show differences that
are smaller than what a host disturbs.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct, field

import corebound
from corebound.analysis.scenario_result import analyse_scenario
from corebound.errors import NO_ANSWER
from corebound.records import jsonl
from corebound.stats.comparison import log_ratios
from corebound.stats.intervals import Interval, log_interval
from corebound.worker import protocol

STEPS = '''\
def products(*, side, repeat=1, copy="first"):
    """Matrix products in NumPy: small ones stay in the cache, large ones fill it."""
    import numpy

    left = numpy.random.default_rng(0).random((side, side), dtype="float32")

    def step():
        for _ in range(repeat):
            left @ left

    return step


def convolutions(*, image=56, layers=8, more=0, copy="first"):
    """Convolutions of 64 channels in PyTorch, and one more of 8 x `more` pixels."""
    import torch

    torch.manual_seed(0)

    def convolution():
        return torch.nn.Conv2d(64, 64, 3, padding=1)

    network = torch.nn.Sequential(*(convolution() for _ in range(layers)))
    batch = torch.rand(1, 64, image, image)
    small, small_batch = convolution(), torch.rand(1, 64, 8, max(more, 1))

    def step():
        with torch.inference_mode():
            network(batch)
            if more:
                small(small_batch)

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


WORKER = """\
import importlib, json, sys, time
from corebound.worker.__main__ import _adapter_of
from corebound.worker.timing import Timings

MOST = 1_000_000
task = json.loads(sys.argv[1])
adapter = importlib.import_module(_adapter_of(task["framework"]))
adapter.prepare(seed=1, intra_op=task["intra_op"], inter_op=None)
step = getattr(importlib.import_module("alternation_steps"), task["function"])(**task["parameters"])
for line in sys.stdin:
    request = json.loads(line)
    timings = Timings(MOST)
    timings.measure(
        step, iterations=MOST, wall_ns=time.perf_counter_ns, cpu_ns=lambda: 0, **request
    )
    print(json.dumps(timings.walls.tolist()), flush=True)
"""
# Iterations that are left out where a process was stopped for long before.
_SETTLING = 5


class Kind(Struct, frozen=True, kw_only=True):
    """One row: a workload and two configurations; the first is the baseline."""

    name: str
    workload: str
    framework: str
    axis: str
    values: tuple[Any, Any]
    fixed: Mapping[str, Any] = {}


KINDS = (
    Kind(
        name="NumPy, small products, one thread: the same twice",
        workload="products", framework="numpy", axis="copy", values=("first", "second"),
        fixed={"threads": 1, "parameters": {"side": 128, "repeat": 8}},
    ),
    Kind(
        name="NumPy: small against large working set",
        workload="products", framework="numpy", axis="side", values=(160, 1024),
        fixed={"threads": 1, "parameters": {"repeat": 1}},
    ),
    Kind(
        name="NumPy: one thread against two",
        workload="products", framework="numpy", axis="threads", values=(1, 2),
        fixed={"parameters": {"side": 768}},
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
# glibc keeps what it was given, so that no memory is returned between iterations.
_KEEPS_MEMORY = {
    "MALLOC_TRIM_THRESHOLD_": "1000000000",
    "MALLOC_MMAP_THRESHOLD_": "1000000000",
    "MALLOC_TOP_PAD_": "67108864",
}
# More rows of `--launches`.
LAUNCHED = tuple(
    Kind(
        name=f"PyTorch, {threads}, {memory}: {difference}",
        workload="convolutions", framework="pytorch", axis=axis, values=values,
        fixed={"threads": 1 if threads == "one thread" else 2, **env},
    )
    for threads in ("two threads", "one thread")
    for memory, env in (("glibc returns memory", {}), ("keeps memory", {"env": _KEEPS_MEMORY}))
    for difference, axis, values in (
        ("one small convolution more", "more", (0, 8)),
        ("the same twice", "copy", ("first", "second")),
    )
)  # fmt: skip
# The launches of one run. Runs of both ways take turns, so that they see the same host.
_LAUNCHES_OF_A_RUN = 3


def scenario(kind: Kind, measure: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The scenario of a row, as JSON, which is YAML too."""
    is_parameter = kind.axis not in AXES
    axis = {"parameters": {kind.axis: list(kind.values)}} if is_parameter else {
        kind.axis: list(kind.values)
    }  # fmt: skip
    environment = "host" if kind.framework == "none" else kind.framework
    return {
        "schema": 1,
        "name": "alternation",
        "title": kind.name,
        "question": "Does alternating change the result?",
        "workload": f"alternation_steps:{kind.workload}",
        "environment": environment,
        "matrix": axis,
        "measure": measure or {},
        **kind.fixed,
    }


def write_suite(kind: Kind, folder: Path, measure: Mapping[str, Any] | None = None) -> None:
    """Write the steps and the scenario of a row."""
    (folder / "alternation_steps.py").write_text(STEPS, encoding="utf-8")
    (folder / "row.yaml").write_text(json.dumps(scenario(kind, measure)), encoding="utf-8")


def planned(kind: Kind, folder: Path) -> Sequence[dict[str, Any]]:
    """The two cells of a row, as `corebound plan` prints them."""
    write_suite(kind, folder)
    command = (sys.executable, "-m", "corebound", "plan", "row.yaml", "--json")
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{kind.name}: {done.stderr}")
    cells: list[dict[str, Any]] = json.loads(done.stdout)["results"]
    return cells


class Configuration:
    """A process that iterates when asked to, and is stopped otherwise."""

    def __init__(self, kind: Kind, cell: Mapping[str, Any], folder: Path) -> None:
        """Start it."""
        (command,) = cell["commands"]
        task = {
            "framework": kind.framework,
            "intra_op": cell["settings"]["threads"]["intra_op"] or cell["placement"]["threads"],
            "function": kind.workload,
            "parameters": dict(cell["settings"]["parameters"]),
        }
        # What starts the worker, with this module's loop instead of it.
        argv = (*command["argv"][:-2], "-c", WORKER, json.dumps(task))
        path = os.pathsep.join((str(folder), str(Path(corebound.__file__).parents[1])))
        self._process = subprocess.Popen(
            argv,
            env={**os.environ, **command["env"], "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.times_ns(least_ns=1_000_000_000, least_iterations=20)

    def times_ns(self, *, least_ns: int, least_iterations: int) -> list[int]:
        """Iterate for this long and this often at least; the time of each iteration."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        os.killpg(self._process.pid, signal.SIGCONT)
        print(
            json.dumps({"least_ns": least_ns, "least_iterations": least_iterations}),
            file=stdin,
            flush=True,
        )
        times_ns: list[int] = json.loads(stdout.readline())
        os.killpg(self._process.pid, signal.SIGSTOP)
        return times_ns

    def close(self) -> None:
        """End it."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()


@contextmanager
def running(kind: Kind) -> Iterator[tuple[Configuration, Configuration]]:
    """The two processes of a row."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        processes = []
        for cell in planned(kind, folder):
            processes.append(Configuration(kind, cell, folder))
            stack.callback(processes[-1].close)
        first, second = processes
        yield first, second


def uninterrupted(sides: Sequence[Configuration], least_ns: int) -> list[float]:
    """The logarithm of each side's median, one after the other."""
    return [
        _log_median(side.times_ns(least_ns=least_ns, least_iterations=2 * _SETTLING)[_SETTLING:])
        for side in sides
    ]


def alternating(sides: Sequence[Configuration], least_ns: int) -> list[float]:
    """The logarithm of each side's median, in time slices without their first iteration."""
    times_ns: list[list[int]] = [[] for _ in sides]
    while min(map(sum, times_ns)) < least_ns:
        for side, own_ns in zip(sides, times_ns, strict=True):
            time_slice_ns = side.times_ns(
                least_ns=protocol.TIME_SLICE_NS, least_iterations=protocol.TIME_SLICE_ITERATIONS
            )
            own_ns.extend(time_slice_ns[1:])
    return [_log_median(own_ns) for own_ns in times_ns]


def _log_median(times_ns: Sequence[int]) -> float:
    return math.log(statistics.median(times_ns))


class Round(Struct, frozen=True, kw_only=True):
    """The logarithms of both sides' medians, either way."""

    uninterrupted: list[float]
    alternating: list[float]


def measured(
    kind: Kind, *, processes: int, rounds: int, seconds: float, rng: np.random.Generator
) -> list[Round]:
    """The rounds of a row."""
    results = []
    least_ns = round(seconds * 1e9)
    for _ in range(processes):
        with running(kind) as sides:
            for _ in range(rounds):
                logs = {}
                ways = (uninterrupted, alternating)
                for way in (ways[index] for index in rng.permutation(2)):
                    # In random order, so that a drift of the host affects both sides alike.
                    order = rng.permutation(2).tolist()
                    values = way([sides[index] for index in order], least_ns)
                    logs[way] = [value for _, value in sorted(zip(order, values, strict=True))]
                results.append(
                    Round(uninterrupted=logs[uninterrupted], alternating=logs[alternating])
                )
    return results


def interval(values: Sequence[float]) -> Interval:
    """The 95 % interval of the factor whose logarithms these are, by Student's t."""
    return log_interval(
        statistics.fmean(values),
        standard_error=statistics.stdev(values) / math.sqrt(len(values)),
        freedom=len(values) - 1,
    )


def row(kind: Kind, rounds: Sequence[Round]) -> str:
    """A row of the table, in Markdown."""
    ratios = [[logs[0] - logs[1] for logs in way] for way in (
        [one.uninterrupted for one in rounds], [one.alternating for one in rounds]
    )]  # fmt: skip
    differences = [
        [after - before for before, after in zip(*ratios, strict=True)],
        *([one.alternating[side] - one.uninterrupted[side] for one in rounds] for side in (0, 1)),
    ]
    texts = [f"{math.exp(statistics.fmean(logs)):.3f}" for logs in ratios]
    texts += [percentages(interval(logs)) for logs in differences]
    texts += [f"{statistics.stdev(logs):.1%}" for logs in ratios]
    return f"| {kind.name} | {' | '.join(texts)} |"


def percentages(one: Interval) -> str:
    """An interval of a factor near 1, as a difference in per cent."""
    return f"{one.low - 1:+.1%} to {one.high - 1:+.1%}"


class Launches(Struct, frozen=True, kw_only=True):
    """The launches of a row, either alternating or not.

    Attributes:
        log_ratios: For each block, the logarithm of the other's time over the baseline's.
        faults: For the baseline and for the other, the page faults an iteration of each launch.
        alternated: For each launch of the other, whether it alternated.
    """

    log_ratios: list[float] = field(default_factory=list)
    faults: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))
    alternated: list[bool] = field(default_factory=list)

    def add_run(self, kind: Kind, way: str) -> None:
        """Launch a few times more."""
        number = {"min": _LAUNCHES_OF_A_RUN, "max": _LAUNCHES_OF_A_RUN}
        measure = {
            "iterations": 110, "warmup": {"iterations": 10}, "alternate": way,
            "duplicates": "each", "launches": number,
        }  # fmt: skip
        with tempfile.TemporaryDirectory() as name:
            write_suite(kind, Path(name), measure)
            command = (sys.executable, "-m", "corebound", "run", "row.yaml", "--json")
            words = ("--unlocked", "--no-operators")
            done = subprocess.run((*command, *words), cwd=name, check=False, capture_output=True)
            # All launches may be invalid on a busy host.
            if done.returncode not in (0, NO_ANSWER):
                sys.exit(f"{kind.name}: {done.stderr.decode()}")
            stored = jsonl.read(Path(name) / json.loads(done.stdout)["records"])
            result = analyse_scenario(stored.run, stored.run.scenarios[0], stored.launches)
            baseline, other = result.cells
            speedups = log_ratios(other.summary, baseline.summary).values()
            self.log_ratios.extend(-speedup for speedup in speedups)
            self.alternated.extend(bool(launch.alternated) for launch in other.launches)
            for side, cell in zip(self.faults, (baseline, other), strict=True):
                faults = (launch.faults_per_iteration for launch in cell.launches)
                side.extend(number for number in faults if number is not None)


def launched(kind: Kind, *, launches: int, rng: np.random.Generator) -> tuple[Launches, Launches]:
    """At least this many launches that do not alternate, and as many that do."""
    ways = {"never": Launches(), "always": Launches()}
    for _ in range(math.ceil(launches / _LAUNCHES_OF_A_RUN)):
        for way in rng.permutation(list(ways)):
            ways[way].add_run(kind, way)
    return ways["never"], ways["always"]


def launched_row(kind: Kind, alone: Launches, alternating: Launches) -> str:
    """A row of the table of `--launches`, in Markdown."""
    logs = (alone.log_ratios, alternating.log_ratios)
    change = log_interval(
        statistics.fmean(logs[1]) - statistics.fmean(logs[0]),
        standard_error=math.hypot(*(statistics.stdev(one) / math.sqrt(len(one)) for one in logs)),
        freedom=sum(map(len, logs)) - 2,
    )
    faults = (quartiles(way.faults[side]) for side in (0, 1) for way in (alone, alternating))
    share = f"{statistics.fmean(alternating.alternated):.0%}"
    texts = (*(percentages(interval(one)) for one in logs), percentages(change), share, *faults)
    return f"| {kind.name} | {' | '.join(texts)} |"


def quartiles(values: Sequence[float]) -> str:
    """The median, and the quartiles in brackets."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:,.0f} ({low:,.0f}–{high:,.0f})"


def print_launched(options: argparse.Namespace, rng: np.random.Generator) -> None:
    """Measure the rows of `--launches`, and print their table."""
    print(
        "| launches of | time over the baseline's, by themselves | alternating | change"
        " | alternated | faults an iteration, baseline, by itself | alternating"
        " | other, by itself | alternating |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for kind in (*LAUNCHED, *KINDS):
        if options.only in kind.name:
            ways = launched(kind, launches=options.launches, rng=rng)
            print(launched_row(kind, *ways), flush=True)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", type=int, default=4, help="pairs of processes of each row")
    parser.add_argument("--rounds", type=int, default=10, help="rounds with each pair")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each side, in each way")
    parser.add_argument("--launches", type=int, help="compare this many launches of each way")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    # A stopped process would stay if this one were ended without cleaning up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    rng = np.random.default_rng(1)
    if options.launches:
        print_launched(options, rng)
        return
    print(
        "| step | ratio, uninterrupted | alternating | alternating / uninterrupted: ratio"
        " | baseline's time | other's time | spread of the ratio, uninterrupted | alternating |"
    )
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for kind in KINDS:
        if options.only in kind.name:
            rounds = measured(
                kind,
                processes=options.processes,
                rounds=options.rounds,
                seconds=options.seconds,
                rng=rng,
            )
            print(row(kind, rounds), flush=True)


if __name__ == "__main__":
    main()
