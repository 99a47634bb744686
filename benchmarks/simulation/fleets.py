"""How often a fleet without a change has a finding, and how often a small shared one is found."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence

import numpy as np

from corebound.records.history import HistoryPoints, Moment, Series
from corebound.records.run_record import Commit
from corebound.stats.history.pooled import is_pooled, pooled_series
from corebound.stats.history.regressions import analyse

_NIGHTS, _CHANGE = 60, 45
# Standard deviations of logarithms: between hosts, and of a host's nightly values.
_BETWEEN, _NOISE = 0.03, 0.02
# Of a host's drift, from one night to the next.
_DRIFT = 0.002
# The least change that matters: by default, and for planted changes of 1 %.
_MARGIN, _SMALL_MARGIN = 0.02, 0.005
_NOISES = ("normal", "t3", "lognormal", "two modes", "drift", "all nights shift 1 %")
_HOSTS = (10, 50)
_STEPS = (0.01, 0.02, 0.03)
_MOMENTS = tuple(
    Moment(
        f"2026-{1 + night // 28:02}-{1 + night % 28:02}T02:00:00Z",
        f"r{night}",
        Commit(sha=f"{night:040x}", subject="", committed_at="", dirty=False),
    )
    for night in range(_NIGHTS)
)
_KEYS = ((("kernel", "6.8"),),) * _NIGHTS


def null_fleets(rng: np.random.Generator, trials: int) -> None:
    """Print the findings of fleets of 200 hosts in 4 classes, one cell, without any change."""
    classes = {f"{host:04}": f"class {host % 4}" for host in range(200)}
    print(f"{'200 hosts, no change':24} {'margin':>7} {'pooled':>8} {'any host':>9} {'hosts':>7}")
    for noise in _NOISES:
        for margin in (_MARGIN, _SMALL_MARGIN):
            pooled, fleets, hosts = 0, 0, 0
            for _ in range(trials):
                clear = _clear(_fleet(rng, 200, noise, margin=margin), classes)
                single = sum(not is_pooled(series) for series in clear)
                pooled += any(map(is_pooled, clear))
                fleets += single > 0
                hosts += single
            print(f"{noise:24} {margin:7.1%} {pooled / trials:8.1%} {fleets / trials:9.1%} "
                  f"{hosts / trials / 200:7.2%}", flush=True)  # fmt: skip


def planted(rng: np.random.Generator, trials: int) -> None:
    """Print how often a change that all hosts share is found: in all, and on a host alone."""
    print(f"{'shared change':24} {'hosts':>5} "
          + "".join(f"{f'{step:.0%}: pooled':>12} {'one host':>9}" for step in _STEPS))  # fmt: skip
    for noise in _NOISES[:-1]:
        for hosts in _HOSTS:
            cells = []
            for step in _STEPS:
                found, alone = 0, 0.0
                for _ in range(trials):
                    fleet = _fleet(rng, hosts, noise, step=math.log1p(step))
                    clear = _clear(fleet, {})
                    found += any(map(is_pooled, clear))
                    alone += sum(not is_pooled(series) for series in clear) / hosts
                cells.append(f"{found / trials:12.0%} {alone / trials:9.0%}")
            print(f"{noise:24} {hosts:5} " + "".join(cells), flush=True)


def _clear(fleet: Sequence[Series], classes: dict[str, str]) -> list[Series]:
    """The series with a clear change."""
    suite = [*fleet, *pooled_series(fleet, classes)]
    return [change.series for change in analyse(suite).changes if change.clear]


def _fleet(
    rng: np.random.Generator,
    hosts: int,
    noise: str,
    *,
    step: float = 0.0,
    margin: float = _SMALL_MARGIN,
) -> list[Series]:
    # A night on which everything is slower, on each host by itself or on all.
    shared = rng.normal(0, 0.01, _NIGHTS) if noise.startswith("all nights") else np.zeros(_NIGHTS)
    fleet = []
    for host in range(hosts):
        logs = 16 + rng.normal(0, _BETWEEN) + _NOISE * _values(rng, noise) + shared
        if noise == "drift":
            logs += np.cumsum(rng.normal(0, _DRIFT, _NIGHTS))
        logs[_CHANGE:] += step
        fleet.append(
            Series(
                project=None, host=f"{host:04}", host_name=f"host-{host}", scenario="s", title="s",
                cell="c", unit="ns", margin=margin, reproduce=(),
                points=HistoryPoints(
                    moments=_MOMENTS, values=array("d", np.exp(logs)), environment_keys=_KEYS
                ),
            )
        )  # fmt: skip
    return fleet


def _values(rng: np.random.Generator, noise: str) -> np.ndarray:
    """Nightly values with a standard deviation of about 1."""
    if noise == "t3":
        return rng.standard_t(3, _NIGHTS) / math.sqrt(3)
    if noise == "lognormal":
        return (rng.lognormal(0, 0.8, _NIGHTS) - math.exp(0.32)) / 1.31
    if noise == "two modes":
        return rng.choice([0.0, 2.0], _NIGHTS, p=[0.7, 0.3]) + rng.normal(0, 0.4, _NIGHTS)
    return rng.normal(0, 1, _NIGHTS)
