"""Threads are counted as the kernel lists them."""

from __future__ import annotations

import threading

from corebound.worker.native_threads import PoolCounter


def test_a_pool_that_was_never_started_is_the_calling_thread() -> None:
    assert PoolCounter().size == 1


def test_threads_of_python_are_not_counted() -> None:
    end = threading.Event()
    counter = PoolCounter()
    thread = threading.Thread(target=end.wait)
    thread.start()

    assert counter.size == 1

    end.set()
    thread.join()
