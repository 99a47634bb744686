"""The loop and the wire: what a worker measures and says."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corebound.model import wire
from corebound.worker.loop import measure


def ticking(*ticks_ns: int) -> Callable[[], int]:
    values: Iterator[int] = iter(ticks_ns)
    return lambda: next(values)


def test_each_call_is_timed_alone_and_all_are_kept() -> None:
    walls, cpus = measure(
        lambda: None,
        iterations=2,
        wall_ns=ticking(100, 107, 200, 205),
        cpu_ns=ticking(10, 14, 17),
    )

    assert (walls.tolist(), cpus.tolist()) == ([7, 5], [4, 3])


def test_nothing_but_the_call_lies_between_the_two_readings_of_the_wall_clock() -> None:
    done: list[str] = []

    def noted(what: str) -> int:
        done.append(what)
        return 0

    measure(
        lambda: noted("step"),
        iterations=2,
        wall_ns=lambda: noted("wall"),
        cpu_ns=lambda: noted("cpu"),
    )

    assert done == ["cpu", *["wall", "step", "wall", "cpu"] * 2]


def test_no_iterations_give_no_samples() -> None:
    walls, cpus = measure(lambda: None, iterations=0, wall_ns=ticking(), cpu_ns=ticking(10))

    assert (len(walls), len(cpus)) == (0, 0)


messages = st.one_of(
    st.builds(wire.Phase, name=st.text(), duration_ns=st.integers()),
    st.builds(wire.Samples, wall_ns=st.lists(st.integers()), cpu_ns=st.lists(st.integers())),
    st.builds(wire.Failure, during=st.text(), what=st.text(), mend=st.none() | st.text()),
)


@given(messages)
def test_a_message_is_one_line_and_comes_back_as_it_was(message: wire.Message) -> None:
    line = wire.encode(message)

    assert line.count(b"\n") == 1
    assert wire.decode_message(line) == message


@given(st.binary())
def test_anything_else_is_refused(line: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.decode_message(line)


@pytest.mark.parametrize("line", [b"[]", b"1", b"{}", b'{"kind":"ready"}', b'{"kind":["a"]}'])
def test_json_that_is_no_message_is_refused(line: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.decode_message(line)
