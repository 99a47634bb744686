"""The effect on a step of a program on one of its CPUs: `python -m benchmarks.competitor torch 2`.

The program is on and off by turns, so that the load of the host affects both. Needs NumPy or
PyTorch; set OMP_NUM_THREADS and OPENBLAS_NUM_THREADS to the number of threads.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

_COMPETITOR = """
import sys, time
busy_s, period_s = float(sys.argv[1]), 0.02
while True:
    began_s = time.perf_counter()
    while time.perf_counter() - began_s < busy_s * period_s:
        pass
    time.sleep(max(0, began_s + period_s - time.perf_counter()))
"""
_SLICE_S = 0.7


def main() -> None:
    """Print the ratio of the medians, and the share of the time that a thread waited at most."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.competitor", description=__doc__)
    parser.add_argument("framework", choices=("numpy", "torch"))
    parser.add_argument("threads", type=int)
    parser.add_argument("--busy", type=float, nargs="+", default=[0.1, 0.2, 0.4, 1.0])
    parser.add_argument("--rounds", type=int, default=4)
    options = parser.parse_args()
    cpus = sorted(os.sched_getaffinity(0))[-options.threads :]
    os.sched_setaffinity(0, cpus)
    step = _step(options.framework, options.threads)
    for _ in range(20):
        step()
    for busy in options.busy:
        rounds = [_round(step, cpus[0], busy) for _ in range(options.rounds)]
        ratios, on, off = zip(*rounds, strict=True)
        print(
            f"busy {busy:.0%}: {statistics.median(ratios):.2f}× ({min(ratios):.2f}-"
            f"{max(ratios):.2f}), longest wait {statistics.median(on):.1%},"
            f" without it {statistics.median(off):.1%}",
            flush=True,
        )


def _round(step: Callable[[], object], cpu: int, busy: float) -> tuple[float, float, float]:
    before_s, before_wait = _slice(step)
    command = ("taskset", "-c", str(cpu), sys.executable, "-c", _COMPETITOR, str(busy))
    with subprocess.Popen(command) as competitor:
        try:
            time.sleep(0.1)
            on_s, on_wait = _slice(step)
        finally:
            competitor.kill()
    after_s, after_wait = _slice(step)
    return on_s / (before_s * after_s) ** 0.5, on_wait, (before_wait + after_wait) / 2


def _slice(step: Callable[[], object]) -> tuple[float, float]:
    """The median step, and the share of the time that the thread that waited most waited."""
    before_ns, began_s, walls_s = _waits_ns(), time.perf_counter(), []
    while (now_s := time.perf_counter()) - began_s < _SLICE_S:
        step()
        walls_s.append(time.perf_counter() - now_s)
    most_ns = max(wait_ns - before_ns.get(tid, 0) for tid, wait_ns in _waits_ns().items())
    return statistics.median(walls_s), most_ns / 1e9 / (time.perf_counter() - began_s)


def _waits_ns() -> dict[str, int]:
    tasks = Path("/proc/self/task").iterdir()
    return {task.name: int((task / "schedstat").read_text().split()[1]) for task in tasks}


def _step(library: str, threads: int) -> Callable[[], object]:
    if library == "numpy":
        matrix = import_module("numpy").random.rand(1000, 1000)
        return lambda: matrix @ matrix
    torch = import_module("torch")
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    layer = torch.nn.Conv2d(64, 64, 3, padding=1)
    network = torch.nn.Sequential(*(layer for _ in range(8)))
    image = torch.rand(1, 64, 56, 56)
    return lambda: network(image)


if __name__ == "__main__":
    main()
