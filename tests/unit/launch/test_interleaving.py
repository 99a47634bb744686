"""Specifies whose turn it is, and when this process is off the measured CPUs."""

import contextlib
import itertools
import os
import time
from collections.abc import Collection, Iterator

import pytest

from corebound.launch import interleaving as module
from corebound.launch.interleaving import JointStart, Participant, keep_off_cpus
from corebound.machine.procfs import ProcessStat
from corebound.machine.topology import CpuId
from support.known import known

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


def test_the_process_stays_off_the_cpus_of_all_open_launches(moves: list[set[int]]) -> None:
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


def none() -> tuple[int, ...]:
    """The processes of a launch that has none."""
    return ()


@contextlib.contextmanager
def started(*turns: int, cpus: int = 8) -> Iterator[tuple[Participant, ...]]:
    """Launches without processes: as many as each turn has, which import at the same time."""
    with JointStart([[1] * launches for launches in turns], cpus=cpus) as start:
        yield start.participants


def may_set_up(launches: Collection[Participant]) -> list[bool]:
    return [one.may_set_up(0) for one in launches]


def test_nobody_sets_up_while_others_import() -> None:
    with started(1, 1, 1) as launches:
        first, second, third = launches
        first.imported(none)
        second.imported(none)
        assert may_set_up(launches) == [False, False, False]

        third.imported(none)
        assert may_set_up(launches) == [True, False, False]


def test_one_that_ends_while_it_imports_is_not_waited_for() -> None:
    with started(1, 1) as (first, second):
        second.imported(none)
        first.leave()

        assert second.may_set_up(0)


def test_a_launch_has_its_turn_when_all_before_it_have_ended() -> None:
    with started(1, 1, 1) as launches:
        for one in launches:
            one.imported(none)
        first, second, third = launches
        assert first.may_set_up(0)
        assert [one.is_paused for one in launches] == [False, True, True]
        first.leave()
        assert second.may_set_up(0)
        assert [one.is_paused for one in launches] == [False, False, True]
        second.leave()
        assert third.may_set_up(0)


def test_those_that_alternate_share_a_turn_and_set_up_one_after_the_other() -> None:
    with started(2, 1) as launches:
        for one in launches:
            one.imported(none)
        first, second, last = launches
        assert may_set_up(launches) == [True, False, False]
        first.ready(none)
        assert not first.may_go(0)
        assert second.may_set_up(0)
        second.ready(none)
        assert first.may_go(0)
        first.leave()
        assert not last.may_set_up(0)
        second.leave()
        assert last.may_set_up(0)


def test_what_a_launch_waits_for_before_it_is_measured_is_no_pause_between_time_slices() -> None:
    with started(2) as (first, second):
        first.imported(none)
        second.imported(none)
        assert first.may_set_up(0)
        until_set_up_ns = known(first.wait).duration_ns
        first.ready(none)
        assert second.may_set_up(0)
        second.ready(none)
        assert first.may_go(0)

        assert known(first.wait).duration_ns > until_set_up_ns
        assert first.paused_ns == 0


def test_what_threads_use_until_all_have_left_their_cpus_is_not_used_while_paused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Of two threads the second one waits for its CPU. A state is "stopped" before the thread
    # leaves its CPU: the clock goes on for a while.
    clock_ns = itertools.chain([1_000, 2_000, 2_500, 3_500_000], itertools.repeat(3_500_100))
    second = itertools.chain(b"RR", itertools.repeat(ord("T")))

    def stat(of: int | str) -> ProcessStat:
        state = next(second) if of == "7/task/8" else ord("T")
        return ProcessStat(b"7 (a) %c 1 7 7 0 -1 0 5 50 2 20 9 8 3 1 20 0 1 0 99 4096 6" % state)

    monkeypatch.setattr(module, "process_stat", stat)
    monkeypatch.setattr(module, "thread_ids", lambda _pid: [7, 8])
    monkeypatch.setattr(module, "cpu_clocks_ns", lambda pids: {pid: next(clock_ns) for pid in pids})
    monkeypatch.setattr(os, "getpgid", lambda _pid: os.getpgrp())
    with started(2) as (launch, _):
        launch.imported(lambda: (7,))
        assert next(second) == ord("T")
        launch.resume()

        assert launch.pauses.cpu_ns == 0


def test_a_stopped_thread_whose_cpu_a_hypervisor_holds_has_not_left_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = ProcessStat(b"7 (a) T 1 7 7 0 -1 0 5 50 2 20 9 8 3 1 20 0 1 0 99 4096 6")
    waits = itertools.chain([b"0"], itertools.repeat(b"do_signal_stop"))
    # Its clock stands still until the CPU comes back.
    clock_ns = itertools.chain([1_000, 1_000], itertools.repeat(4_001_000))
    monkeypatch.setattr(module, "process_stat", lambda _pid: stopped)
    monkeypatch.setattr(module, "thread_ids", lambda _pid: [7])
    monkeypatch.setattr(module, "readable", lambda _path, **_: next(waits))
    monkeypatch.setattr(module, "cpu_clocks_ns", lambda pids: {pid: next(clock_ns) for pid in pids})
    monkeypatch.setattr(os, "getpgid", lambda _pid: os.getpgrp())
    with started(2) as (launch, _):
        launch.imported(lambda: (7,))
        launch.resume()

        assert launch.pauses.cpu_ns == 0


def test_a_launch_with_a_turn_of_its_own_iterates_without_interruption() -> None:
    with started(1, 2) as (single, *others):
        assert single.alternates is None
        assert [one.alternates.turn_number for one in others if one.alternates] == [0, 1]


def test_when_memory_is_short_only_those_that_still_import_have_no_room() -> None:
    with JointStart([[1], [1], [1]], cpus=2) as start:
        start.participants[0].imported(none)

        start.give_up_imports()

        assert [one.has_no_room for one in start.participants] == [False, True, True]


@pytest.mark.parametrize(("launches", "cpus", "share"), [(4, 2, 1 / 2), (4, 16, 0), (1, 2, 0)])
def test_a_time_limit_does_not_count_what_importing_takes_longer_on_shared_cpus(
    monkeypatch: pytest.MonkeyPatch, launches: int, cpus: int, share: float
) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    with started(*(1,) * launches, cpus=cpus) as (first, *_):
        now_s = 110.0
        assert first.others_s == pytest.approx(10 * share)
        first.imported(none)
        now_s = 200.0
        assert first.others_s == pytest.approx(10 * share)
        assert first.others_share_s == pytest.approx(10 * (1 - 1 / launches))
