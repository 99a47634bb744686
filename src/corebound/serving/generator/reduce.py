"""Reduces the results of all requests to a launch's record: latencies, windows, MLPerf values."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.scenario.traffic import Answered, MlPerf, Traffic, Window
from corebound.serving.generator.driver import OK, Samples
from corebound.stats import latency
from corebound.stats.latency import bound_percentile, least_within

# The percentiles that MLPerf's rules define for its scenarios (Offline has none).
PERCENTILES = {"single-stream": 0.9, "multi-stream": 0.99, "server": 0.99}

MOST_WINDOWS = 200
# The window lengths; for longer runs, 1 s is doubled as often as needed.
_WINDOWS_MS = (100, 200, 500, 1000)


class Cost(Struct, frozen=True, kw_only=True):
    """The generator's resource use while measuring: CPU time, wall time and connections."""

    cpu_ns: int
    wall_ns: int
    connections: int
    opened: int


def reduce(samples: Samples, traffic: Traffic, *, began_ns: int, cost: Cost) -> Answered:
    """Compute the record of a launch's requests.

    Args:
        samples: The result of every request.
        traffic: The requested traffic.
        began_ns: The first intended send time, on the clock of the samples.
        cost: The generator's resource use while measuring.
    """
    latencies_ns = np.array(samples.latency_ns, dtype=np.int64)
    ended_ns = np.array(samples.ended_ns, dtype=np.int64) - began_ns
    well = np.array(samples.error) == OK
    duration_ns = int(ended_ns.max())
    length_ns = window_ns(duration_ns)
    return Answered(
        began_ns=began_ns,
        duration_ns=duration_ns,
        ok=samples.ok,
        errors=samples.errors,
        latencies=latency.encode(latencies_ns[well]),
        lateness=latency.encode(np.array(samples.lateness_ns)),
        waited=samples.waited,
        window_ns=length_ns,
        windows=_windows(latencies_ns, ended_ns, well, length_ns),
        cpu_ns=cost.cpu_ns,
        wall_ns=cost.wall_ns,
        connections=cost.connections,
        opened=cost.opened,
        mlperf=mlperf(latencies_ns, well, traffic, duration_ns),
    )


def window_ns(duration_ns: int) -> int:
    """The window length that gives about 200 windows at most; at least 100 ms.

    >>> window_ns(5_000_000_000), window_ns(90_000_000_000), window_ns(600_000_000_000)
    (100000000, 500000000, 4000000000)
    """
    for length_ms in _WINDOWS_MS:
        if duration_ns < MOST_WINDOWS * length_ms * 1_000_000:
            return length_ms * 1_000_000
    # Windows of 1 s would be short enough, but a record must not hold thousands of them.
    times = math.ceil(math.log2((duration_ns + 1) / (MOST_WINDOWS * 1_000_000_000)))
    return int(2**times) * 1_000_000_000


def _windows(
    latencies_ns: NDArray[np.int64],
    ended_ns: NDArray[np.int64],
    well: NDArray[np.bool_],
    length_ns: int,
) -> tuple[Window, ...]:
    at = ended_ns // length_ns
    count = int(at.max()) + 1
    ok = np.bincount(at[well], minlength=count)
    errors = np.bincount(at[~well], minlength=count)
    worst_ns = np.zeros(count, dtype=np.int64)
    np.maximum.at(worst_ns, at[well], latencies_ns[well])
    return tuple(
        Window(ok=int(good), errors=int(bad), worst_ns=int(worst) if good else None)
        for good, bad, worst in zip(ok, errors, worst_ns, strict=True)
    )


def mlperf(
    latencies_ns: NDArray[np.int64],
    well: NDArray[np.bool_],
    traffic: Traffic,
    duration_ns: int,
) -> MlPerf | None:
    """The result by MLPerf's rules; None for shapes that are not MLPerf scenarios.

    Args:
        latencies_ns: The latency of every request, in the order of sending.
        well: Which requests succeeded.
        traffic: The requested traffic.
        duration_ns: From the first intended send to the last answer.
    """
    # MLPerf does not define failed queries; here a failed one is slower than any other.
    samples = np.where(well, latencies_ns, math.inf)
    queries = samples.reshape(-1, traffic.samples_a_query or 1).max(axis=1)
    if traffic.shape == "offline":
        return MlPerf(
            queries=1,
            percentile=None,
            needed=None,
            satisfied=bool(well.all()),
            samples_per_s=latency.throughput_per_s(int(well.sum()), duration_ns),
        )
    share = PERCENTILES.get(traffic.shape)
    if share is None:
        return None
    if traffic.bound_ms is not None:
        over = int((queries > traffic.bound_ms * 1e6).sum())
        needed = least_within(over, share=share) + over
        return MlPerf(
            queries=len(queries),
            percentile=share,
            needed=needed,
            satisfied=len(queries) >= needed,
            over_bound=over,
        )
    found = bound_percentile(queries, share=share)
    answered = found.value is not None and math.isfinite(found.value)
    return MlPerf(
        queries=len(queries),
        percentile=share,
        needed=found.needed,
        satisfied=answered,
        latency_ns=int(found.value) if answered and found.value is not None else None,
        discarded=found.discarded,
    )
