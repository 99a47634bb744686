"""A worker that alternates: it iterates when told to, and hands over in time."""

import ctypes
from array import array
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.worker import protocol
from corebound.worker.timing import TimeSliceKind, Timings, iterate

MS = 1_000_000


class Clock:
    """Stands still but for the steps, which take so long."""

    def __init__(self, *lengths_ns: int) -> None:
        self.now_ns = 0
        self._lengths_ns: Iterator[int] = iter(lengths_ns)

    def step(self) -> None:
        self.now_ns += next(self._lengths_ns)


class CountedTurns:
    """Grants some time slices after the others had theirs, then the last one."""

    def __init__(self, clock: Clock, times: int, others_ns: int = 0) -> None:
        self._clock, self._left, self._others_ns = clock, times, others_ns
        self.handed_over = self.finished = 0

    def awaited(self) -> TimeSliceKind:
        self._clock.now_ns += self._others_ns
        self._left -= 1
        return "slice" if self._left >= 0 else "last"

    def hand_over(self) -> None:
        self.handed_over += 1

    def finish(self) -> None:
        self.finished += 1


def timed(clock: Clock, turns: CountedTurns | None, iterations: int) -> Timings:
    timings = Timings(iterations)
    iterate(
        clock.step,
        timings,
        iterations=iterations,
        wall_ns=lambda: clock.now_ns,
        cpu_ns=lambda: clock.now_ns,
        turn_signal=turns,
    )
    return timings


@pytest.mark.parametrize(("slices", "reported"), [(None, [1, 3]), (5, [3, 7])])
def test_long_iterations_are_reported_as_they_end_and_in_time_slices_together(
    slices: int | None, reported: list[int]
) -> None:
    clock = Clock(*(each * MS for each in (300, 1, 300, 1, 1, 1, 1)))
    timings, seen = Timings(7), list[int]()

    iterate(
        clock.step,
        timings,
        iterations=7,
        wall_ns=lambda: clock.now_ns,
        cpu_ns=lambda: clock.now_ns,
        report=lambda: seen.append(len(timings)),
        turn_signal=None if slices is None else CountedTurns(clock, slices),
    )

    assert seen == reported


def test_a_time_slice_has_three_iterations_and_the_last_one_finishes() -> None:
    clock = Clock(*[2 * MS] * 7)
    turns = CountedTurns(clock, 3, others_ns=5 * MS)

    timings = timed(clock, turns, 7)

    assert list(timings.walls) == [2 * MS] * 7
    assert list(timings.lengths) == [3, 3, 1]
    assert list(timings.began_us) == [5_000, 16_000, 27_000]
    assert (turns.handed_over, turns.finished) == (2, 1)


def test_short_iterations_share_a_time_slice_of_a_millisecond() -> None:
    clock = Clock(*[MS // 5] * 8)

    timings = timed(clock, CountedTurns(clock, 9), 8)

    assert list(timings.lengths) == [5, 3]


def test_the_last_time_slice_takes_all_remaining_iterations() -> None:
    clock = Clock(*[2 * MS] * 11)
    turns = CountedTurns(clock, 2)

    timings = timed(clock, turns, 11)

    assert list(timings.lengths) == [3, 3, 5]
    assert (turns.handed_over, turns.finished) == (2, 1)


@pytest.mark.parametrize("slices", [None, 0, 1])
def test_long_iterations_end_the_measurement_even_if_they_are_few(slices: int | None) -> None:
    clock = Clock(*[50 * MS] * 9)
    timings = Timings(9)

    iterate(
        clock.step,
        timings,
        iterations=9,
        wall_ns=lambda: clock.now_ns,
        cpu_ns=lambda: clock.now_ns,
        enough_ns=10 * MS,
        least_iterations=6,
        most_ns=100 * MS,
        turn_signal=None if slices is None else CountedTurns(clock, slices),
    )

    assert len(timings.walls) == 2


def test_without_a_turn_signal_there_are_no_time_slices() -> None:
    timings = timed(Clock(1, 2, 3), None, 3)

    assert list(timings.walls) == [1, 2, 3]
    assert not timings.lengths
    assert not timings.began_us


@given(lengths=st.lists(st.integers(1, 3 * MS), min_size=1, max_size=60), times=st.integers(0, 80))
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
        assert sum(time_slice) >= protocol.TIME_SLICE_NS
        assert length >= protocol.TIME_SLICE_ITERATIONS
        assert length == protocol.TIME_SLICE_ITERATIONS or (
            sum(time_slice[:-1]) < protocol.TIME_SLICE_NS
        )
        begin += length


@given(
    lengths=st.lists(st.integers(1, 10 * MS), min_size=1, max_size=60),
    enough_ns=st.integers(0, 100 * MS),
    least=st.integers(0, 20),
    slices=st.none() | st.integers(0, 30),
)
def test_iterations_end_as_soon_as_they_took_long_enough(
    lengths: list[int], enough_ns: int, least: int, slices: int | None
) -> None:
    clock = Clock(*lengths)

    timings = Timings(len(lengths))
    iterate(
        clock.step,
        timings,
        iterations=len(lengths),
        wall_ns=lambda: clock.now_ns,
        cpu_ns=lambda: clock.now_ns,
        enough_ns=enough_ns,
        least_iterations=least,
        turn_signal=None if slices is None else CountedTurns(clock, slices),
    )

    walls = list(timings.walls)
    assert walls == lengths[: len(walls)]
    assert len(walls) == len(lengths) or (sum(walls) >= enough_ns and len(walls) >= least)
    # A time slice is finished, without one no more iterations run than needed.
    last = timings.lengths[-1] if timings.lengths else 1
    before = walls[: len(walls) - last]
    assert sum(before) < enough_ns or len(before) < least or not before


class HeapUse(ctypes.Structure):
    """The result of glibc's mallinfo2."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd",
            "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
        )
    )  # fmt: skip


def heap_reader() -> Callable[[], HeapUse]:
    try:
        read = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        pytest.skip("only glibc 2.33 and later can tell how much of the heap is in use")
    read.restype = HeapUse
    return read


@pytest.mark.parametrize("time_slices", [None, 300])
def test_a_loop_takes_nothing_from_the_heap_of_the_process(time_slices: int | None) -> None:
    read = heap_reader()
    iterations = 1_000
    in_use = array("q", [0] * iterations)
    numbers = iter(range(iterations))
    clock = Clock()

    def step() -> None:
        use = read()
        in_use[next(numbers)] = use.uordblks + use.hblkhd

    iterate(
        step,
        Timings(iterations),
        iterations=iterations,
        wall_ns=lambda: clock.now_ns,
        cpu_ns=lambda: clock.now_ns,
        turn_signal=None if time_slices is None else CountedTurns(clock, time_slices),
    )

    # The first iterations may fill caches of the interpreter.
    assert len(set(in_use[10:])) == 1
