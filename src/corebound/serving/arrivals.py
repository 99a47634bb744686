"""When requests are meant to be sent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from corebound.model.traffic import Traffic


def intended_ns(traffic: Traffic) -> NDArray[np.int64]:
    """The intended send times of an open shape, from the start of measuring.

    `constant` sends the first at once and the rest evenly; `poisson` and `server` draw the
    gaps from an exponential distribution, so that how many fall into a second is
    Poisson's (MLPerf's Server scenario is that too).

    Returns:
        One time for each request, in nanoseconds, never falling.

    Raises:
        ValueError: The shape is not an open one.
    """
    rate_per_s = traffic.rate_per_s
    if rate_per_s is None:
        raise ValueError("a closed loop has no schedule")
    if traffic.shape == "constant":
        times_s = np.arange(traffic.requests) / rate_per_s
    else:
        gaps = np.random.default_rng(traffic.seed).exponential(size=traffic.requests)
        times_s = np.cumsum(gaps) / rate_per_s
    return np.rint(times_s * 1e9).astype(np.int64)
