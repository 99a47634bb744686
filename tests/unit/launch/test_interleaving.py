"""Specifies when this process moves off the measured CPUs, and when it returns."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Collection, Iterator

import pytest

from corebound.launch import interleaving as module
from corebound.launch.interleaving import keep_off_cpus
from corebound.machine.topology import CpuId

HOME = frozenset({0, 1, 2, 3})


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[set[int]]]:
    """Where the process was moved to, on a host of four CPUs; each move takes effect."""
    moved: list[set[int]] = [set(HOME)]

    def move(cpus: Collection[int]) -> None:
        moved.append(set(cpus))

    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: moved[-1])
    monkeypatch.setattr(module, "_move", move)
    yield moved
    assert moved[-1] == HOME


def cpus(*numbers: int) -> tuple[CpuId, ...]:
    return tuple(map(CpuId, numbers))


def test_a_launch_moves_the_process_away_and_back(moves: list[set[int]]) -> None:
    with keep_off_cpus(cpus(3)) as away:
        assert away
        assert moves == [HOME, {0, 1, 2}]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_last_of_concurrent_launches_moves_the_process_back(
    moves: list[set[int]], order: tuple[int, ...]
) -> None:
    stacks = [contextlib.ExitStack() for _ in order]
    for stack in stacks:
        assert stack.enter_context(keep_off_cpus(cpus(3)))

    for place in order[:-1]:
        stacks[place].close()
        assert moves[-1] == {0, 1, 2}
    stacks[order[-1]].close()

    assert moves == [HOME, {0, 1, 2}, HOME]


def test_the_process_stays_off_the_cpus_of_all_open_launches(
    moves: list[set[int]],
) -> None:
    first, second = contextlib.ExitStack(), contextlib.ExitStack()
    first.enter_context(keep_off_cpus(cpus(3)))
    second.enter_context(keep_off_cpus(cpus(2)))
    first.close()
    second.close()

    assert moves == [HOME, {0, 1, 2}, {0, 1}, {0, 1, 3}, HOME]


def test_without_other_cpus_the_process_stays_and_reports_it(moves: list[set[int]]) -> None:
    with keep_off_cpus(cpus(0, 1, 2, 3)) as away:
        assert not away
    with keep_off_cpus(cpus(0, 1)), keep_off_cpus(cpus(2, 3)) as away:
        assert not away
        assert moves[-1] == {2, 3}
