"""Huge pages, OpenMP runtimes and spinning are set for real, and proven from outside."""

from pathlib import Path
from typing import Any

import pytest

from corebound.launch.process_settings import huge_page_support, openmp_runtimes
from corebound.machine.sysfs import LIVE
from corebound.records.launch_record import Launch
from support.environments import python_of, run_scenario
from support.paths import ROOT

# A region of 8 MiB for which the program asks for huge pages, written to.
WORKLOAD = """\
import mmap

def advised():
    region = mmap.mmap(-1, 8 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    region.madvise(mmap.MADV_HUGEPAGE)
    for page in range(0, 8 << 20, 4096):
        region[page] = 1
    return lambda: region[0]
"""


def _run(folder: Path, code: int = 0, **scenario: Any) -> tuple[Launch, ...]:
    (folder / "regions.py").write_text(WORKLOAD)
    (folder / "__pycache__").mkdir()
    return run_scenario(folder, code=code, **{"workload": "regions:advised", **scenario})


def test_each_mode_of_huge_pages_is_set_and_read_back(tmp_path: Path) -> None:
    if huge_page_support().host == "never":
        pytest.skip("this host allows no huge pages")

    launches = _run(tmp_path, matrix={"thp": [None, "madvise", "never"]})

    pages = {(launch.status, launch.cell.thp): launch.workers[0].huge_pages for launch in launches}
    assert set(pages) == {("ok", None), ("ok", "madvise"), ("ok", "never")}
    assert pages["ok", None] is None
    advised, none = pages["ok", "madvise"], pages["ok", "never"]
    assert advised is not None
    assert none is not None
    assert (advised.disabled, advised.unadvised_bytes) == (False, 0)
    assert (none.disabled, none.size_bytes) == (True, 0)


def test_a_host_that_allows_fewer_huge_pages_skips_the_cell(tmp_path: Path) -> None:
    if huge_page_support().host == "always":
        pytest.skip("this host allows all huge pages")

    launches = _run(tmp_path, matrix={"thp": ["always", "never"]})

    (reason,) = {launch.reason for launch in launches if launch.status == "skipped"}
    assert reason is not None
    assert reason.startswith("`thp: always` is more than this host allows: ")


def test_a_worker_that_allows_itself_huge_pages_again_is_invalid(tmp_path: Path) -> None:
    if LIVE.read("proc/self/status") and "THP_enabled" not in str(LIVE.read("proc/self/status")):
        pytest.skip("this kernel does not say whether a process may have huge pages")
    (tmp_path / "leaves.py").write_text(
        "import ctypes\n"
        "def leaves():\n"
        "    ctypes.CDLL(None).prctl(41, 0, 0, 0, 0)\n"
        "    return lambda: None\n"
    )

    launches = _run(tmp_path, code=4, workload="leaves:leaves", thp="never")

    assert {launch.status for launch in launches} == {"invalid"}
    assert launches[0].evidence == (
        "`thp: never` was set, but the kernel allows the worker huge pages",
    )


# On a busy host more of its threads than requested may be seen to be busy.
@pytest.mark.measures
@pytest.mark.frameworks
def test_each_openmp_runtime_that_can_be_loaded_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "environments").symlink_to(ROOT / "environments")
    available = openmp_runtimes(python_of("lightgbm"))

    launches = run_scenario(
        tmp_path,
        workload="tree-training",
        environment="lightgbm",
        parameters={"rows": 2000, "trees": 2},
        threads=2,
        blocktime=0,
        matrix={"openmp": ["gnu", "intel", "llvm"]},
    )

    for launch in launches:
        runtime = launch.cell.openmp
        assert runtime is not None
        if runtime != "gnu" and runtime not in available:
            assert launch.status == "skipped"
            continue
        assert (launch.status, launch.reason) == ("ok", None)
        (worker,) = launch.workers
        assert worker.environment["KMP_BLOCKTIME"] == worker.environment["GOMP_SPINCOUNT"] == "0"
        loaded = {"gnu": "libgomp", "intel": "libiomp5.so", "llvm": "libomp.so"}[runtime]
        assert any(name.startswith(loaded) for name in worker.libraries)


def test_a_process_without_openmp_is_invalid_where_a_runtime_is_set(tmp_path: Path) -> None:
    launches = _run(tmp_path, code=4, openmp="gnu")

    assert launches[0].evidence == (
        "the OpenMP runtime `gnu` was set, but the worker has loaded none",
    )
