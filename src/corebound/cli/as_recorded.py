"""Host, environment and files as they were when a run was recorded, and what is not so now."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from contextlib import ExitStack
from pathlib import Path

from corebound import __version__
from corebound.errors import HostError, git_needed
from corebound.fronts.snapshot import objects_of
from corebound.host import provenance
from corebound.launch import scratch
from corebound.model.plan import Cell
from corebound.model.run import Run
from corebound.model.scenario import CommandWorkload, Scenario
from corebound.planning.expand import is_project
from corebound.topology import probe


def host_differs(before: Run) -> tuple[str, ...]:
    """What of this host is not as it was then."""
    topology = probe.live()
    here, then = provenance.host(topology), before.host
    said = []
    if here.id != then.id:
        said.append(f"the host is {here.name} ({here.id}), and was {then.name} ({then.id})")
    elif [cpu.id for cpu in topology.allowed] != [cpu.id for cpu in then.topology.allowed]:
        said.append("other CPUs may be used than then")
    if here.kernel != then.kernel:
        said.append(f"the kernel is {here.kernel}, and was {then.kernel}")
    if __version__ != before.corebound:
        said.append(f"corebound is {__version__}, and was {before.corebound}")
    return tuple(said)


def environment_differs(cell: Cell, before: Run, now: Run) -> tuple[str, ...]:
    """What of the cell's environment is not as it was then."""
    here, then = (run.lock_of(cell.environment) for run in (now, before))
    if then is None:
        return ()
    if here is None:
        mend = f"`corebound environment make {cell.environment}` makes it"
        if is_project(cell.environment):
            mend = "what was said above tells why"
        return (f"the environment {cell.environment} is not there: {mend}",)
    said = []
    if here.python != then.python:
        said.append(f"Python is {here.python}, and was {then.python}")
    changed = sorted(set(here.packages) ^ set(then.packages))
    if changed:
        listed = ", ".join(
            f"{'+' if one in here.packages else '−'}{one}" for one in changed[:8]
        ) + (", …" if len(changed) > 8 else "")
        said.append(f"the environment {cell.environment} holds other packages: {listed}")
    return tuple(said)


def checked_out(
    before: Run,
    path: str,
    scenario: Scenario,
    stack: ExitStack,
    snapshots: Path | None = None,
) -> Path:
    """The scenario's file with its own modules beside it, as they were in the run's commit.

    Args:
        before: The run.
        path: Of the file, as recorded.
        scenario: What is in it.
        stack: Removes what is made here.
        snapshots: The store of snapshots, where the run measured a working tree with changes.

    Raises:
        HostError: that commit is not here, or no git to take it out with.
    """
    is_own = isinstance(scenario.workload, CommandWorkload) or ":" in scenario.workload
    now = provenance.commit(Path.cwd())
    if before.commit is None or not is_own or Path(path).is_absolute():
        return Path(path)
    if now is not None and now.sha == before.commit.sha and not now.dirty:
        return Path(path)
    top = _git("rev-parse", "--show-prefix")
    archive = _git(
        "archive",
        "--format=tar",
        f"{before.commit.tree or before.commit.sha}:{(top or b'').decode().strip()}",
        objects="" if snapshots is None else objects_of(snapshots),
    )
    if archive is None and before.commit.tree is not None:
        raise HostError(
            what=f"the working tree it was measured of, {before.commit.name}, is not here.",
            where=path,
            mend="It can be measured again only where its snapshot was taken.",
        )
    if archive is None:
        raise HostError(
            what=f"the commit it was measured at, {before.commit.sha[:10]}, is not here.",
            where=path,
            mend="Fetch it: `git fetch --all`.",
        )
    folder = stack.enter_context(scratch.made())
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder, filter="data")
    return folder / path


def _git(*words: str, objects: str = "") -> bytes | None:
    """What git says, who finds objects in these folders too; None where it fails."""
    with git_needed(Path.cwd()):
        done = subprocess.run(
            ("git", *words),
            env={**os.environ, "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    return done.stdout if done.returncode == 0 else None
