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
    "50 classes of 3 to 5": (3, 4, 4, 5) * 12,
}
_SPREADS = ("normal", "spreads vary", "t3", "lognormal", "two kinds")
_OUTLIERS = (0.2, 0.4, 0.8)
_DIFFERENCE = 0.1
# Of classes whose hosts hardly differ.
_SMALL_DIFFERENCE, _SMALL_BETWEEN, _SMALL_OWN = math.log(1.01), 0.01, 0.005

Fleet = list[list[HostValue]]


def findings(rng: np.random.Generator, trials: int) -> None:
    """Print false findings of null fleets of 200 hosts, and which planted ones are found."""
    print(f"{'fleet of about 200 hosts':36} {'null: outlier':>13} {'class':>6} "
          + "".join(f"{f'found {size:.0%}':>12}" for size in map(math.expm1, _OUTLIERS))
          + f"{f'class {math.expm1(_DIFFERENCE):.0%}':>11} {'class 1%':>9}")  # fmt: skip
    for name, sizes in _CLASSES.items():
        for spread in _SPREADS:
            outlier, differs, found, told, small = 0, 0, [0] * len(_OUTLIERS), 0, 0
            for _ in range(trials):
                fleet = _fleet(rng, sizes, spread)
                outlier += _has_outlier(fleet)
                differs += any(_differ(fleet, sizes))
                for index, size in enumerate(_OUTLIERS):
                    # Of a class that is large enough to have outliers.
                    found[index] += deviations(_with_outlier(fleet, size))[-1][0].is_outlier
                told += _differ(_with_difference(fleet, _DIFFERENCE), sizes)[0]
                alike = _fleet(rng, sizes, spread, between=_SMALL_BETWEEN, own=_SMALL_OWN)
                small += _differ(_with_difference(alike, _SMALL_DIFFERENCE), sizes)[0]
            rates = [outlier, differs, *found, told, small]
            shown = " ".join(f"{rate / trials:8.1%}" for rate in rates)
            print(f"{f'{name}, {spread}':36} {shown}", flush=True)


def _fleet(
    rng: np.random.Generator,
    sizes: tuple[int, ...],
    spread: str,
    *,
    between: float = _BETWEEN,
    own: float = _OWN,
) -> Fleet:
    """The values of each class and configuration."""
    fleet = []
    for size in sizes:
        for _ in range(_CONFIGURATIONS):
            scale = between * math.exp(rng.normal(0, 0.5 * (spread == "spreads vary")))
            variances = own**2 * rng.lognormal(0, 0.3, size)
            logs = scale * _between(rng, spread, size) + rng.normal(0, np.sqrt(variances))
            fleet.append(
                [
                    HostValue(log=float(log), variance=float(variance))
                    for log, variance in zip(logs, variances, strict=True)
                ]
            )
    return fleet


def _between(rng: np.random.Generator, spread: str, size: int) -> np.ndarray:
    """How hosts of a class differ, with a standard deviation of about 1."""
    if spread == "t3":
        return rng.standard_t(3, size) / math.sqrt(3)
    if spread == "lognormal":
        return (rng.lognormal(0, 0.8, size) - math.exp(0.32)) / 1.31
    if spread == "two kinds":
        return rng.choice([-0.6, 1.4], size, p=[0.7, 0.3]) + rng.normal(0, 0.3, size)
    return rng.normal(0, 1, size)


def _has_outlier(fleet: Fleet) -> bool:
    return any(deviation.is_outlier for group in deviations(fleet) for deviation in group)


def _with_outlier(fleet: Fleet, size: float) -> Fleet:
    first, *others = fleet[-1]
    moved = HostValue(log=first.log + size, variance=first.variance)
    return [*fleet[:-1], [moved, *others]]


def _with_difference(fleet: Fleet, size: float) -> Fleet:
    """The first class is faster in the first configuration."""
    moved = [HostValue(log=each.log + size, variance=each.variance) for each in fleet[0]]
    return [moved, *fleet[1:]]


def _differ(fleet: Fleet, sizes: tuple[int, ...]) -> tuple[bool, ...]:
    """Whether the classes differ, for each configuration."""
    tests = []
    for configuration in range(_CONFIGURATIONS):
        groups = fleet[configuration::_CONFIGURATIONS][: len(sizes)]
        tests.append(compare_classes([estimate_class(group) for group in groups]))
    p_values = [test.p_value if test is not None else None for test in tests]
    return holm(p_values, alpha=FLEET_ALPHA)
