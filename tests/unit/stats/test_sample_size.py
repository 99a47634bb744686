"""Specifies how many launches would decide an inconclusive comparison."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.stats.intervals import CONFIDENCE, log_interval
from corebound.stats.sample_size import ObservedEffect, launches_needed
from support.known import known

ROOM = math.log1p(0.02)


def inconclusive(logs: np.ndarray) -> bool:
    interval = log_interval(
        float(logs.mean()),
        standard_error=float(logs.std(ddof=1)) / math.sqrt(logs.size),
        freedom=logs.size - 1,
        confidence=CONFIDENCE,
    )
    fits = math.log(interval.low) >= -ROOM and math.log(interval.high) <= ROOM
    return interval.contains(1.0) and not fits


def observed_effect(logs: np.ndarray) -> ObservedEffect:
    error = float(logs.std(ddof=1)) / math.sqrt(logs.size)
    return ObservedEffect(
        middle=float(logs.mean()), error=error, freedom=logs.size - 1, launches=logs.size
    )


def test_the_launches_needed_decide_four_times_in_five() -> None:
    # The truth drawn at random, as whoever forecasts has to take it: 0 % to 4 %.
    rng = np.random.default_rng(7)
    decided: list[bool] = []
    while len(decided) < 300:
        logs = rng.normal(rng.uniform(0, 0.04), 0.03, 2000)
        if not inconclusive(logs[:8]):
            continue
        needed = known(launches_needed(observed_effect(logs[:8]), room=ROOM))
        decided.append(not inconclusive(logs[: min(needed, 2000)]))

    # 300 at 80 %: standard deviation 2.3 %.
    assert np.mean(decided) == pytest.approx(0.8, abs=0.1)


@given(middle=st.floats(-0.1, 0.1), error=st.floats(1e-4, 0.5), launches=st.integers(2, 60))
def test_the_launches_needed_exceed_those_present(
    middle: float, error: float, launches: int
) -> None:
    so_far = ObservedEffect(middle=middle, error=error, freedom=launches - 1, launches=launches)

    needed = launches_needed(so_far, room=ROOM)

    assert needed is None or needed > launches


def test_a_spread_that_no_number_decides_has_no_launches_needed() -> None:
    hopeless = ObservedEffect(middle=0.0, error=1.0, freedom=59_999, launches=60_000)

    assert launches_needed(hopeless, room=ROOM) is None


def test_a_wider_margin_needs_fewer_launches() -> None:
    # Equal cells whose launches differ by 4 %: an interval fits the margin once 1.96 × 4 % / √n
    # is below it, so n is 16 at least for 2 %, and 62 for 1 %.
    so_far = ObservedEffect(middle=0.0, error=0.04 / math.sqrt(10), freedom=9, launches=10)

    needed = [launches_needed(so_far, room=math.log1p(margin)) for margin in (0.01, 0.02, 0.04)]

    assert known(needed[0]) > 62
    assert known(needed[0]) > known(needed[1]) > known(needed[2])
    assert known(needed[1]) > 16
