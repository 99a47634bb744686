"""Error rates of the verdicts.

The functions that judge real launches judge simulated ones, whose true ratio is known. For
comparison, two tests treat every iteration as an independent measurement, as many tools do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from scipy import stats

from corebound.scenario.cell import Binding, Cell, Threads
from corebound.stats.comparison import Comparison, compare
from corebound.stats.intervals import geometric_mean, geometric_mean_interval
from corebound.stats.launch_summary import CellSummary, LaunchSummary
from corebound.stats.warmup import SteadyState

ITERATIONS = 50
MARGIN = 0.02
STEP = 0.03
TYPICAL_NS = 10e6
STEADY = SteadyState(kind="steady", start=0)

Array = NDArray[np.float64]
# (generator, trials, blocks) -> logarithms of samples, (trials, blocks, 2 cells, iterations)
Draw = Callable[[np.random.Generator, int, int], Array]


class Noise(Struct, frozen=True):
    """A distribution of launches and iterations."""

    name: str
    draw: Draw


def _independent(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    samples: Array = rng.normal(0, 0.01, (trials, blocks, 2, ITERATIONS))
    return samples


def _heavy_tail(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    samples: Array = 0.01 * rng.standard_t(3, (trials, blocks, 2, ITERATIONS))
    return samples


def _heavy_launches(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    return _independent(rng, trials, blocks) + 0.01 * rng.standard_t(3, (trials, blocks, 2, 1))


def _far_launches(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    far = rng.random((trials, blocks, 2, 1)) < 0.1
    between = rng.normal(0, 0.01, (trials, blocks, 2, 1))
    return _independent(rng, trials, blocks) + np.where(far, np.log(1.5), 0.0) + between


def _correlated(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    steps = rng.normal(0, 0.02 * np.sqrt(1 - 0.8**2), (trials, blocks, 2, ITERATIONS))
    series = np.empty_like(steps)
    series[..., 0] = rng.normal(0, 0.02, (trials, blocks, 2))
    for index in range(1, ITERATIONS):
        series[..., index] = 0.8 * series[..., index - 1] + steps[..., index]
    return series


def _between(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    return _independent(rng, trials, blocks) + rng.normal(0, 0.015, (trials, blocks, 2, 1))


def _bimodal(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    slow: Array = np.log(1.06) * rng.integers(0, 2, (trials, blocks, 2, 1)).astype(np.float64)
    return _independent(rng, trials, blocks) + slow


def _drift(rng: np.random.Generator, trials: int, blocks: int) -> Array:
    walk = np.cumsum(rng.normal(0, 0.02, (trials, blocks, 1, 1)), axis=1)
    process = rng.normal(0, 0.005, (trials, blocks, 2, 1))
    return _independent(rng, trials, blocks) + walk + process


NOISES = (
    Noise("independent iterations, 1 %", _independent),
    Noise("heavy tail, Student t3", _heavy_tail),
    Noise("launches with a heavy tail, t3", _heavy_launches),
    Noise("one launch in ten takes half more", _far_launches),
    Noise("correlated iterations, AR(0.8)", _correlated),
    Noise("processes differ by 1.5 %", _between),
    Noise("processes of two kinds, 6 % apart", _bimodal),
    Noise("the session drifts", _drift),
)


def simulated_cell(name: str) -> Cell:
    """A cell whose only axis has this value."""
    return Cell(
        scenario="simulation",
        axes=(("cell", name),),
        binding=Binding(),
        threads=Threads(),
        workers=1,
        framework="none",
        environment="host",
        parameters=(),
        env=(),
        where="benchmarks/simulation.py:1",
    )


CELL, BASELINE = simulated_cell("cell"), simulated_cell("baseline")


def launch_of(block: int, median_ns: float, *, alternated: bool = False) -> LaunchSummary:
    """A launch whose median is known, and which alternated with the baseline's."""
    return LaunchSummary(
        launch=f"{block}-0",
        block=block,
        median_ns=median_ns,
        p99_ns=None,
        cpu_median_ns=None,
        used=ITERATIONS,
        steady=STEADY,
        alternated=("baseline",) if alternated else (),
    )


def summary_of(
    cell: Cell, medians_ns: Sequence[float], *, first_block: int = 0, alternated: bool = False
) -> CellSummary:
    """A summary of launches whose medians are known, and which alternated with their baseline."""
    return CellSummary(
        cell=cell,
        launches=tuple(
            launch_of(block, median_ns, alternated=alternated)
            for block, median_ns in enumerate(medians_ns, start=first_block)
        ),
        counts=(("ok", len(medians_ns)),) if medians_ns else (),
        median_ns=geometric_mean(medians_ns) if medians_ns else None,
        interval=geometric_mean_interval(medians_ns),
        p99_ns=None,
        cpu_median_ns=None,
        spread_ratio=None,
        unsettled=0,
    )


def judge(medians_ns: Array, *, adaptive: bool = False, alternated: bool = False) -> Comparison:
    """Compare the launches of one trial, given as medians of shape (blocks, 2)."""
    comparison = compare(
        summary_of(CELL, [float(value) for value in medians_ns[:, 0]], alternated=alternated),
        summary_of(BASELINE, [float(value) for value in medians_ns[:, 1]]),
        margin=MARGIN,
        adaptive=adaptive,
    )
    assert comparison is not None
    return comparison


def medians_of(samples: Array, slowdown: float) -> Array:
    """Launch medians in nanoseconds; the cell, first of each pair, is slower by `slowdown`."""
    medians = TYPICAL_NS * np.exp(np.median(samples, axis=-1))
    medians[..., 0] *= 1 + slowdown
    return medians


def _alarms(p_values: Iterable[float]) -> float:
    return float(np.mean([p < 0.05 for p in p_values]))


def compared(rng: np.random.Generator, trials: int) -> None:
    """Print coverage, false alarms and power, and the false alarms of pooled tests."""
    print(
        f"Two cells, {ITERATIONS} iterations per launch, {trials} trials. For an A/A pair: coverage"
    )
    print(
        "of the 95 % interval; verdicts faster or slower; the same for tests on pooled iterations"
    )
    print(f"(t test, Mann-Whitney). Last: verdict slower for a slowdown of {STEP:.0%}.\n")
    print(
        f"{'noise':<36}{'launches':>9}{'covers':>8}{'alarms':>8}"
        f"{'pooled t':>10}{'MWU':>7}{'found':>7}"
    )
    for noise in NOISES:
        for blocks in (6, 10, 20, 30):
            samples = noise.draw(rng, trials, blocks)
            null = [judge(trial) for trial in medians_of(samples, 0.0)]
            found = [judge(trial) for trial in medians_of(samples, STEP)]
            covers = np.mean([c.interval is not None and c.interval.contains(1.0) for c in null])
            alarms = np.mean([c.verdict in {"faster", "slower"} for c in null])
            power = np.mean([c.verdict == "slower" for c in found])
            few = samples[:200]
            pooled = few.transpose(0, 2, 1, 3).reshape(len(few), 2, -1)
            t_test = _alarms(stats.ttest_ind(a, b).pvalue for a, b in pooled)
            ranks = _alarms(stats.mannwhitneyu(a, b).pvalue for a, b in pooled)
            print(
                f"{noise.name:<36}{blocks:>9}{covers:>8.1%}{alarms:>8.1%}"
                f"{t_test:>10.1%}{ranks:>7.1%}{power:>7.1%}"
            )
    print()


def ordered(rng: np.random.Generator, trials: int) -> None:
    """Print the false alarms with and without launches in blocks."""
    print(f"The session drifts, {trials} A/A trials: verdicts faster or slower.\n")
    print(f"{'launches':>9}{'in blocks':>11}{'one cell after the other':>26}")
    for blocks in (6, 10, 20, 30):
        medians = medians_of(_drift(rng, trials, 2 * blocks), 0.0)
        paired = [judge(trial[:blocks]) for trial in medians]
        sequential = [
            compare(
                summary_of(CELL, [float(value) for value in trial[:blocks, 0]]),
                summary_of(BASELINE, [float(v) for v in trial[blocks:, 1]], first_block=blocks),
                margin=MARGIN,
            )
            for trial in medians
        ]
        shares = [
            np.mean([c is not None and c.verdict in {"faster", "slower"} for c in comparisons])
            for comparisons in (paired, sequential)
        ]
        print(f"{blocks:>9}{shares[0]:>11.1%}{shares[1]:>26.1%}")
    print()
