"""The loop and the wire: what a worker measures and says."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.worker import protocol
from corebound.worker.timing import Timings
from corebound.worker.workload import AsyncWorkload, FunctionWorkload, WorkloadError


def ticking(*ticks_ns: int) -> Callable[[], int]:
    values: Iterator[int] = iter(ticks_ns)
    return lambda: next(values)


def test_each_call_is_timed_separately() -> None:
    timings = Timings(2)
    timings.measure(
        lambda: None, iterations=2, wall_ns=ticking(100, 107, 200, 205), cpu_ns=ticking(10, 14, 17)
    )

    assert (timings.walls.tolist(), timings.cpus.tolist()) == ([7, 5], [4, 3])


def test_only_the_call_is_between_the_readings_of_the_wall_clock() -> None:
    finished: list[str] = []

    def noted(what: str) -> int:
        finished.append(what)
        return 0

    Timings(2).measure(
        lambda: noted("step"),
        iterations=2,
        wall_ns=lambda: noted("wall"),
        cpu_ns=lambda: noted("cpu"),
    )

    assert finished == ["cpu", *["wall", "step", "wall", "cpu"] * 2]


def test_what_prepares_a_call_is_not_timed() -> None:
    timings = Timings(2)
    timings.measure(
        lambda: None,
        iterations=2,
        prepare=lambda: None,
        wall_ns=ticking(100, 107, 200, 205),
        cpu_ns=ticking(0, 10, 14, 20, 23),
    )

    assert (timings.walls.tolist(), timings.cpus.tolist()) == ([7, 5], [4, 3])


def test_no_iterations_give_no_samples() -> None:
    timings = Timings(2)
    timings.measure(lambda: None, iterations=0, wall_ns=ticking(), cpu_ns=ticking(10))

    assert (len(timings.walls), len(timings.cpus)) == (0, 0)


@given(
    st.none()
    | st.builds(
        protocol.Alternates,
        turn_signal=st.text("abcdef0123456789-", min_size=1),
        turn_number=st.integers(0, 255),
    ),
    st.none() | st.integers(0, 10**15),
)
def test_the_order_to_go_is_one_line_and_says_how_to_alternate_and_for_how_long(
    alternates: protocol.Alternates | None, most_ns: int | None
) -> None:
    line = protocol.encode_go(alternates, most_ns)

    assert line.count(b"\n") == 1
    assert protocol.decode_go(line) == (alternates, most_ns)


@pytest.mark.parametrize("line", [b"stop\n", b"go socket\n", b"\n"])
def test_another_order_is_an_error(line: bytes) -> None:
    with pytest.raises(protocol.WireError):
        protocol.decode_go(line)


async def a_coroutine() -> int:
    await asyncio.sleep(0)
    return 42


async def an_asynchronous_generator() -> AsyncIterator[int]:
    yield 42


def a_generator() -> Iterator[int]:
    yield 42


class Awaitable:
    """What is awaited without being a coroutine."""

    def __await__(self) -> Iterator[None]:
        yield


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (a_coroutine, "returned a coroutine"),
        (an_asynchronous_generator, "returned an asynchronous generator"),
        (a_generator, "returned a generator"),
        (Awaitable, "returned a Awaitable"),
    ],
)
def test_a_step_that_returns_unfinished_work_is_rejected(
    step: Callable[[], object], message: str
) -> None:
    workload = FunctionWorkload(step, "steps:made")

    with pytest.raises(WorkloadError, match=f"a step of `steps:made` {message}"):
        workload.check(workload.step())


@pytest.mark.parametrize("made", [a_coroutine, an_asynchronous_generator, a_generator])
def test_a_setup_that_returns_unfinished_work_is_rejected(made: Callable[[], object]) -> None:
    with pytest.raises(WorkloadError, match="`steps:made` returned"):
        FunctionWorkload(made(), "steps:made")


class Whole:
    """A workload whose methods are all asynchronous."""

    def __init__(self) -> None:
        self.loops = [asyncio.get_running_loop()]

    async def step(self) -> int:
        self.loops.append(asyncio.get_running_loop())
        return await a_coroutine()

    async def check(self, result: int) -> None:
        if result != 43:
            raise ValueError(f"{result} is wrong")

    async def teardown(self) -> None:
        self.loops.append(asyncio.get_running_loop())


async def whole() -> Whole:
    return Whole()


def test_methods_that_are_not_awaited_are_rejected() -> None:
    workload = FunctionWorkload(asyncio.run(whole()), "steps:whole")

    with pytest.raises(WorkloadError, match="`check` of `steps:whole` returned a coroutine"):
        workload.check(42)
    with pytest.raises(WorkloadError, match="`teardown` of `steps:whole` returned a coroutine"):
        workload.teardown()


def test_an_asynchronous_workload_is_awaited_on_one_event_loop() -> None:
    made: list[Whole] = []

    async def setup() -> Whole:
        made.append(Whole())
        return made[0]

    workload = AsyncWorkload(setup, "steps:whole")

    assert [workload.step(), workload.step()] == [42, 42]
    with pytest.raises(ValueError, match="42 is wrong"):
        workload.check(42)
    workload.teardown()
    assert len(made[0].loops) == 4
    assert len(set(made[0].loops)) == 1


@pytest.mark.parametrize(
    ("step", "message"),
    [(lambda: 42, "int, which cannot be awaited"), (a_generator, "a generator")],
)
def test_a_step_that_cannot_be_awaited_is_rejected_with_async(
    step: Callable[[], object], message: str
) -> None:
    workload = AsyncWorkload(lambda: step, "steps:made")

    with pytest.raises(WorkloadError, match=f"a step of `steps:made` returned {message}"):
        workload.step()
    workload.teardown()
