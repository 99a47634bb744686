"""Specifies when launches are said to have two modes, and how those of one mode compare."""

import math
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.stats.modes import Mode, Modes, fit_levels, recognise_modes
from support.known import known

FAST_NS, SLOW_NS = 5.05e6, 6.2e6
STEP = math.log(SLOW_NS / FAST_NS)
# Cell and baseline, F fast and S slow: of each kind of block at least one.
BLOCKS = "FF FS SF SS FS SF SS FF"
# Noise of the log ratio in these blocks.
NOISE = (0.001, 0.002, 0.001, -0.001, -0.002, -0.001, 0.002, -0.002)


def launches(
    blocks: str = BLOCKS, *, slower: float = 0.0, drift: Sequence[float] = (), scale: float = 1.0
) -> tuple[dict[int, float], dict[int, float]]:
    """The log medians of the cell's and the baseline's launches, by block."""
    logs, baseline_logs = {}, {}
    for block, (cell, baseline) in enumerate(map(tuple, blocks.split())):
        host = math.log(FAST_NS * scale) + (drift[block] if drift else 0.0)
        noise = NOISE[block % len(NOISE)]
        logs[block] = host + STEP * (cell == "S") + math.log1p(slower) + noise
        baseline_logs[block] = host + STEP * (baseline == "S")
    return logs, baseline_logs


def recognised(sides: tuple[Mapping[int, float], Mapping[int, float]]) -> Modes | None:
    logs, baseline_logs = sides
    ratios = {block: baseline_logs[block] - logs[block] for block in logs}
    return recognise_modes(ratios, logs, baseline_logs)


def modes_of(sides: tuple[Mapping[int, float], Mapping[int, float]]) -> Modes:
    return known(recognised(sides))


def test_launches_of_the_same_mode_are_compared_and_each_has_its_mode() -> None:
    slower, equal = modes_of(launches(slower=0.033)), modes_of(launches())
    word: dict[str, Mode] = {"F": "fast", "S": "slow"}

    assert slower.interval.contains(1 / 1.033)
    assert slower.interval.relative_half_width < 0.002
    assert slower.slow_ratio == pytest.approx(SLOW_NS / FAST_NS, abs=0.003)
    # Two degrees of freedom go into the ratio and the step.
    assert equal.freedom == len(BLOCKS.split()) - 2
    found = [(block.cell, block.baseline) for block in equal.blocks]
    assert found == [(word[cell], word[baseline]) for cell, baseline in map(tuple, BLOCKS.split())]
    share = known(equal.share("cell"))
    assert (share.fast, share.launches) == (4, 8)
    # Wilson's, z² = 3.84: (4 + 3.84 / 2 ± 1.96 √(2 + 3.84 / 4)) / (8 + 3.84).
    assert (share.interval.low, share.interval.high) == pytest.approx((0.215, 0.785), abs=0.001)


def test_the_error_is_that_of_a_regression_on_the_levels() -> None:
    logs, baseline_logs = launches("FF FS FS SS FS SF SS FF")
    ratios = np.array([baseline_logs[block] - logs[block] for block in logs])
    design = np.array([(1, level) for level in (0, 1, 1, 0, 1, -1, 0, 0)])
    estimates, residuals, *_ = np.linalg.lstsq(design, ratios, rcond=None)
    variances = residuals[0] / 6 * np.linalg.inv(design.T @ design)

    modes = modes_of((logs, baseline_logs))

    assert (modes.middle, modes.step) == pytest.approx(-estimates * (1, -1) * (-1, 1))
    assert modes.error == pytest.approx(math.sqrt(variances[0, 0]))


def test_shares_differ_if_almost_always_the_same_side_is_the_fast_one() -> None:
    assert modes_of(launches()).share_p_value == 1.0
    # Of nine blocks of two modes the cell is slow in one: 2 (1 + 9) / 2⁹.
    assert modes_of(launches("SF" + 8 * " FS" + " SS")).share_p_value == pytest.approx(20 / 512)


def test_a_hosts_level_that_varies_as_the_modes_do_hides_which_mode_equal_launches_have() -> None:
    drift = (0.1, -0.1, 0.15, -0.15, 0.05, -0.05, 0.12, 0.0)

    modes = modes_of(launches(slower=0.033, drift=drift))

    assert modes.interval.contains(1 / 1.033)
    assert modes.share("cell") is None
    assert [(block.cell, block.baseline) for block in modes.blocks[:3]] == [
        (None, None), ("fast", "slow"), ("slow", "fast"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        ("FF FS SF SS FS SF FF", "seven blocks are too few"),
        ("FF FF SS FF FF FF SS", "no block has two modes"),
        ("FS SF SF FS FS SF SF FS", "steps of half the size explain them as well"),
        ("FS FS FF FF FS SS FS", "the cell may be the fast one or the baseline the slow one"),
        ("FF FS SF SS FF SS FF", "two blocks of two modes may be outliers"),
    ],
)
def test_no_modes_without_enough_blocks_of_each_kind(blocks: str, reason: str) -> None:
    assert recognised(launches(blocks)) is None, reason


def test_modes_that_are_close_beside_the_noise_are_not_recognised() -> None:
    rng = np.random.default_rng(3)
    levels = np.resize([0, 1, -1], 30)

    def is_clear(step: float) -> bool:
        return bool(fit_levels((step * levels + rng.normal(0, 0.01, 30))[None, :]).are_clear()[0])

    assert is_clear(0.2)
    assert not is_clear(0.1)


def test_clock_steps_of_a_very_short_time_are_no_modes() -> None:
    # 41, 42 and 43 ns give three levels of the ratio.
    sides = (41, 41, 42, 41, 42, 41), (42, 43, 42, 43, 43, 42)
    logs, baseline_logs = (dict(enumerate(map(math.log, side))) for side in sides)

    assert recognised((logs, baseline_logs)) is None


@pytest.mark.parametrize("launches_", [6, 8, 15, 30])
@pytest.mark.parametrize("noise", ["normal", "t3", "exponential", "lognormal", "drift"])
def test_at_most_one_in_a_hundred_samples_of_one_mode_is_said_to_have_two(
    noise: str, launches_: int
) -> None:
    rng = np.random.default_rng(5)
    size = (2000, launches_)
    rows = {
        "normal": rng.normal(size=size),
        "t3": rng.standard_t(3, size),
        "exponential": rng.exponential(size=size),
        "lognormal": rng.lognormal(size=size),
        "drift": rng.normal(size=size).cumsum(axis=1),
    }[noise]

    assert fit_levels(rows).are_clear().mean() <= 0.01


kinds = st.lists(st.sampled_from(["FF", "FS", "SF", "SS"]), min_size=3, max_size=12).map(
    lambda more: " ".join(["FF", "FS", "SF", "FS", "SF", *more])
)


@given(blocks=kinds, order=st.randoms(use_true_random=False))
def test_the_order_of_the_blocks_does_not_matter(blocks: str, order: Random) -> None:
    logs, baseline_logs = launches(blocks, slower=0.033)
    numbers = list(logs)
    order.shuffle(numbers)

    shuffled = modes_of(
        (
            {at: logs[block] for at, block in enumerate(numbers)},
            {at: baseline_logs[block] for at, block in enumerate(numbers)},
        )
    )

    modes = modes_of((logs, baseline_logs))
    assert (shuffled.middle, shuffled.error) == pytest.approx((modes.middle, modes.error))
    assert [(b.cell, b.baseline) for b in shuffled.blocks] == [
        (modes.blocks[block].cell, modes.blocks[block].baseline) for block in numbers
    ]


@given(blocks=kinds)
def test_swapping_the_sides_gives_the_reciprocal(blocks: str) -> None:
    logs, baseline_logs = launches(blocks, slower=0.033)

    modes, swapped = modes_of((logs, baseline_logs)), modes_of((baseline_logs, logs))

    assert swapped.speedup_ratio == pytest.approx(1 / modes.speedup_ratio)
    assert (swapped.error, swapped.step) == pytest.approx((modes.error, modes.step))
    assert swapped.share("cell") == modes.share("baseline")
    assert swapped.share_p_value == modes.share_p_value


@given(blocks=kinds, scale=st.floats(0.1, 1e6))
def test_the_unit_of_the_times_does_not_matter(blocks: str, scale: float) -> None:
    modes, scaled = modes_of(launches(blocks)), modes_of(launches(blocks, scale=scale))

    assert (scaled.middle, scaled.error, scaled.step) == pytest.approx(
        (modes.middle, modes.error, modes.step), abs=1e-9
    )
    assert scaled.blocks == modes.blocks
