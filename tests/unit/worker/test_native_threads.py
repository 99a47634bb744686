"""Threads are counted as the kernel lists them."""

import threading

from corebound.worker.native_threads import PoolCounter, computing_threads, cpu_ns_by_thread


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


def test_threads_that_compute_share_the_work_and_others_use_next_to_nothing() -> None:
    samples = iter([{"1": 500, "2": 40}, {"1": 900, "2": 50, "3": 390, "4": 41}])

    # 400, 10, 390 and 41 nanoseconds: a tenth of the most is 40.
    assert computing_threads(lambda: None, lambda: next(samples)) == 3


def test_each_thread_of_the_process_has_its_own_cpu_time() -> None:
    assert str(threading.get_native_id()) in cpu_ns_by_thread()
