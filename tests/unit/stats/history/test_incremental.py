"""Specifies that adding points one by one finds the same changes as a full analysis."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from corebound.stats.history import change_point_search
from corebound.stats.history import incremental as module
from corebound.stats.history.change_point import ChangePoint
from corebound.stats.history.incremental import (
    Segment,
    SegmentCache,
    SegmentResult,
    analyse_segment,
    needs_rescan,
)
from support.examples import examples

Array = NDArray[np.float64]


def a_segment(values: Array) -> Segment:
    return Segment(values=values, errors=np.zeros(values.size), threshold=0.02)


def nights(n: int, *steps: tuple[int, float], seed: int = 1) -> Array:
    """So many logarithms with a noise of 1 %, from each of these nights on so much higher."""
    values = 0.01 * np.random.default_rng(seed).standard_normal(n)
    for at, size in steps:
        values[at:] += size
    return values


def rising(found: SegmentResult, n: int) -> bool:
    edges = (0, *(step.at for step in found.steps), n)
    return all(one < other for one, other in itertools.pairwise(edges))


def near(steps: tuple[ChangePoint, ...], *at: int) -> bool:
    return len(steps) == len(at) and all(
        abs(step.at - one) <= 3 for step, one in zip(steps, at, strict=True)
    )


@pytest.mark.parametrize("seed", range(3))
def test_adding_points_one_by_one_gives_the_same_result(seed: int) -> None:
    values = nights(400, (120, 0.05), (350, 0.06), seed=seed)
    before: dict[str, SegmentResult] = {}

    for n in range(360, 401):
        memory = SegmentCache(before)
        grown = analyse_segment(a_segment(values[:n]), memory)
        assert grown == analyse_segment(a_segment(values[:n]), SegmentCache())
        before = memory.asked


def test_a_cached_result_is_kept_for_later_points() -> None:
    whole_up_to = a_segment(nights(400)).before
    assert whole_up_to is not None
    first, second = SegmentCache(), SegmentCache()
    analyse_segment(a_segment(nights(400)), first)
    analyse_segment(a_segment(nights(400)), second)

    again = SegmentCache(second.asked)
    analyse_segment(a_segment(nights(400)), again)

    assert again.asked.keys() == first.asked.keys() >= {whole_up_to.key}


def test_cuts_proposed_together_give_the_same_results() -> None:
    segments = [a_segment(nights(n, (20, 0.1), seed=n)) for n in (60, 61, 62, 63, 400)]
    together = SegmentCache()
    together.propose(segments)

    alone = [analyse_segment(segment, SegmentCache()) for segment in segments]

    assert len(together.proposed) == 5
    assert [analyse_segment(segment, together) for segment in segments] == alone


def test_later_cuts_proposed_together_give_the_same_results() -> None:
    # 340 points are known, of which the last whole analysis had some; 12 are new.
    known = SegmentCache()
    # Half of them have a step of 5 % among the new points.
    all_values = [nights(352, *([(344, 0.05)] if seed % 2 else []), seed=seed) for seed in range(6)]
    for values in all_values:
        analyse_segment(a_segment(values[:340]), known)
    segments = [a_segment(values) for values in all_values]
    together = SegmentCache(known.asked)
    together.propose(segments)

    alone = [analyse_segment(segment, SegmentCache(known.asked)) for segment in segments]

    assert together.proposed_later
    assert [analyse_segment(segment, together) for segment in segments] == alone


def test_no_cuts_are_proposed_for_a_segment_with_a_result() -> None:
    known = SegmentCache()
    analyse_segment(a_segment(nights(60)), known)

    again = SegmentCache(known.asked)
    again.propose([a_segment(nights(60))])

    assert not again.proposed


def test_one_more_point_needs_no_full_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    values = nights(402)
    sizes: list[int] = []

    def counting(logs: Array, *rest: Array, **options: Any) -> object:
        sizes.append(logs.size)
        return change_point_search.search(logs, *rest, **options)

    monkeypatch.setattr(module, "search", counting)
    memory = SegmentCache()
    for n in range(339, 403):
        memory = SegmentCache(memory.asked)
        analyse_segment(a_segment(values[:n]), memory)

    # Sixty-four nights more: as a whole at the beginning, and twice since.
    assert len(sizes) == 3


@pytest.mark.parametrize("since", [1, 9, 17, 25, 31])
def test_a_new_step_is_found_whenever_the_last_full_analysis_was(since: int) -> None:
    segment = a_segment(nights(700))
    assert segment.before is not None
    # Ten nights after a step of 5 %, so many after the whole was looked at.
    n = segment.before.values.size + since
    values = nights(n, (200, -0.1), (n - 10, 0.05))

    found = analyse_segment(a_segment(values), SegmentCache())

    assert near(found.steps, 200, n - 10)


def test_an_old_step_has_current_levels() -> None:
    steady = nights(420, (200, 0.10))
    changed = np.concatenate((steady, steady[-12:] + 0.10))

    (first,) = analyse_segment(a_segment(steady), SegmentCache()).steps
    second, _ = analyse_segment(a_segment(changed), SegmentCache()).steps

    assert (first.at, second.at) == (200, 200)
    assert abs(np.log(second.ratio) - 0.10) < 0.01


def test_a_short_segment_always_has_a_full_analysis() -> None:
    assert a_segment(nights(320)).before is None


def test_segments_that_began_together_have_full_analyses_at_different_points() -> None:
    befores = [a_segment(nights(700, seed=seed)).before for seed in range(20)]

    assert len({before.values.size for before in befores if before}) > 10


def test_incremental_results_hardly_ever_differ_from_full_ones() -> None:
    other = 0
    for seed in range(20):
        values = nights(440, (100, 0.05), (330, -0.06), (415, 0.05), seed=seed)
        segment = a_segment(values)
        grown, whole = analyse_segment(segment, SegmentCache()), module._analyse_whole(segment)
        other += [step.at for step in grown.steps] != [step.at for step in whole.steps]

    # docs/adr/0015: of real series 2 in 100.
    assert other <= 1


@pytest.mark.parametrize("seed", range(4))
def test_without_an_outlying_point_no_detector_runs(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = a_segment(nights(700, (200, 0.1), seed=seed))
    assert segment.before is not None
    memory = SegmentCache()
    known = analyse_segment(segment.before, memory)
    monkeypatch.setattr(module, "extend_search", None)

    assert analyse_segment(segment, memory) is known


@pytest.mark.parametrize("more", [(0.08, 0.08), (0.0, *[0.03] * 12), (-0.05,) * 5])
def test_outlying_points_need_a_rescan(more: tuple[float, ...]) -> None:
    values = nights(200)
    values[-len(more) :] += more

    assert needs_rescan(values, first=100, threshold=0.02)


def test_the_first_points_after_a_step_always_need_a_rescan() -> None:
    assert needs_rescan(np.zeros(15), first=0, threshold=0.02)
    assert not needs_rescan(np.zeros(16), first=0, threshold=0.02)


def many_changes(n: int, *, gap: float, size: float, noise: float, seed: int) -> Array:
    """So many logarithms whose level moves again and again, and for a third of it slowly."""
    rng = np.random.default_rng(seed)
    moves = size * rng.standard_normal(n) * (rng.random(n) < 1 / gap)
    slow = np.zeros(n)
    begin = int(rng.integers(0, n - n // 3))
    slow[begin : begin + n // 3] = rng.normal(0, 3 * size) / (n // 3)
    kinds = size * (rng.random(n) < rng.choice([0.0, 0.5]))
    values: Array = np.cumsum(moves + slow) + kinds + noise * rng.standard_normal(n)
    return values


@examples(6)
@given(
    n=st.one_of(st.integers(300, 500), st.integers(300, 3000)),
    gap=st.sampled_from([3.0, 10.0, 40.0]),
    size=st.sampled_from([0.03, 0.1, 1.0]),
    noise=st.sampled_from([0.0, 0.01, 0.05]),
    seed=st.integers(0, 10**6),
)
def test_steps_ascend_strictly_as_points_are_added(
    n: int, gap: float, size: float, noise: float, seed: int
) -> None:
    values = many_changes(n + 2, gap=gap, size=size, noise=noise, seed=seed)
    before: dict[str, SegmentResult] = {}

    for nights_known in (n, n + 1, n + 2):
        memory = SegmentCache(before)
        found = analyse_segment(a_segment(values[:nights_known]), memory)
        assert rising(found, nights_known)
        before = memory.asked


def a_step(at: int, first_bad: int) -> ChangePoint:
    return ChangePoint(
        at=at,
        last_good=at - 1,
        first_bad=first_bad,
        direction="up",
        before=1.0,
        ratio=1.1,
        interval=None,
        p_value=1e-3,
        status="new",
    )


@examples(25)
@given(data=st.data(), seed=st.integers(0, 1000))
def test_steps_ascend_strictly_wherever_a_cached_step_lies(data: st.DataObject, seed: int) -> None:
    changes = st.lists(st.integers(200, 345), min_size=1, max_size=6, unique=True)
    values = nights(348, *((at, 0.2) for at in data.draw(changes)), seed=seed)
    segment = a_segment(values)
    before = segment.before
    assume(before is not None)
    assert before is not None
    n = before.values.size
    place = data.draw(st.integers(2, n - 4))
    middle = data.draw(st.integers(place, n - 2))
    step = a_step(middle, first_bad=data.draw(st.integers(middle, n - 1)))
    known = SegmentResult(steps=(step,), places=(place,), rho=0.0)

    grown = analyse_segment(segment, SegmentCache({before.key: known}))

    assert rising(grown, 348)
