"""Specifies how the size of a difference is worded in a headline."""

from __future__ import annotations

import pytest

from corebound.analysis.wording import headline_speed
from corebound.stats.comparison import Comparison, Verdict
from corebound.stats.intervals import CONFIDENCE, Interval


def a_comparison(ratio: float, ends: tuple[float, float] | None, verdict: Verdict) -> Comparison:
    interval = Interval(low=ends[0], high=ends[1], confidence=CONFIDENCE) if ends else None
    return Comparison(
        speedup_ratio=ratio,
        interval=interval,
        verdict=verdict,
        pairs=4,
        per_block=(),
        p_value=None,
        launches_needed=None,
    )


@pytest.mark.parametrize(
    ("ratio", "ends", "verdict", "text"),
    [
        (1.43, (1.38, 1.49), "faster", "1.43× faster"),
        (21.0, (4.09, 108.0), "faster", "at least 4.09× faster"),
        (0.2, (0.1, 0.4), "slower", "at least 2.50× slower"),
        (1.1, (0.6, 2.0), "undecided", "1.10× faster"),
        (1.1, None, "undecided", "1.10× faster"),
    ],
)
def test_a_headline_says_the_least_that_is_certain_if_the_size_is_hardly_known(
    ratio: float, ends: tuple[float, float] | None, verdict: Verdict, text: str
) -> None:
    assert headline_speed(a_comparison(ratio, ends, verdict)) == text
