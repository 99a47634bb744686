"""What tests need of the host that Python does not bring.

Where it is missing they are skipped, and say what to install. Continuous integration sets
`COREBOUND_TESTS_NEED_ALL`: there a missing program is a failure, and only what a host cannot
be given, such as a second CPU or a GPU, is a reason to skip.
"""

import os
import shutil
from ctypes.util import find_library
from pathlib import Path
from typing import NoReturn

import pytest

from corebound.machine.identity import gpus

_SMT = Path("/sys/devices/system/cpu/smt/active")
HAS_SMT = _SMT.is_file() and _SMT.read_text().strip() == "1"

NEED_ALL = "COREBOUND_TESTS_NEED_ALL" in os.environ


def _package(package: str, *, is_here: bool) -> pytest.MarkDecorator:
    """What a Debian package has, which `scripts/debian-packages` installs."""
    is_missing = not (is_here or NEED_ALL)
    return pytest.mark.skipif(is_missing, reason=f"not installed: apt-get install {package}")


def _program(name: str, package: str) -> pytest.MarkDecorator:
    return _package(package, is_here=shutil.which(name) is not None)


perf = _program("perf", "linux-perf")
java = _program("java", "default-jre-headless")
ab = _program("ab", "apache2-utils")
sysbench = _program("sysbench", "sysbench")
wrk = _program("wrk", "wrk")
redis = _program("redis-server", "redis")
sqlite = _program("sqlite3", "sqlite3")
hwloc = _program("lstopo-no-graphics", "hwloc")
npm = _program("npm", "npm")
compiler = _program("g++", "g++")
shellcheck = _program("shellcheck", "shellcheck")
systemd = _program("systemd-analyze", "systemd")
chromium = _program("chromium", "chromium")
libatomic = _package("libatomic1", is_here=find_library("atomic") is not None)
emulator = _program("qemu-system-x86_64", "qemu-system-x86")

two_cpus = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="one CPU alone: there is none beside it"
)
a_gpu = pytest.mark.skipif(not gpus(Path("/"), None), reason="this host has no NVIDIA GPU")


def missing(what: str) -> NoReturn:
    """Skip the test that needs this, or fail it where nothing may be missing."""
    if NEED_ALL:
        pytest.fail(what)
    pytest.skip(what)


root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
