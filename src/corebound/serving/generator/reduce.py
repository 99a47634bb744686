"""Reduces the results of all requests to a launch's record: latencies, windows, MLPerf values."""

import math

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from corebound.scenario.traffic import (
    Answered,
    HighestRate,
    MlPerf,
    SampledRequest,
    Streamed,
    Streaming,
    Traffic,
    Window,
)
from corebound.serving.generator.driver import OK, Samples
from corebound.stats import latency
from corebound.stats.latency import bound_percentile, least_within

# The percentiles that MLPerf's rules define for its scenarios (Offline has none).
PERCENTILES = {"single-stream": 0.9, "multi-stream": 0.99, "server": 0.99}

# So many requests are kept one by one, to show how they waited: less than a record's threads take.
MOST_SAMPLED = 200

MOST_WINDOWS = 200
# The window lengths; for longer runs, 1 s is doubled as often as needed.
_WINDOWS_MS = (100, 200, 500, 1000)


class Cost(Struct, frozen=True, kw_only=True):
    """The generator's resource use while measuring: CPU time, wall time and connections."""

    cpu_ns: int
    wall_ns: int
    connections: int
    opened: int


def reduce(
    samples: Samples,
    traffic: Traffic,
    *,
    began_ns: int,
    cost: Cost,
    search: HighestRate | None = None,
) -> Answered:
    """Compute the record of a launch's requests.

    Args:
        samples: The result of every request.
        began_ns: The first intended send time, on the clock of the samples.
        search: The result of `rate-search`.
    """
    latencies_ns = np.array(samples.latency_ns, dtype=np.int64)
    ended_ns = np.array(samples.ended_ns, dtype=np.int64) - began_ns
    succeeded = np.array(samples.error) == OK
    duration_ns = int(ended_ns.max())
    length_ns = window_ns(duration_ns)
    shown = (
        np.ones(len(succeeded), dtype=bool) if search is None else _at_highest(search, succeeded)
    )
    return Answered(
        began_ns=began_ns,
        duration_ns=duration_ns,
        ok=samples.ok,
        errors=samples.errors,
        latencies=latency.encode(latencies_ns[succeeded & shown]),
        lateness=latency.encode(np.array(samples.lateness_ns)[shown]),
        waited=samples.waited,
        window_ns=length_ns,
        windows=_windows(latencies_ns, ended_ns, succeeded, length_ns),
        cpu_ns=cost.cpu_ns,
        wall_ns=cost.wall_ns,
        connections=cost.connections,
        opened=cost.opened,
        mlperf=mlperf(latencies_ns, succeeded, traffic, duration_ns),
        search=search,
        streamed=None
        if traffic.streaming is None
        else _streamed(samples, traffic.streaming, succeeded & shown),
        sampled=() if traffic.shape == "offline" else _sampled(samples, ended_ns, shown),
    )


def _sampled(
    samples: Samples, ended_ns: NDArray[np.int64], shown: NDArray[np.bool_]
) -> tuple[SampledRequest, ...]:
    """The first requests to arrive; a few numbers of each that were kept anyway."""
    arrived_ns = ended_ns - np.array(samples.latency_ns)
    (places,) = np.nonzero(shown)
    first = places[np.argsort(arrived_ns[places], kind="stable")][:MOST_SAMPLED]
    return tuple(
        SampledRequest(
            arrived_us=int(arrived_ns[at]) // 1000,
            ended_us=int(ended_ns[at]) // 1000,
            first_token_us=(int(arrived_ns[at]) + samples.first_token_ns[at]) // 1000
            if samples.tokens[at]
            else None,
            is_ok=samples.error[at] == OK,
        )
        for at in first.tolist()
    )


def _streamed(samples: Samples, streaming: Streaming, shown: NDArray[np.bool_]) -> Streamed:
    tokens = np.array(samples.tokens)[shown]
    first_ns = np.array(samples.first_token_ns)[shown]
    per_token_ns = np.array(samples.per_token_ns)[shown]
    first_bound_ns, per_token_bound_ns = (
        math.inf if bound_ms is None else bound_ms * 1e6
        for bound_ms in (streaming.first_token_bound_ms, streaming.per_token_bound_ms)
    )
    good = (first_ns <= first_bound_ns) & (per_token_ns <= per_token_bound_ns)
    return Streamed(
        tokens=int(tokens.sum()),
        first_token=latency.encode(first_ns),
        per_token=latency.encode(per_token_ns[tokens > 1]),
        good=int(good.sum()),
    )


def _at_highest(search: HighestRate, succeeded: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which requests were sent at the highest rate within the bound."""
    shown = np.zeros(len(succeeded), dtype=bool)
    # The trials are the last requests.
    first = len(succeeded) - sum(trial.requests for trial in search.trials)
    for trial in search.trials:
        shown[first : first + trial.requests] = trial.rate_per_s == search.within_per_s
        first += trial.requests
    return shown


def window_ns(duration_ns: int) -> int:
    """The window length that gives about 200 windows at most; at least 100 ms.

    >>> window_ns(5_000_000_000), window_ns(90_000_000_000), window_ns(600_000_000_000)
    (100000000, 500000000, 4000000000)
    """
    for length_ms in _WINDOWS_MS:
        if duration_ns < MOST_WINDOWS * length_ms * 1_000_000:
            return length_ms * 1_000_000
    # Windows of 1 s would be short enough, but a record must not hold thousands of them.
    doublings = math.ceil(math.log2((duration_ns + 1) / (MOST_WINDOWS * 1_000_000_000)))
    return int(2**doublings) * 1_000_000_000


def _windows(
    latencies_ns: NDArray[np.int64],
    ended_ns: NDArray[np.int64],
    succeeded: NDArray[np.bool_],
    length_ns: int,
) -> tuple[Window, ...]:
    window_of = ended_ns // length_ns
    count = int(window_of.max()) + 1
    ok = np.bincount(window_of[succeeded], minlength=count)
    errors = np.bincount(window_of[~succeeded], minlength=count)
    worst_ns = np.zeros(count, dtype=np.int64)
    np.maximum.at(worst_ns, window_of[succeeded], latencies_ns[succeeded])
    return tuple(
        Window(
            ok=int(good_count), errors=int(bad_count), worst_ns=int(worst) if good_count else None
        )
        for good_count, bad_count, worst in zip(ok, errors, worst_ns, strict=True)
    )


def mlperf(
    latencies_ns: NDArray[np.int64],
    succeeded: NDArray[np.bool_],
    traffic: Traffic,
    duration_ns: int,
) -> MlPerf | None:
    """The result by MLPerf's rules; None for shapes that are not MLPerf scenarios.

    Args:
        latencies_ns: The latency of every request, in the order of sending.
        succeeded: Which requests succeeded.
        duration_ns: From the first intended send to the last answer.
    """
    # MLPerf does not define failed queries; here a failed one is slower than any other.
    samples = np.where(succeeded, latencies_ns, math.inf)
    queries = samples.reshape(-1, traffic.samples_a_query or 1).max(axis=1)
    if traffic.shape == "offline":
        return MlPerf(
            queries=1,
            percentile=None,
            needed=None,
            satisfied=bool(succeeded.all()),
            samples_per_s=latency.throughput_per_s(int(succeeded.sum()), duration_ns),
        )
    share = PERCENTILES.get(traffic.shape)
    if share is None:
        return None
    if traffic.bound_ms is not None:
        over_bound = int((queries > traffic.bound_ms * 1e6).sum())
        needed = least_within(over_bound, share=share) + over_bound
        return MlPerf(
            queries=len(queries),
            percentile=share,
            needed=needed,
            satisfied=len(queries) >= needed,
            over_bound=over_bound,
        )
    early_stopping = bound_percentile(queries, share=share)
    answered = early_stopping.value is not None and math.isfinite(early_stopping.value)
    return MlPerf(
        queries=len(queries),
        percentile=share,
        needed=early_stopping.needed,
        satisfied=answered,
        latency_ns=int(early_stopping.value)
        if answered and early_stopping.value is not None
        else None,
        discarded=early_stopping.discarded,
    )
