"""The cost of sampling a launch, for a step of 5 ms, on a CPU that the sampler shares.

Launches with and without sampling run in pairs, in alternating order, all on the one CPU that
the sampler uses too: the worst case. About one step in ten is interrupted by a sample, so the
mean of the steps is compared; a median would not show it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

import corebound
from corebound.launch.launch import LaunchResult, LaunchSpec, launch
from corebound.launch.supervisor_client import Supervision
from corebound.machine.topology import CpuId
from corebound.planning.models import Command, Placement, Slot
from corebound.stats.intervals import Interval, geometric_mean, geometric_mean_interval
from corebound.worker.protocol import Request

PAIRS = 12
ITERATIONS = 400
STEP_S = 0.005
# The first steps of a launch are slower; an eighth is well beyond that.
WARM_UP = ITERATIONS // 8

STEPS = "def steps(*, terms):\n    return lambda: sum(range(terms))\n"


class Cost(Struct, frozen=True, kw_only=True):
    """The cost of sampling.

    Attributes:
        ratios: For each pair, the mean step with sampling over the mean step without.
        look_shares: CPU time of the sampler as a share of its launch's duration.
    """

    ratios: tuple[float, ...]
    look_shares: tuple[float, ...]

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of the ratio."""
        return geometric_mean_interval(self.ratios)


def measure(pairs: int = PAIRS) -> Cost:
    """Measure this many pairs of launches."""
    ratios, shares = [], []
    with _one_cpu() as cpu, tempfile.TemporaryDirectory() as name:
        terms = _terms()
        folder = _suite(Path(name))
        with Supervision(folder) as supervision:
            for number in range(pairs):
                order = (True, False) if number % 2 else (False, True)
                pair = {
                    looks: _launch(supervision, folder, cpu=cpu, terms=terms, looks=looks)
                    for looks in order
                }
                ratios.append(_mean_ns(pair[True]) / _mean_ns(pair[False]))
                timed_ns = sum(pair[True].workers[0].wall_ns)
                shares.append(pair[True].look_ns / timed_ns)
    return Cost(ratios=tuple(ratios), look_shares=tuple(shares))


@contextlib.contextmanager
def _one_cpu() -> Iterator[int]:
    before = os.sched_getaffinity(0)
    cpu = max(before)
    os.sched_setaffinity(0, {cpu})
    try:
        yield cpu
    finally:
        os.sched_setaffinity(0, before)


def _terms() -> int:
    """The work that takes 5 ms, by the fastest of several tries, as other programs may run."""
    terms = 100_000
    seconds = []
    for _ in range(20):
        began_s = time.perf_counter()
        sum(range(terms))
        seconds.append(time.perf_counter() - began_s)
    return round(terms * STEP_S / min(seconds))


def _suite(folder: Path) -> Path:
    (folder / "library").mkdir()
    (folder / "library" / "corebound").symlink_to(Path(corebound.__file__).parent)
    (folder / "cost.py").write_text(STEPS, encoding="utf-8")
    return folder


def _launch(
    supervision: Supervision, folder: Path, *, cpu: int, terms: int, looks: bool
) -> LaunchResult:
    scratch = folder / "launch"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    argv = ("taskset", "-c", str(cpu), sys.executable, "-m", "corebound.worker")
    outcome = launch(
        LaunchSpec(
            placement=Placement(
                slots=(Slot(cpus=(CpuId(cpu),)),),
                threads=None,
                backend="taskset",
                memory="default",
                moment="before-start",
                bound=True,
            ),
            commands=(Command(argv=argv, env=()),),
            requests=(
                Request(
                    target="cost:steps",
                    command=None,
                    parameters={"terms": terms},
                    framework="none",
                    intra_op=None,
                    inter_op=None,
                    iterations=ITERATIONS,
                    seed=1,
                    path=[str(folder)],
                ),
            ),
            threads_asked=None,
            timeout_s=120.0,
            python_path=folder / "library",
            scratch=scratch,
            looks=looks,
        ),
        supervision,
        lambda: None,
    )
    assert outcome.status == "ok", outcome.reason
    return outcome


def _mean_ns(outcome: LaunchResult) -> float:
    return statistics.fmean(outcome.workers[0].wall_ns[WARM_UP:])


def main() -> None:
    """Print the cost of sampling, with its interval."""
    cost = measure()
    interval = cost.interval
    assert interval is not None, "an interval needs two pairs"
    print(
        f"a step of {STEP_S * 1e3:g} ms with and without sampling, {len(cost.ratios)} pairs:"
        f" {_percent(geometric_mean(cost.ratios) - 1)}"
        f" (95 %: {_percent(interval.low - 1)} to {_percent(interval.high - 1)};"
        " target under 0.5 %)"
    )
    print(f"CPU time of the sampler: {_percent(statistics.median(cost.look_shares))}")


def _percent(share: float) -> str:
    return f"{share * 100:+.2f} %"


if __name__ == "__main__":
    main()
