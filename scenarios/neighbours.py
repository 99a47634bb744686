"""The workloads of noisy-neighbours.yaml: one is measured while another process does the other.

`products` multiplies matrices that fit into a cache; `copies` moves more memory than caches hold.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

Step = Callable[[], np.ndarray]
_SIZE = 512
_COPIED = 8_000_000


def products() -> Step:
    """Multiply two matrices of 1 MiB each, with as many threads as the BLAS has."""
    numbers = np.random.default_rng(1)
    left, right = (numbers.standard_normal((_SIZE, _SIZE), dtype=np.float32) for _ in range(2))
    out = np.empty_like(left)
    return lambda: np.matmul(left, right, out=out)


def copies() -> Step:
    """Copy 61 MiB, with one thread."""
    source = np.arange(_COPIED, dtype=np.float64)
    target = np.empty_like(source)

    def copy() -> np.ndarray:
        np.copyto(target, source)
        return target

    return copy


_WORK: dict[str, Callable[[], Step]] = {"products": products, "copies": copies}


class Measured:
    """One workload, and the process beside it."""

    def __init__(self, name: str, neighbour: subprocess.Popen[bytes] | None) -> None:
        self.name, self.step, self._neighbour = name, _WORK[name](), neighbour

    def check(self, result: np.ndarray) -> None:
        """A copy equals its source, and a product has the right mean square; the other runs.

        Raises:
            ValueError: one of that does not hold.
        """
        if self._neighbour is not None and self._neighbour.poll() is not None:
            raise ValueError("the neighbour has ended")
        if self.name == "copies" and result[-1] != _COPIED - 1:
            raise ValueError("the copy is wrong")
        # The sum of 512 products of standard normal numbers has the variance 512.
        if self.name == "products" and not 0.8 < np.mean(result**2) / _SIZE < 1.2:
            raise ValueError("the product is wrong")

    def teardown(self) -> None:
        """End the neighbour."""
        if self._neighbour is not None:
            self._neighbour.kill()
            self._neighbour.wait()


def beside(*, measured: str, neighbour: str, cores: str) -> Measured:
    """Set up what is measured, and start its neighbour.

    Args:
        measured: `products` or `copies`.
        neighbour: `none`, or `other`, which is the one that is not measured.
        cores: `shared`: both may run everywhere; `split`: each has half of the cores.

    Raises:
        ValueError: there is only one core to split.
    """
    own, others = _cpus(split=cores == "split")
    process = None
    if neighbour == "other":
        (name,) = _WORK.keys() - {measured}
        words = [sys.executable, __file__, name, ",".join(map(str, others))]
        process = subprocess.Popen(words, stdout=subprocess.PIPE)
        if process.stdout is None or process.stdout.readline() != b"ready\n":
            raise ValueError("the neighbour did not start")
    _stay_on(own)
    return Measured(measured, process)


def _cpus(*, split: bool) -> tuple[list[int], list[int]]:
    """The CPUs of what is measured, and of its neighbour; siblings are not parted."""
    allowed = os.sched_getaffinity(0)
    if not split:
        return sorted(allowed), sorted(allowed)
    folder = "/sys/devices/system/cpu/cpu{}/topology/core_cpus_list"
    cores: dict[str, list[int]] = {}
    for cpu in sorted(allowed):
        cores.setdefault(Path(folder.format(cpu)).read_text(), []).append(cpu)
    halves = [*cores.values()]
    middle = len(halves) // 2
    if not middle:
        raise ValueError("there is only one core, which cannot be split")
    return [*chain(*halves[:middle])], [*chain(*halves[middle:])]


def _stay_on(cpus: Sequence[int]) -> None:
    """Keep every thread of this process on these CPUs, and compute with as many threads."""
    for task in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(task.name), cpus)
    threadpool_limits(len(cpus), user_api="blas")


def main() -> None:
    """Do one workload until this process is killed."""
    name, cpus = sys.argv[1:]
    _stay_on([int(cpu) for cpu in cpus.split(",")])
    step = _WORK[name]()
    step()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        step()


if __name__ == "__main__":
    main()
