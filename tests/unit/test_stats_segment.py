"""Segments that grow: what is found does not depend on how they did."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from corebound.stats import segment as module
from corebound.stats import step_search
from corebound.stats.segment import Found, Memory, Segment, found_in
from corebound.stats.step import Step
from corebound.stats.step_news import may_have_news

Array = NDArray[np.float64]


def a_segment(values: Array) -> Segment:
    return Segment(values=values, errors=np.zeros(values.size), threshold=0.02, seed=0)


def nights(n: int, *steps: tuple[int, float], seed: int = 1) -> Array:
    """So many logarithms with a noise of 1 %, from each of these nights on so much higher."""
    values = 0.01 * np.random.default_rng(seed).standard_normal(n)
    for at, size in steps:
        values[at:] += size
    return values


def near(steps: tuple[Step, ...], *at: int) -> bool:
    return len(steps) == len(at) and all(
        abs(step.at - one) <= 3 for step, one in zip(steps, at, strict=True)
    )


@pytest.mark.parametrize("seed", range(3))
def test_night_by_night_the_same_is_found_as_at_once(seed: int) -> None:
    values = nights(400, (120, 0.05), (350, 0.06), seed=seed)
    before: dict[str, Found] = {}

    for n in range(360, 401):
        memory = Memory(before)
        grown = found_in(a_segment(values[:n]), memory)
        assert grown == found_in(a_segment(values[:n]), Memory())
        before = memory.asked


def test_what_is_known_is_kept_for_the_nights_to_come() -> None:
    whole_up_to = a_segment(nights(400)).before
    assert whole_up_to is not None
    first, second = Memory(), Memory()
    found_in(a_segment(nights(400)), first)
    found_in(a_segment(nights(400)), second)

    again = Memory(second.asked)
    found_in(a_segment(nights(400)), again)

    assert again.asked.keys() == first.asked.keys() >= {whole_up_to.key}


def test_one_more_night_is_looked_at_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    values = nights(402)
    sizes: list[int] = []

    def counting(logs: Array, *rest: Array, threshold: float, seed: int) -> object:
        sizes.append(logs.size)
        return step_search.search(logs, *rest, threshold=threshold, seed=seed)

    monkeypatch.setattr(module, "search", counting)
    memory = Memory()
    for n in range(339, 403):
        memory = Memory(memory.asked)
        found_in(a_segment(values[:n]), memory)

    # Sixty-four nights more: as a whole at the beginning, and twice since.
    assert len(sizes) == 3


@pytest.mark.parametrize("since", [1, 9, 17, 25, 31])
def test_a_new_step_is_found_whenever_the_whole_was_last_looked_at(since: int) -> None:
    segment = a_segment(nights(700))
    assert segment.before is not None
    # Ten nights after a step of 5 %, so many after the whole was looked at.
    n = segment.before.values.size + since
    values = nights(n, (200, -0.1), (n - 10, 0.05))

    found = found_in(a_segment(values), Memory())

    assert near(found.steps, 200, n - 10)


def test_an_old_step_has_the_levels_of_now() -> None:
    steady = nights(420, (200, 0.10))
    changed = np.concatenate((steady, steady[-12:] + 0.10))

    (first,) = found_in(a_segment(steady), Memory()).steps
    second, _ = found_in(a_segment(changed), Memory()).steps

    assert (first.at, second.at) == (200, 200)
    assert abs(np.log(second.ratio) - 0.10) < 0.01


def test_a_short_segment_is_always_looked_at_as_a_whole() -> None:
    assert a_segment(nights(320)).before is None


def test_segments_that_began_together_are_looked_at_on_different_nights() -> None:
    befores = [a_segment(nights(700, seed=seed)).before for seed in range(20)]

    assert len({before.values.size for before in befores if before}) > 10


def test_what_is_found_is_hardly_ever_other_than_in_the_whole() -> None:
    other = 0
    for seed in range(20):
        values = nights(440, (100, 0.05), (330, -0.06), (415, 0.05), seed=seed)
        segment = a_segment(values)
        grown, whole = found_in(segment, Memory()), module._whole(segment)
        other += [step.at for step in grown.steps] != [step.at for step in whole.steps]

    # docs/adr/0015: of real series 2 in 100.
    assert other <= 1


@pytest.mark.parametrize("seed", range(4))
def test_where_nothing_stands_out_no_detector_is_asked(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = a_segment(nights(700, (200, 0.1), seed=seed))
    assert segment.before is not None
    memory = Memory()
    known = found_in(segment.before, memory)
    monkeypatch.setattr(module, "search_on", None)

    assert found_in(segment, memory) is known


@pytest.mark.parametrize("more", [(0.08, 0.08), (0.0, *[0.03] * 12), (-0.05,) * 5])
def test_what_stands_out_is_asked_about(more: tuple[float, ...]) -> None:
    values = nights(200)
    values[-len(more) :] += more

    assert may_have_news(values, first=100, threshold=0.02)


def test_few_nights_after_a_step_are_asked_about_whatever_they_are() -> None:
    assert may_have_news(np.zeros(15), first=0, threshold=0.02)
    assert not may_have_news(np.zeros(16), first=0, threshold=0.02)
