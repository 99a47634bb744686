"""Specifies when a launch is warmed up, and the segmentation that decides it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.stats.warmup import SteadyKind, SteadyState, steady_state, worst
from support.examples import examples


def noisy(levels: list[tuple[int, float]], *, noise: float = 0.01, seed: int = 1) -> list[int]:
    """So many iterations at each level, in milliseconds, each with relative noise."""
    rng = np.random.default_rng(seed)
    return [
        int(1e6 * level * np.exp(noise * rng.standard_normal()))
        for count, level in levels
        for _ in range(count)
    ]


SPIKE = [20 * ns if at == 120 else ns for at, ns in enumerate(noisy([(200, 45.0)]))]


@pytest.mark.parametrize(
    ("samples_ns", "kind", "start"),
    [
        *((noisy([(n, 45.0)], noise=0.03), "steady", 0) for n in (12, 20, 49, 100, 1000)),
        *((odd, "steady", 0) for odd in ([], [7], [0] * 40, [0, 5, 5, 5], [5] * 40)),
        (SPIKE, "steady", 0),
        # Below the 5 % of Traini et al. (2022).
        (noisy([(100, 45.0), (100, 46.5)]), "steady", 0),
        ([900, 60, 45, 44, 45, 46, 44, 45, 45, 46, 44, 45], "warm-up then steady", 2),
        (noisy([(40, 45.0), (60, 54.0)]), "slowdown", 40),
        # A change shortly before the end: the first fifth of 300 is left out.
        (noisy([(280, 45.0), (20, 60.0)]), "never steady", 60),
    ],
)
def test_a_launch_is_steady_from_its_last_change_on(
    samples_ns: list[int], kind: SteadyKind, start: int
) -> None:
    assert steady_state(samples_ns) == SteadyState(kind=kind, start=start)


@pytest.mark.parametrize("n", [20, 49, 200, 3000])
def test_a_longer_first_phase_is_warm_up(n: int) -> None:
    found = steady_state(noisy([(3 * n // 10, 54.0), (n - 3 * n // 10, 45.0)]))

    assert found.kind == "warm-up then steady"
    # Of two neighbours the noise may make the wrong one the likelier place of a cut.
    assert abs(found.start - 3 * n // 10) <= 1


def test_a_very_long_launch_is_analysed_in_groups() -> None:
    found = steady_state(noisy([(30_000, 54.0), (70_001, 45.0)]))

    assert found.kind == "warm-up then steady"
    # 100,001 in groups of 34, and a cut may be one of them off.
    assert abs(found.start - 30_000) <= 2 * 34


@examples(60)
@given(samples_ns=st.lists(st.integers(0, 10**12), min_size=1, max_size=80))
def test_some_samples_are_always_left(samples_ns: list[int]) -> None:
    assert 0 <= steady_state(samples_ns).start < len(samples_ns)


@examples(40)
@given(seed=st.integers(0, 1000), factor=st.integers(2, 1000))
def test_another_unit_changes_nothing(seed: int, factor: int) -> None:
    samples_ns = noisy([(15, 60.0), (45, 45.0)], seed=seed)

    assert steady_state([factor * sample for sample in samples_ns]) == steady_state(samples_ns)


def test_the_worker_that_settles_last_counts() -> None:
    early = SteadyState(kind="warm-up then steady", start=2)
    late = SteadyState(kind="warm-up then steady", start=9)
    slowed = SteadyState(kind="slowdown", start=5)

    assert worst([late, early]) == late
    assert worst([early, slowed, late]) == slowed
