"""Sets a CPU quota where it is started, and prints what happened as one line of JSON."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from corebound.errors import LaunchError
from corebound.launch.cpu_quota import Limit, limited, quota_support, remove_abandoned
from corebound.machine.cgroups import quotas
from corebound.machine.sysfs import LIVE

# Enters a cgroup, computes for five periods, and prints where it was.
WORK = """\
import sys, time
open(sys.argv[1], "w").write("0")
until_s = time.monotonic() + 0.5
while time.monotonic() < until_s:
    pass
print(open("/proc/self/cgroup").read())
"""


def own() -> str:
    return Path("/proc/self/cgroup").read_text().strip().partition("::")[2]


def worked(limit: Limit) -> dict[str, object]:
    assert limit.procs is not None
    child = subprocess.run(
        (sys.executable, "-I", "-S", "-c", WORK, str(limit.procs)),
        capture_output=True,
        text=True,
        check=True,
    )
    folder = limit.procs.parent
    stat = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
    return {
        "group": child.stdout.strip().partition("::")[2],
        "folder": str(folder),
        "max": (folder / "cpu.max").read_text().strip(),
        "throttled": int(stat["nr_throttled"]),
    }


def tried() -> dict[str, object]:
    support = quota_support()
    found = quotas(LIVE)
    seen: dict[str, object] = {
        "own": own(),
        "tool": support.tool,
        "reason": support.reason,
        "fix": support.fix,
        "known": [quota.cpus for quota in found.known],
        "unknown": found.unknown,
    }
    try:
        with limited(0.5) as limit:
            seen |= worked(limit)
    except LaunchError as error:
        seen["error"] = error.what
    return seen


def killed() -> dict[str, object]:
    """A process that holds a quota is killed; the next one removes what it left."""
    pid = os.fork()
    if not pid:
        with limited(0.5):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    before = state()
    remove_abandoned()
    return {"before": before, "after": state()}


def together(other: Path) -> dict[str, object]:
    """Two processes in sibling groups hold a quota; the one that enabled the controller ends."""
    (ready, told), (go, end) = os.pipe(), os.pipe()
    pid = os.fork()
    if not pid:
        with limited(0.5):
            os.write(told, b"1")
            os.read(go, 1)
        os._exit(0)
    os.read(ready, 1)
    other.joinpath("cgroup.procs").write_text("0")
    with limited(0.5) as limit:
        os.write(end, b"1")
        os.waitpid(pid, 0)
        seen = worked(limit)
    return seen | {"own": own(), "after": state()}


def state() -> dict[str, object]:
    root = Path("/sys/fs/cgroup")
    return {
        "left": [str(path) for path in root.glob("**/corebound-*")],
        "enabled": sorted(
            str(file.parent)
            for file in root.glob("**/cgroup.subtree_control")
            if "cpu" in file.read_text().split()
        ),
    }


def main() -> None:
    name, what, *rest = sys.argv[1:]
    before = state()
    if what == "killed":
        seen = killed()
    elif what == "together":
        seen = together(Path(rest[0]))
    else:
        seen = tried()
    seen |= {"name": name, "is_restored": state() == before}
    sys.stdout.write(json.dumps(seen) + "\n")
    sys.stdout.flush()


main()
