"""The checks of `corebound doctor`, with this host's tools and environments, and before a run."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from pathlib import Path

from msgspec.structs import replace

from corebound import clock
from corebound.launch import environments
from corebound.machine import sysfs
from corebound.machine.doctor.checks_system import PROGRAMS
from corebound.machine.doctor.examine import SNAPSHOT_INTERVAL_S, examine
from corebound.machine.doctor.result import CheckResult, HostCheck
from corebound.machine.topology import Topology
from corebound.records import atomic_write
from corebound.serving.servers import find_java
from corebound.workflow.execute import Reporter
from corebound.workflow.prepare import PreparedRun

LIVE = Path("/")
_SHOWN = "warnings-shown.json"
# Groups that a run reports itself, with the cells that it skips.
_REPORTED_BY_RUN = {"tools", "environments"}


def check_host(
    root: Path, topology: Topology | None, *, with_tools: bool
) -> tuple[CheckResult, ...]:
    """Check a machine.

    Args:
        root: `LIVE`, or a folder with another machine's proc/ and sys/.
        topology: Its topology; None if no CPUs are visible.
        with_tools: Whether to check this host's tools and environments as well.
    """
    is_live = root == LIVE
    return examine(
        sysfs.Files(root),
        topology=topology,
        wait=_wait if is_live else _no_wait,
        pid=os.getpid() if is_live else 0,
        sudo="SUDO_UID" in os.environ,
        tools=frozenset(filter(_is_installed, PROGRAMS)) if with_tools else None,
        environments=_environments() if with_tools else None,
    )


def preflight(prepared: PreparedRun, reporter: Reporter) -> PreparedRun:
    """Show the warnings before a run, and store the checks with it.

    A resumed run keeps its first checks.
    """
    checks = [
        check
        for check in check_host(LIVE, prepared.run.host.topology, with_tools=False)
        if check.host_check.group not in _REPORTED_BY_RUN
    ]
    reporter.show_warnings(_not_shown_today([check.host_check for check in checks]))
    if prepared.run.preflight is not None:
        return prepared
    stored = tuple(check.recorded for check in checks)
    return replace(prepared, run=replace(prepared.run, preflight=stored))


def _not_shown_today(checks: list[HostCheck]) -> list[HostCheck]:
    """The checks without warnings about settings that were shown on this host today.

    Settings stay as they are for weeks. Load changes from run to run, so it is always shown.
    """
    file, today = environments.cache_dir() / _SHOWN, clock.timestamp()[:10]
    try:
        shown = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):
        shown = {}
    if not isinstance(shown, dict) or shown.get("day") != today:
        shown = {"day": today}
    settings = {
        check.check: check.value
        for check in checks
        if check.state == "warning" and check.group != "load"
    }
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        atomic_write.put(file, json.dumps({**shown, **settings}).encode())
    return [check for check in checks if shown.get(check.check) != check.value]


def _is_installed(program: str) -> bool:
    return (find_java() if program == "java" else shutil.which(program)) is not None


def _wait() -> None:
    time.sleep(SNAPSHOT_INTERVAL_S)


def _no_wait() -> None:
    """Do not wait: the files of a saved machine do not change."""


def _environments() -> dict[str, bool]:
    suite = Path.cwd()
    return {name: environments.find(name, suite) is not None for name in environments.names(suite)}
