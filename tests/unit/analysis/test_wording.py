"""Specifies how the size of a difference is worded in a headline."""

import pytest

from corebound.analysis.wording import headline_speed
from corebound.stats.comparison import Verdict
from support.build import a_comparison


@pytest.mark.parametrize(
    ("ratio", "ends", "verdict", "text"),
    [
        (1.43, (1.38, 1.49), "faster", "1.43× faster"),
        (21.0, (4.09, 108.0), "faster", "at least 4.09× faster"),
        (0.2, (0.1, 0.4), "slower", "at least 2.50× slower"),
        (1.1, (0.6, 2.0), "inconclusive", "1.10× faster"),
        (1.1, None, "inconclusive", "1.10× faster"),
    ],
)
def test_a_headline_says_the_least_that_is_certain_if_the_size_is_hardly_known(
    ratio: float, ends: tuple[float, float] | None, verdict: Verdict, text: str
) -> None:
    assert headline_speed(a_comparison(ratio, ends, verdict=verdict)) == text
