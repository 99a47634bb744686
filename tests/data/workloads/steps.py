"""Workloads that behave, and workloads that do not, for tests of launches."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable

Step = Callable[[], object]


def short() -> Step:
    return lambda: sum(range(1000))


def parametrised(*, factor: int) -> Step:
    return lambda: factor


def moves_itself(*, to: int, at: int = 3) -> Step:
    calls = iter(range(1_000_000))

    def step() -> None:
        if next(calls) == at:
            os.sched_setaffinity(0, {to})
        time.sleep(0.001)

    return step


def moves_a_thread(*, to: int) -> Step:
    def body() -> None:
        os.sched_setaffinity(0, {to})
        time.sleep(60)

    threading.Thread(target=body, daemon=True).start()
    return lambda: time.sleep(0.001)


def leaves_strays() -> Step:
    subprocess.Popen(["setsid", "sh", "-c", "sleep 900 & sleep 900"])
    return lambda: None


def never_ends() -> Step:
    calls = iter(range(1_000_000))
    return lambda: time.sleep(900 if next(calls) else 0)


def never_sets_up() -> Step:
    time.sleep(900)
    return lambda: None


def raises() -> Step:
    def step() -> None:
        raise RuntimeError("the <b>oven</b> is cold")

    return step


def raises_later() -> Step:
    calls = iter(range(1_000_000))

    def step() -> float:
        return 1 / (2 - next(calls))

    return step


def kills_itself() -> Step:
    calls = iter(range(1_000_000))

    def step() -> None:
        if next(calls) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    return step


def writes() -> Step:
    return lambda: print("a line for the log", file=sys.stderr)


def naps_unawaited() -> Callable[[], object]:
    async def step() -> None:
        await asyncio.sleep(0.05)

    return step


def not_a_step() -> int:
    return 42


def loses_its_environment() -> Step:
    return lambda: None


class Counted:
    """A workload with all of its methods."""

    def __init__(self, good: bool) -> None:
        self._good = good

    def step(self) -> int:
        return 42 if self._good else 41

    def check(self, result: int) -> None:
        if result != 42:
            raise ValueError(f"{result} is not the answer")

    def teardown(self) -> None:
        print("torn down")


def counted(*, good: bool = True) -> Counted:
    return Counted(good)


def _computes(until_s: float) -> None:
    while time.thread_time() < until_s:
        sum(range(1000))


def computes_for(*, ms: int) -> Step:
    """So much CPU time, however long that takes."""
    return lambda: _computes(time.thread_time() + ms / 1000)


def naps(*, ms: int) -> Step:
    """So much time in which it wants no CPU."""
    return lambda: time.sleep(ms / 1000)


def competes_with_itself(*, ms: int) -> Step:
    """Four threads that want a CPU at once."""

    def step() -> None:
        threads = [
            threading.Thread(target=lambda: _computes(time.thread_time() + ms / 4000))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return step
