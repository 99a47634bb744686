"""A worker that alternates: it iterates when told to, and hands over in time."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from corebound.worker import protocol
from corebound.worker.timing import Timings, iterate

MS = 1_000_000


class Clock:
    """Stands still but for the steps, which take so long."""

    def __init__(self, *lengths_ns: int) -> None:
        self.now_ns = 0
        self._lengths_ns: Iterator[int] = iter(lengths_ns)

    def step(self) -> None:
        self.now_ns += next(self._lengths_ns)


class CountedTurns:
    """A baton that comes back so often, after the others had their stint."""

    def __init__(self, clock: Clock, times: int, others_ns: int = 0) -> None:
        self._clock, self._left, self._others_ns = clock, times, others_ns
        self.handed_over = 0

    def awaited(self) -> bool:
        self._clock.now_ns += self._others_ns
        self._left -= 1
        return self._left >= 0

    def hand_over(self) -> None:
        self.handed_over += 1


def timed(clock: Clock, turns: CountedTurns | None, iterations: int) -> Timings:
    return iterate(
        clock.step,
        iterations=iterations,
        wall_ns=lambda: clock.now_ns,
        cpu_ns=lambda: clock.now_ns,
        turn_signal=turns,
    )


def test_each_long_iteration_is_a_time_slice_and_the_last_hands_over_to_none() -> None:
    clock = Clock(*[2 * MS] * 3)
    turns = CountedTurns(clock, 3, others_ns=5 * MS)

    timings = timed(clock, turns, 3)

    assert list(timings.walls) == [2 * MS] * 3
    assert list(timings.lengths) == [1, 1, 1]
    assert list(timings.began_us) == [5_000, 12_000, 19_000]
    assert turns.handed_over == 2


def test_short_iterations_share_a_time_slice_of_a_millisecond() -> None:
    clock = Clock(*[MS // 4] * 6)

    timings = timed(clock, CountedTurns(clock, 9), 6)

    assert list(timings.lengths) == [4, 2]


def test_the_last_worker_continues_without_a_break() -> None:
    clock = Clock(*[2 * MS] * 5)
    turns = CountedTurns(clock, 2)

    timings = timed(clock, turns, 5)

    assert list(timings.lengths) == [1, 1, 3]
    assert turns.handed_over == 2


def test_without_a_turn_signal_there_are_no_time_slices() -> None:
    timings = timed(Clock(1, 2, 3), None, 3)

    assert list(timings.walls) == [1, 2, 3]
    assert not timings.lengths
    assert not timings.began_us


@given(
    lengths=st.lists(st.integers(1, 3 * MS), min_size=1, max_size=60),
    times=st.integers(0, 80),
)
def test_time_slices_contain_every_iteration_once_and_end_when_long_enough(
    lengths: list[int], times: int
) -> None:
    clock = Clock(*lengths)

    timings = timed(clock, CountedTurns(clock, times), len(lengths))

    assert list(timings.walls) == lengths
    assert sum(timings.lengths) == len(lengths)
    begin = 0
    for length in timings.lengths[: min(times, len(timings.lengths) - 1)]:
        time_slice = lengths[begin : begin + length]
        assert sum(time_slice) >= protocol.TIME_SLICE_NS > sum(time_slice[:-1])
        begin += length
