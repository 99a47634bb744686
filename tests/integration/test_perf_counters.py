"""Hardware and software counters of real launches, with perf where it is available."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from corebound.launch import perf
from corebound.launch.perf import CounterSupport, Perf
from corebound.launch.supervisor_client import Supervision
from corebound.machine.procfs import processes_below
from support import needs

COMPUTES = """
import threading
print(flush=True); input()
threads = [threading.Thread(target=sum, args=(range(3_000_000),)) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(flush=True); input()
"""


@pytest.mark.quick
def test_a_host_says_what_it_cannot_count() -> None:
    offer = perf.detect_counters()

    assert offer.events or offer.unavailable
    if shutil.which("perf") is None:
        assert offer == CounterSupport(unavailable={"hardware counters": "perf is not installed"})


@needs.perf
def test_perf_counts_threads_that_start_later_and_leaves_no_process(tmp_path: Path) -> None:
    with (
        Supervision(tmp_path / "run") as supervision,
        subprocess.Popen(
            (sys.executable, "-c", COMPUTES), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        counting = Perf(("task-clock", "context-switches"), supervision, tmp_path)
        counting.start({process.pid})
        counting.start_counting()
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        counting.stop_counting()
        counts = counting.close()
        process.kill()
        leftover_processes = supervision.end(grace_s=0.0)
        left = processes_below(supervision.pid)

    assert counting.reason is None
    assert (counts["task-clock"].value or 0) > 10  # milliseconds, most of them of the threads
    assert (counts["context-switches"].value or 0) >= 3
    assert leftover_processes == ()
    assert left == {}


@needs.perf
def test_perf_ends_with_its_launch(tmp_path: Path) -> None:
    with Supervision(tmp_path / "run") as supervision:
        counting = Perf(("task-clock",), supervision, tmp_path)
        counting.start({os.getpid()})
        counting.start_counting()

        supervision.end(grace_s=0.0)

        assert processes_below(supervision.pid) == {}
        counting.close()
