"""How often a fleet of hosts without a difference has a finding, and how often one is found."""

from __future__ import annotations

import math

import numpy as np

from corebound.stats.between_hosts import (
    FLEET_ALPHA,
    HostValue,
    compare_classes,
    deviations,
    estimate_class,
)
from corebound.stats.multiplicity import holm

_CONFIGURATIONS = 5
# Of logarithms: between hosts of a class, and of a host's own value.
_BETWEEN, _OWN = 0.03, 0.01
_CLASSES = {
    "10 classes of 20": (20,) * 10,
    "33 classes of 6": (6,) * 33,
    "4 to 100 hosts": (4, 5, 6, 10, 25, 50, 100),
}
_OUTLIERS = (0.2, 0.4, 0.8)
_DIFFERENCE = 0.1

Fleet = list[list[HostValue]]


def findings(rng: np.random.Generator, trials: int) -> None:
    """Print false findings of null fleets of 200 hosts, and which planted ones are found."""
    print(f"{'fleet of 200 hosts':20} {'null: outlier':>14} {'class':>6} "
          + "".join(f"{f'found {size:.0%}':>12}" for size in map(math.expm1, _OUTLIERS))
          + f"{f'class {math.expm1(_DIFFERENCE):.0%}':>11}")  # fmt: skip
    for name, sizes in _CLASSES.items():
        for varied in (False, True):
            outlier, differs, found, told = 0, 0, [0] * len(_OUTLIERS), 0
            for _ in range(trials):
                fleet = _fleet(rng, sizes, varied=varied)
                outlier += _has_outlier(fleet)
                differs += any(_differ(fleet, sizes))
                for index, size in enumerate(_OUTLIERS):
                    found[index] += deviations(_with_outlier(fleet, size))[0][0].is_outlier
                told += _differ(_with_difference(fleet), sizes)[0]
            label = f"{name}{', spreads vary' if varied else ''}"
            rates = [outlier, differs, *found, told]
            print(f"{label:34} " + " ".join(f"{rate / trials:8.1%}" for rate in rates), flush=True)


def _fleet(rng: np.random.Generator, sizes: tuple[int, ...], *, varied: bool) -> Fleet:
    """The values of each class and configuration; spreads vary by a factor of e^0.5, or not."""
    fleet = []
    for size in sizes:
        for _ in range(_CONFIGURATIONS):
            spread = _BETWEEN * math.exp(rng.normal(0, 0.5 * varied))
            variances = _OWN**2 * rng.lognormal(0, 0.3, size)
            logs = rng.normal(0, spread, size) + rng.normal(0, np.sqrt(variances))
            fleet.append(
                [
                    HostValue(log=float(log), variance=float(variance))
                    for log, variance in zip(logs, variances, strict=True)
                ]
            )
    return fleet


def _has_outlier(fleet: Fleet) -> bool:
    return any(deviation.is_outlier for group in deviations(fleet) for deviation in group)


def _with_outlier(fleet: Fleet, size: float) -> Fleet:
    first = fleet[0][0]
    moved = HostValue(log=first.log + size, variance=first.variance)
    return [[moved, *fleet[0][1:]], *fleet[1:]]


def _with_difference(fleet: Fleet) -> Fleet:
    """The first class is faster in the first configuration."""
    moved = [HostValue(log=each.log + _DIFFERENCE, variance=each.variance) for each in fleet[0]]
    return [moved, *fleet[1:]]


def _differ(fleet: Fleet, sizes: tuple[int, ...]) -> tuple[bool, ...]:
    """Whether the classes differ, for each configuration."""
    tests = []
    for configuration in range(_CONFIGURATIONS):
        groups = fleet[configuration::_CONFIGURATIONS][: len(sizes)]
        tests.append(compare_classes([estimate_class(group) for group in groups]))
    p_values = [test.p_value if test is not None else None for test in tests]
    return holm(p_values, alpha=FLEET_ALPHA)
