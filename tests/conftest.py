"""Settings and fixtures of all tests.

Each test outside `tests/unit` gets a marker named after its folder, and the time limit of its kind.
"""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

# Without a deadline: on a busy host one example may take a second.
settings.register_profile("gate", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("fuzz", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("COREBOUND_HYPOTHESIS", "gate"))

# A shell that starts the tests in the background has all their processes ignore interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

TESTS = Path(__file__).parent
# Builds, boots and real launches, many times slower on a busy host.
TIMEOUT_S = {"fleet": 900, "integration": 900, "numa": 1800}

# Files that take a minute or more, in the order in which they start: were one of them last, the
# other processes of a lane would wait for it.
LONGEST = (
    "numa/test_machine.py",
    "integration/test_workloads.py",
    "fleet/test_dask.py",
    "fleet/test_slurm.py",
    "integration/test_own_servers.py",
    "integration/test_tune.py",
    "integration/test_compare_commits.py",
    "integration/test_serving.py",
    "integration/test_init.py",
    "integration/test_run.py",
    "integration/test_serving_verification.py",
    "integration/test_nightly.py",
)

# Files that share frameworks which one process imports once.
IMPORTING = {
    f"tests/integration/test_{name}.py"
    for name in (
        *("framework_equivalence", "gpus_and_versions", "operator_profiles", "runtimes"),
        *("training", "trees", "workload_errors", "workloads"),
    )
}


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadFileScheduling:
    """Give each file to one of the processes of a lane, and all those of frameworks to one."""
    scheduling = LoadFileScheduling(config, log)
    scheduling._split_scope = _scope
    return scheduling


def _scope(test: str) -> str:
    file = test.partition("::")[0]
    return "frameworks" if file in IMPORTING else file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder, so that lanes can select them; the longest files come first."""
    places = {TESTS / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    for item in items:
        if item.path.is_relative_to(TESTS):
            folder = item.path.relative_to(TESTS).parts[0]
            if folder in {"integration", "browser", "fleet", "numa"}:
                item.add_marker(folder)
            if folder in TIMEOUT_S and item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(TIMEOUT_S[folder]))


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], list[bytes | list[str]]]:
    """Returns what the disk has of a path after each fsync: a file's bytes, or a folder's names.

    A power failure may lose whatever is written or created after the last fsync.
    """
    fsync = os.fsync
    states: dict[tuple[int, int], list[bytes | list[str]]] = {}

    def record(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}")
        state = [file.name for file in path.iterdir()] if path.is_dir() else path.read_bytes()
        states.setdefault(_inode(path), []).append(state)

    monkeypatch.setattr(os, "fsync", record)
    # By inode, because a file may be renamed after it is written.
    return lambda path: list(states.get(_inode(path), []))


def _inode(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
