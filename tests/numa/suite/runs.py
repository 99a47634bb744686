"""Inside the machine: the runs that tests look at, in forks of one process that has imported all.

Emulated, importing corebound takes seconds.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from pathlib import Path

import corebound.cli.app
import corebound.cli.commands.plan
import corebound.cli.commands.run  # noqa: F401  # imported once, before the runs fork

# Once: an emulated launch takes seconds.
RUN = ("run", "--launches", "1")
CGROUPS = Path("/sys/fs/cgroup")
BOX = CGROUPS / "box"
OFFLINE = [Path(f"/sys/devices/system/cpu/cpu{cpu}/online") for cpu in (3, 6)]


def command(
    folder: Path, *arguments: str, out: str | None = None, group: Path | None = None
) -> None:
    """Run a command of corebound in a folder, and in a cgroup; it must succeed."""
    child = os.fork()
    if not child:
        try:
            os.chdir(folder)
            if group:
                (group / "cgroup.procs").write_text("0")
            if out:
                os.dup2(os.open(out, os.O_WRONLY | os.O_CREAT), 1)
            sys.argv = ["corebound", *arguments]
            runpy.run_module("corebound", run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            sys.stdout.flush()
            os._exit(ended.code if isinstance(ended.code, int) else 0)
        finally:
            traceback.print_exc()
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0, (folder, arguments, code)


def main(suite: Path) -> None:
    """Run everything, with two CPUs offline and in a cgroup with a quota, too."""
    command(suite / "placement", *RUN, "pages.yaml", "wandering.yaml")
    for online in OFFLINE:
        online.write_text("0")
    command(suite / "offline", *RUN, "offline.yaml")
    for online in OFFLINE:
        online.write_text("1")
    command(suite / "limited", *RUN, "limited.yaml")
    left = "\n".join(map(str, CGROUPS.glob("corebound-*")))
    (suite / "limited" / "left.txt").write_text(left)
    # A container's limit: the processes of corebound are in a cgroup with a quota of its own.
    (CGROUPS / "cgroup.subtree_control").write_text("+cpu")
    BOX.mkdir()
    (BOX / "cpu.max").write_text("100000 100000")
    boxed = suite / "boxed"
    command(boxed, "topology", out="topology.txt", group=BOX)
    command(boxed, "plan", "limited.yaml", out="plan.txt", group=BOX)
    command(boxed, *RUN, "limited.yaml", group=BOX)


main(Path("/suite"))
