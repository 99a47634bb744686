"""The thread sampler on a real process whose threads come and go."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from corebound.launch.thread_sampler import ThreadSampler

pytestmark = [pytest.mark.measures, pytest.mark.quick]


@contextmanager
def a_thread() -> Iterator[int]:
    """A thread of this process that waits until it may end; its number."""
    leave = threading.Event()
    thread = threading.Thread(target=leave.wait)
    thread.start()
    try:
        assert thread.native_id is not None
        yield thread.native_id
    finally:
        leave.set()
        thread.join()
        # Python is through with a thread a moment before the kernel is.
        while Path(f"/proc/self/task/{thread.native_id}").exists():
            time.sleep(0.001)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_ended_threads_hold_no_files_open_and_are_reported() -> None:
    watch = ThreadSampler(os.getpid())
    watch.sample(search=True)
    watch.start()
    before, ended = descriptors(), []
    for _ in range(8):
        with a_thread() as tid:
            watch.sample()
            ended.append(tid)
    watch.sample()

    # Fewer, where another thread of the tests' own process has ended meanwhile.
    assert descriptors() <= before
    sampled = {thread.tid for thread in watch.close()}
    assert sampled >= {os.getpid(), *ended}


def test_context_switches_of_ended_threads_are_kept() -> None:
    watch = ThreadSampler(os.getpid())
    with a_thread() as tid:
        watch.sample(search=True)
        watch.start()
        watch.read_counts()
    watch.sample()
    watch.read_counts()

    (thread,) = (one for one in watch.close() if one.tid == tid)
    # It began to wait before it was looked at.
    assert thread.voluntary is not None
    assert thread.voluntary >= 0
