"""The process pool: order, errors, output and cleanup of forked workers."""

import multiprocessing
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from rich.console import Console

from corebound.errors import HostError, InputError
from corebound.machine import lock
from corebound.machine.lock import host_lock, is_held
from corebound.report import site
from corebound.report.inputs import SiteInputs
from corebound.stats.history.incremental import SegmentCache
from corebound.stats.history.regressions import analyse
from corebound.workflow.process_pool import forked_map
from support import needs
from support.build import a_series
from support.report_sample import NOW

pytestmark = [needs.two_cpus, pytest.mark.quick]
MANY = range(100)


@pytest.fixture(autouse=True)
def no_run_measures(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host's lock has a name of its own: beside a run, the pool would be this process."""
    monkeypatch.setenv(lock.LOCK_VARIABLE, "process-pool-tests")


def test_results_are_in_the_order_of_the_items() -> None:
    offset = 7  # a fork has what the function closes over, and nothing of it is pickled

    assert list(forked_map(lambda item: item * item + offset, MANY)) == [n * n + 7 for n in MANY]


def test_many_items_are_mapped_in_workers_and_few_in_this_process() -> None:
    others = set(forked_map(lambda _: os.getpid(), MANY))

    assert os.getpid() not in others
    assert 1 <= len(others) <= len(os.sched_getaffinity(0))
    assert set(forked_map(lambda _: os.getpid(), range(3))) == {os.getpid()}


def test_an_abandoned_iteration_leaves_no_process() -> None:
    pids = forked_map(lambda _: os.getpid(), MANY)
    first = next(pids)
    pids.close()

    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


PARENT = """\
import os, time
from corebound.workflow.process_pool import forked_map
pids = forked_map(lambda _: os.getpid(), range(100))
print(next(pids), flush=True)
time.sleep(600)
"""


def test_a_killed_parent_leaves_no_process() -> None:
    with subprocess.Popen(
        (sys.executable, "-c", PARENT), stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()

    ended, _, _ = select.select([child], [], [], 10)
    os.close(child)
    assert ended


def test_an_exception_in_a_worker_is_raised_in_the_parent() -> None:
    with pytest.raises(ZeroDivisionError):
        list(forked_map(lambda item: 1 // (item - 50), MANY))

    def refused(item: int) -> int:
        raise InputError(what="it is none.", where=f"item {item}", fix="Leave it out.")

    with pytest.raises(InputError, match="item 0: it is none") as caught:
        list(forked_map(refused, MANY))
    assert caught.value.fix == "Leave it out."


def test_output_of_workers_is_kept_and_needs_no_inherited_lock(
    capfd: pytest.CaptureFixture[str],
) -> None:
    console = Console(file=sys.stderr, force_terminal=True)
    taken, released = Event(), Event()

    def refresh() -> None:
        with console._lock:
            taken.set()
            released.wait()

    # As what refreshes a status may be at it when forks begin.
    with console.status("working"), ThreadPoolExecutor() as threads:
        threads.submit(refresh)
        taken.wait()
        letters = forked_map(lambda item: sys.stderr.write(f"item {item}\n"), MANY)
        try:
            assert len(list(letters)) == len(MANY)
        finally:
            released.set()

    assert "item 99" in capfd.readouterr().err


def test_without_permission_to_fork_the_work_is_done_in_this_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fork, forks = os.fork, []

    def refused() -> int:
        forks.append(1)
        if len(forks) > 1:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return fork()

    monkeypatch.setattr(os, "fork", refused)

    assert set(forked_map(lambda _: os.getpid(), MANY)) == {os.getpid()}
    assert multiprocessing.active_children() == []


def test_during_a_run_the_work_is_done_in_this_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(lock.LOCK_VARIABLE, str(tmp_path))
    assert not is_held()
    with host_lock():
        assert is_held()
        assert set(forked_map(lambda _: os.getpid(), MANY)) == {os.getpid()}
    assert not is_held()


def test_a_killed_worker_is_an_error_with_a_fix() -> None:
    def killed(item: int) -> int:
        if item == 50:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    with pytest.raises(HostError, match=r"(?s)killed.*taskset -c 0"):
        list(forked_map(killed, MANY))


def test_a_site_is_the_same_in_one_process_and_in_many(tmp_path: Path) -> None:
    levels = [1.0, 1.2, 0.9]
    series = [
        a_series(
            [levels[night // 20] * (1 + (night * 7 % 5 + which) / 1000) for night in range(60)],
            project="p",
            title=f"time_{which}",
            scenario=f"time_{which}",
        )
        for which in range(40)
    ]
    memories = SegmentCache(), SegmentCache()
    site.write(SiteInputs(records=[], now=NOW, series=series, cache=memories[0]), tmp_path / "one")
    site.write(
        SiteInputs(records=[], now=NOW, series=series, cache=memories[1], mapper=forked_map),
        tmp_path / "many",
    )

    assert _files(tmp_path / "one") == _files(tmp_path / "many")
    assert memories[0].asked == memories[1].asked
    assert memories[0].asked
    assert analyse(series, mapper=forked_map).changes == analyse(series).changes


def _files(folder: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file()
    }
