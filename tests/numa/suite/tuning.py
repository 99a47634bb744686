"""Inside the machine, as root: spoil its settings, tune, kill the tuning anywhere, restore.

Prints one JSON document of what the kernel itself showed.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from msgspec.structs import asdict

from corebound.machine import discovery, sysfs
from corebound.machine.doctor.examine import examine
from corebound.machine.doctor.host_facts import HostFacts, take_snapshot
from corebound.machine.doctor.host_settings import STATE, Disk, restore, tune
from corebound.machine.doctor.result import CheckResult, SettingChange

ROOT = Path("/")
SPOILT = {
    "proc/sys/vm/swappiness": "60",
    "proc/sys/kernel/randomize_va_space": "0",
    "proc/sys/kernel/numa_balancing": "1",
    "proc/sys/kernel/sched_autogroup_enabled": "1",
    "sys/kernel/mm/ksm/run": "1",
    "sys/kernel/mm/transparent_hugepage/enabled": "always",
    "sys/kernel/mm/transparent_hugepage/defrag": "always",
}


class Deadly(Disk):
    """Kills its own process for real, before a step."""

    def __init__(self, at: int) -> None:
        self._left = at

    def _step(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def write(self, path: Path, data: bytes) -> None:
        self._step()
        super().write(path, data)

    def rename(self, source: Path, target: Path) -> None:
        self._step()
        super().rename(source, target)

    def sync(self, folder: Path) -> None:
        self._step()
        super().sync(folder)

    def set(self, path: Path, value: str) -> None:
        self._step()
        super().set(path, value)
        self._step()


def look() -> tuple[CheckResult, ...]:
    tree = sysfs.Files(ROOT)
    facts = HostFacts(
        tree=tree,
        topology=discovery.live_topology(),
        before=take_snapshot(tree),
        after=take_snapshot(tree),
        pid=os.getpid(),
        sudo=True,
    )
    return examine(facts)


def settings(paths: list[str]) -> dict[str, str]:
    return {path: (ROOT / path).read_text() for path in paths}


def tuned_until_killed(changes: list[SettingChange], at: int) -> bool:
    """Tune in a process of its own; whether it was killed."""
    child = os.fork()
    if child == 0:
        tune(changes, ROOT, Deadly(at))
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def main() -> None:
    """Spoil, tune and restore the settings of the machine that this runs on."""
    for path, value in SPOILT.items():
        if (ROOT / path).exists():
            Disk().set(ROOT / path, value)
    spoilt = look()
    changes = [change for one in spoilt for change in one.changes]
    before = settings([change.path for change in changes])

    kills: list[dict[str, bool | int]] = []
    while True:
        killed = tuned_until_killed(changes, len(kills))
        meanwhile = settings(list(before))
        restore(ROOT, Disk())
        kills.append(
            {
                "killed": killed,
                "changed": sum(meanwhile[path] != text for path, text in before.items()),
                "restored": settings(list(before)) == before and not (ROOT / STATE).exists(),
            }
        )
        if not killed:
            break

    outcomes = tune(changes, ROOT, Disk())
    tuned = look()
    restore(ROOT, Disk())
    json.dump(
        {
            "spoilt": {one.host_check.check: asdict(one.host_check) for one in spoilt},
            "tuned": {one.host_check.check: asdict(one.host_check) for one in tuned},
            "wanted": {change.path: change.value for change in changes},
            "outcomes": [asdict(outcome) for outcome in outcomes],
            "kills": kills,
            "restored": settings(list(before)) == before,
        },
        sys.stdout,
    )


if __name__ == "__main__":
    main()
