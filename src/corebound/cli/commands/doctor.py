"""`corebound doctor`: find, explain and fix host conditions that would disturb measurements."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace
from rich.text import Text

from corebound.cli.options import Json
from corebound.cli.output import doctor as output_doctor
from corebound.cli.output.json import indented
from corebound.cli.output.terminal import Console
from corebound.errors import HostError, InputError
from corebound.launch import environments
from corebound.machine import discovery, sysfs
from corebound.machine.doctor import tuning
from corebound.machine.doctor.checks_system import PROGRAMS
from corebound.machine.doctor.examine import SNAPSHOT_INTERVAL_S, examine
from corebound.machine.doctor.result import CheckResult, command
from corebound.machine.doctor.tuning import Disk, SettingResult
from corebound.machine.lock import host_lock
from corebound.machine.topology import Topology
from corebound.serving.servers import find_java
from corebound.workflow.prepare import PreparedRun

_LIVE = Path("/")
# Checks that a run reports itself, with the cells that it skips.
_SAID_BY_RUN = {"tools", "environments"}


def doctor(
    *,
    as_json: Json = False,
    tune: Annotated[
        bool,
        typer.Option("--tune", help="As root, change the settings that are warnings; list them."),
    ] = False,
    restore: Annotated[
        bool, typer.Option("--restore", help="Bring back what --tune has changed.")
    ] = False,
    root: Annotated[
        Path, typer.Option("--root", help="Another machine's folder that holds proc/ and sys/.")
    ] = _LIVE,
) -> None:
    """Say what would spoil a measurement here, and fix it.

    Each with the command that mends it. Nothing is changed unless asked. Exit codes: 0, also
    with warnings; 3 where --tune could change nothing of what it should, or --restore not
    everything.
    """
    if tune and restore:
        raise InputError(
            what="--tune and --restore contradict each other.",
            where="corebound doctor",
            fix="Pass one of them.",
        )
    if restore:
        _restore(root, as_json=as_json)
    elif tune:
        _tune(_examine(root), root, as_json=as_json)
    else:
        _show(_examine(root), root, as_json=as_json)


def preflight(ready: PreparedRun, console: Console) -> PreparedRun:
    """Print the warnings before a run, one line each, and store the checks with the run.

    A resumed run keeps its first checks.
    """
    looked = _look(_LIVE, ready.run.host.topology, means=False)
    judged = [one for one in looked if one.host_check.group not in _SAID_BY_RUN]
    lines = output_doctor.brief([one.host_check for one in judged])
    for line in lines:
        console.print(Text(line), soft_wrap=True)
    if lines:
        console.print(Text("`corebound doctor` says why these matter and how to fix them."))
    if ready.run.preflight is not None:
        return ready
    kept = tuple(one.recorded for one in judged)
    return replace(ready, run=replace(ready.run, preflight=kept))


def _examine(root: Path) -> tuple[CheckResult, ...]:
    if not root.is_dir():
        raise InputError(
            what="there is no such directory.",
            where=str(root),
            fix="Name a folder that holds proc/ and sys/.",
        )
    try:
        topology = discovery.live() if root == _LIVE else discovery.probe(root)
    except HostError:
        topology = None  # no CPUs are visible: the checks that need them report it
    # A saved machine has neither this PATH nor this cache.
    return _look(root, topology, means=root == _LIVE)


def _look(root: Path, topology: Topology | None, *, means: bool) -> tuple[CheckResult, ...]:
    """Examine a machine; `means` includes its tools and environments."""
    live = root == _LIVE
    return examine(
        sysfs.Files(root),
        topology=topology,
        wait=_wait if live else _no_wait,
        pid=os.getpid() if live else 0,
        sudo="SUDO_UID" in os.environ,
        tools=frozenset(filter(_found, PROGRAMS)) if means else None,
        environments=_environments() if means else None,
    )


def _found(program: str) -> bool:
    return (find_java() if program == "java" else shutil.which(program)) is not None


def _wait() -> None:
    time.sleep(SNAPSHOT_INTERVAL_S)


def _no_wait() -> None:
    """Do not wait: the files of a saved machine do not change."""


def _environments() -> dict[str, bool]:
    suite = Path.cwd()
    return {name: environments.find(name, suite) is not None for name in environments.names(suite)}


def _show(judged: Sequence[CheckResult], root: Path, *, as_json: bool) -> None:
    checks = [one.host_check for one in judged]
    standing = tuning.standing(root)
    if as_json:
        typer.echo(indented({"checks": checks, "tuned": standing}))
        return
    typer.echo(output_doctor.describe(checks))
    if any(one.changes for one in judged):
        typer.echo(
            "\nThe commands are for root; `corebound doctor --tune` runs those for settings."
        )
    if standing:
        typer.echo(
            f"\n--tune has changed settings, {len(standing)} of them; bring them back with"
            "\n`corebound doctor --restore`."
        )


def _tune(judged: Sequence[CheckResult], root: Path, *, as_json: bool) -> None:
    changes = [change for one in judged for change in one.changes]
    if not changes:
        _say("Nothing to change: no warning here is one that a setting mends.", as_json=as_json)
        _report((), as_json=as_json)
        return
    mendable = [one for one in judged if one.changes]
    _say("These settings would spoil measurements and are changed now:", as_json=as_json)
    for one in mendable:
        _say(f"  {one.host_check.check}: {one.host_check.value}", as_json=as_json)
        _say(f"    {one.host_check.fix}", as_json=as_json)
    if not tuning.writable(changes, root):
        raise HostError(
            what="none of these settings may be changed by us.",
            where="corebound doctor --tune",
            fix="Run it as root, or run these commands as root yourself:\n"
            + "\n".join(f"    {one.host_check.fix}" for one in mendable),
        )
    with ExitStack() as stack:
        _keep_runs_away(stack, root)
        outcomes = tuning.tune(changes, root, Disk())
    _report(outcomes, as_json=as_json)
    if all(outcome.fault is not None for outcome in outcomes):
        raise typer.Exit(HostError.exit_code)
    _say("Bring them back with `corebound doctor --restore`.", as_json=as_json)


def _restore(root: Path, *, as_json: bool) -> None:
    kept = tuning.standing(root)
    if not kept:
        _say("Nothing to restore: no setting is changed.", as_json=as_json)
    with ExitStack() as stack:
        if kept:
            _keep_runs_away(stack, root)
        outcomes = tuning.restore(root, Disk())
    _report(outcomes, as_json=as_json)
    faults = {outcome.path for outcome in outcomes if outcome.fault is not None}
    if faults:
        raise HostError(
            what=f"{len(faults)} of {len(outcomes)} settings could not be restored.",
            where=str(root / tuning.STATE),
            fix="Run it again as root, or run this as root; then remove that file:\n    "
            + command((one.path, one.prior) for one in kept if one.path in faults),
        )


def _keep_runs_away(stack: ExitStack, root: Path) -> None:
    """Lock out runs: a setting that changes between launches would look like a difference."""
    if root == _LIVE:
        stack.enter_context(host_lock())


def _say(text: str, *, as_json: bool) -> None:
    if not as_json:
        typer.echo(text)


def _report(outcomes: Sequence[SettingResult], *, as_json: bool) -> None:
    if as_json:
        typer.echo(indented({"settings": outcomes}))
    for line in () if as_json else output_doctor.outcomes(outcomes):
        typer.echo(line)
