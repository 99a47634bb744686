"""Specifies when a host has two speeds, and how the blocks of each count."""

import math
import statistics
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.stats.host_speeds import PRICE_OF_TWO_SPEEDS, recognise_host_speeds
from support.known import known

FAST = (0.01, -0.01, 0.0, 0.01, -0.01)
SLOW = (0.06, -0.05, 0.04, -0.05)
LEVELS = (0.0, 0.01, 0.02, 0.0, 0.01, 0.3, 0.32, 0.35, 0.31)


def by_block(values: Sequence[float]) -> dict[int, float]:
    return dict(enumerate(values))


def test_slow_blocks_that_vary_more_count_less() -> None:
    found = known(recognise_host_speeds(by_block(FAST + SLOW), by_block(LEVELS)))

    assert found.slow_blocks == (5, 6, 7, 8)
    # Graybill and Deal: each mean with the weight of its own variance.
    weights = [len(one) / statistics.variance(one) for one in (FAST, SLOW)]
    means = [statistics.fmean(one) for one in (FAST, SLOW)]
    total = sum(weights)
    assert found.middle == pytest.approx(
        sum(w * m for w, m in zip(weights, means, strict=True)) / total
    )
    # Meier: 1 / W (1 + 4 / W² Σ w (W - w) / ν).
    shares = [w * (total - w) / v for w, v in zip(weights, (4, 3), strict=True)]
    variance = (1 + 4 * sum(shares) / total**2) / total
    assert found.error == pytest.approx(PRICE_OF_TWO_SPEEDS * math.sqrt(variance))
    assert found.freedom == pytest.approx(total**2 / (weights[0] ** 2 / 4 + weights[1] ** 2 / 3))


@pytest.mark.parametrize(
    ("ratios", "levels"),
    [
        pytest.param(FAST[:3] + SLOW[:2], LEVELS[:3] + LEVELS[5:7], id="too few of each"),
        pytest.param(FAST + SLOW, [0.01 * at for at in range(9)], id="no gap between the speeds"),
        pytest.param(SLOW + FAST, LEVELS[5:] + LEVELS[:5], id="right order, for comparison"),
        pytest.param(FAST + FAST[:4], LEVELS, id="slow blocks vary no more"),
        pytest.param((*FAST, 0.2, -0.2, 0.0, 0.2), LEVELS, id="launches are slow, not the host"),
        pytest.param(
            FAST + tuple(value + 0.2 for value in SLOW), LEVELS, id="another ratio when slow"
        ),
        pytest.param((0.0,) * 5 + SLOW, LEVELS, id="a ratio without any spread"),
    ],
)
def test_otherwise_all_blocks_count_alike(
    ratios: Sequence[float], levels: Sequence[float], request: pytest.FixtureRequest
) -> None:
    found = recognise_host_speeds(by_block(ratios), by_block(levels))

    assert (found is None) is ("for comparison" not in request.node.callspec.id)


@given(
    ratios=st.lists(st.floats(-0.1, 0.1), min_size=2, max_size=20),
    levels=st.lists(st.sampled_from([0.0, 0.01, 0.3, 0.31]), min_size=20, max_size=20),
    shift=st.floats(-5, 5),
)
def test_only_differences_of_levels_count_and_sides_may_be_swapped(
    ratios: list[float], levels: list[float], shift: float
) -> None:
    blocks, of_blocks = by_block(ratios), by_block(levels[: len(ratios)])
    found = recognise_host_speeds(blocks, of_blocks)
    swapped = recognise_host_speeds(
        {block: -log for block, log in blocks.items()},
        {block: level + shift for block, level in of_blocks.items()},
    )

    assert (found is None) == (swapped is None)
    if found is not None and swapped is not None:
        assert swapped.middle == pytest.approx(-found.middle, abs=1e-9)
        assert swapped.error == pytest.approx(found.error)
        assert swapped.slow_blocks == found.slow_blocks
        assert min(ratios) <= found.middle <= max(ratios)
