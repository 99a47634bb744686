"""How often a fleet of hosts without a difference has a finding, and how often one is found."""

from __future__ import annotations

import math

import numpy as np
from msgspec.structs import replace

from corebound.stats.between_hosts import (
    FLEET_ALPHA,
    ClassEstimate,
    Deviation,
    HostValue,
    compare_classes,
    deviations,
    estimate_class,
)
from corebound.stats.multiplicity import holm

_CONFIGURATIONS = 5
# Of logarithms: between hosts of a class, and of a host's own value.
_BETWEEN, _OWN = 0.01, 0.005
_CLASSES = {
    "10 classes of 20": (20,) * 10,
    "33 classes of 6": (6,) * 33,
    "7 classes of 4 to 100": (4, 5, 6, 10, 25, 50, 100),
    "48 classes of 3 to 5": (3, 4, 4, 5) * 12,
    "one class of 8": (8,),
}
_SPREADS = (
    "normal", "spreads vary", "t3", "lognormal", "two kinds", "5 % differ 3 times as much",
    "drift", "t3, the same in all configurations",
)  # fmt: skip
_OUTLIER_SIZES = (0.05, 0.07, 0.1, 0.15)
_DIFFERENCES = (0.05, 0.01)

Fleet = list[list[HostValue]]


def findings(rng: np.random.Generator, trials: int) -> None:
    """Print false findings of null fleets of 200 hosts, and which planted ones are found."""
    print(f"{'about 200 hosts, 5 configurations':58} {'null: outlier':>13} {'class':>6}"
          + "".join(f"{f'host {size:.0%}':>11}" for size in _OUTLIER_SIZES)
          + "".join(f"{f'class {size:.0%}':>11}" for size in _DIFFERENCES))  # fmt: skip
    for name, sizes in _CLASSES.items():
        for spread in _SPREADS:
            rates = np.zeros(2 + len(_OUTLIER_SIZES) + len(_DIFFERENCES))
            for _ in range(trials):
                fleet = _fleet(rng, sizes, spread)
                estimates = [*map(estimate_class, fleet)]
                rates += (
                    any(each.is_outlier for group in _deviations(fleet) for each in group),
                    any(_differ(estimates)),
                    # Of a class that is large enough to have outliers.
                    *(
                        _deviations(_with_outlier(fleet, math.log1p(size)))[-1][0].is_outlier
                        for size in _OUTLIER_SIZES
                    ),
                    *(
                        _differ(_with_difference(estimates, math.log1p(size)))[0]
                        for size in _DIFFERENCES
                    ),
                )
            shown = " ".join(f"{rate / trials:10.1%}" for rate in rates)
            print(f"{f'{name}, {spread}':60} {shown}", flush=True)


def one_percent(rng: np.random.Generator, trials: int) -> None:
    """Print how often one of two classes that is 1 % faster is found, by hosts and their error."""
    own_errors = (0.002, 0.005, 0.01)
    print(f"{'2 classes, 1 % apart: hosts of each':38}"
          + "".join(f"{f'own error {own:.1%}':>16}" for own in own_errors))  # fmt: skip
    for between in (0.005, 0.01, 0.02):
        for size in (5, 20, 100):
            found = [
                sum(
                    _differ(_with_difference([*map(estimate_class, fleet)], math.log1p(0.01)))[0]
                    for fleet in (
                        _fleet(rng, (size, size), "normal", between=between, own=own)
                        for _ in range(trials)
                    )
                )
                for own in own_errors
            ]
            shown = " ".join(f"{rate / trials:15.0%}" for rate in found)
            print(f"{f'{size}, hosts differ by {between:.1%}':38} {shown}", flush=True)


def _fleet(
    rng: np.random.Generator,
    sizes: tuple[int, ...],
    spread: str,
    *,
    between: float = _BETWEEN,
    own: float = _OWN,
) -> Fleet:
    """The values of each class and configuration."""
    # A host that differs may do so in all configurations.
    shared = [rng.standard_t(3, size) / 2 for size in sizes]
    share = 0.9 if spread.startswith("t3,") else 0.0
    configurations = [_between(rng, spread, sizes) for _ in range(_CONFIGURATIONS)]
    fleet = []
    for at, size in enumerate(sizes):
        for configuration in configurations:
            scale = between * math.exp(rng.normal(0, 0.5 * (spread == "spreads vary")))
            variances = own**2 * rng.lognormal(0, 0.3, size)
            logs = scale * (share * shared[at] + math.sqrt(1 - share**2) * configuration[at])
            logs += rng.normal(0, np.sqrt(variances))
            fleet.append(
                [
                    HostValue(log=float(log), variance=float(variance))
                    for log, variance in zip(logs, variances, strict=True)
                ]
            )
    return fleet


def _between(rng: np.random.Generator, spread: str, sizes: tuple[int, ...]) -> list[np.ndarray]:
    """How the hosts of each class differ, with a standard deviation of about 1."""
    hosts = sum(sizes)
    values = rng.normal(0, 1, hosts)
    if spread == "t3":
        values = rng.standard_t(3, hosts) / math.sqrt(3)
    elif spread == "lognormal":
        values = (rng.lognormal(0, 0.8, hosts) - math.exp(0.32)) / 1.31
    elif spread == "two kinds":
        values = rng.choice([-0.6, 1.4], hosts, p=[0.7, 0.3]) + rng.normal(0, 0.3, hosts)
    elif spread.startswith("5 %"):
        values *= rng.choice([1, 3], hosts, p=[0.95, 0.05])
    elif spread == "drift":
        # Hosts are measured one after the other, in any order, while something drifts.
        values = rng.permutation(values.cumsum() / math.sqrt(hosts / 6))
    return np.split(values, np.cumsum(sizes)[:-1])


def _deviations(fleet: Fleet) -> tuple[tuple[Deviation, ...], ...]:
    """Each class has the same hosts in all its configurations."""
    hosts = [
        [f"{at // _CONFIGURATIONS}-{host}" for host in range(len(group))]
        for at, group in enumerate(fleet)
    ]
    return deviations(fleet, hosts)


def _with_outlier(fleet: Fleet, size: float) -> Fleet:
    first, *others = fleet[-1]
    moved = HostValue(log=first.log + size, variance=first.variance)
    return [*fleet[:-1], [moved, *others]]


def _with_difference(estimates: list[ClassEstimate], size: float) -> list[ClassEstimate]:
    """The first class is faster in the first configuration."""
    first, *others = estimates
    return [replace(first, log=first.log + size), *others]


def _differ(estimates: list[ClassEstimate]) -> tuple[bool, ...]:
    """Whether the classes differ, for each configuration."""
    tests = [
        compare_classes(estimates[configuration::_CONFIGURATIONS])
        for configuration in range(_CONFIGURATIONS)
    ]
    p_values = [test.p_value if test is not None else None for test in tests]
    return holm(p_values, alpha=FLEET_ALPHA)
