"""Fixtures for launches, imported frameworks, servers and cgroups."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from corebound.launch.supervisor_client import Supervision
from support.environments import PreloadedFrameworks
from support.servers import Serve, make_scratch, server_launcher

CGROUPS = Path("/sys/fs/cgroup")


@pytest.fixture(scope="session", autouse=True)
def environments_to_copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where `support.copied_environments` keeps what it copies: one folder for all processes."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "environments"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COREBOUND_TESTS_ENVIRONMENTS", str(folder))
        yield


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A run's folder, with the library that holds the package and nothing else."""
    folder = make_scratch()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def supervision(scratch: Path) -> Iterator[Supervision]:
    """A supervisor of that run."""
    with Supervision(scratch) as supervision:
        yield supervision


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PreloadedFrameworks]:
    """Frameworks that are imported once for all tests."""
    imported = PreloadedFrameworks(tmp_path_factory.mktemp("imported"))
    yield imported
    imported.close()


@pytest.fixture
def served(scratch: Path, supervision: Supervision) -> Serve:
    """Launches one server."""
    return server_launcher(scratch, supervision)


@pytest.fixture
def quota() -> Iterator[Path]:
    """A cgroup that may use a fifth of a CPU, and gets it; needs root, as cgroups do."""
    v1, v2 = CGROUPS / "cpu" / "corebound-test", CGROUPS / "corebound-test"
    group = v1 if v1.parent.is_dir() else v2
    try:
        group.mkdir()
        if group == v1:
            (group / "cpu.cfs_quota_us").write_text("20000")
            (group / "cpu.shares").write_text("100000")
        else:
            (group / "cpu.max").write_text("20000 100000")
            (group / "cpu.weight").write_text("10000")
    except OSError:
        pytest.skip("needs a cgroup of one's own with a CPU quota")
    try:
        yield group
    finally:
        group.rmdir()


@pytest.fixture
def freezer() -> Iterator[Path]:
    """A cgroup whose processes can be frozen; needs root, as cgroups do."""
    v1, v2 = CGROUPS / "freezer" / "corebound-test", CGROUPS / "corebound-test-frozen"
    group = v1 if v1.parent.is_dir() else v2
    try:
        group.mkdir()
        (group / "cgroup.procs").read_text()
    except OSError:
        pytest.skip("needs a cgroup of one's own that can be frozen")
    try:
        yield group
    finally:
        group.rmdir()
