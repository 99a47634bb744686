"""Options and helpers that several commands share."""

from __future__ import annotations

import resource
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from corebound.cli.output.terminal import Console
from corebound.errors import HostError
from corebound.machine.lock import host_lock
from corebound.scenario.models import ProfileName
from corebound.workflow.projects import Say

Status = Annotated[
    Path, typer.Option("--status", help="The file of what was decided about regressions.")
]


Config = Annotated[
    Path, typer.Option("--config", help="The asv.conf.json of the project under test.")
]


ProjectPython = Annotated[
    Path | None,
    typer.Option(
        "--project-python", help="An interpreter that holds the project under test already."
    ),
]


def teller(console: Console) -> Say:
    """A function that prints a line of untrusted text."""
    return lambda what: console.print(Text(what))


Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
ProjectName = Annotated[str | None, typer.Option("--project", help="What to call the project.")]
Records = Annotated[Path, typer.Option("--records", help="The folder of records.")]


Files = Annotated[list[Path], typer.Argument(help="Scenario files, or folders of them.")]
MaybeFiles = Annotated[
    list[Path] | None, typer.Argument(help="Scenario files, or folders of them.")
]
Profile = Annotated[
    ProfileName | None, typer.Option("--profile", help="How thoroughly to measure.")
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", help="Cells to take: axis=value[,axis=value]; may be given again."),
]
Budget = Annotated[
    str | None, typer.Option("--budget", help="Start no launch after this: 90s, 10m, 2h.")
]
Seed = Annotated[
    int | None,
    # The range that every framework accepts.
    typer.Option("--seed", min=0, max=2**32 - 1, help="Of the order and of the workers' numbers."),
]
Unlocked = Annotated[
    bool, typer.Option("--unlocked", help="Run even if another run is measuring on this host.")
]
Wait = Annotated[
    str | None,
    typer.Option(
        "--wait", help="If another run is measuring, wait this long for it: 90s, 10m, 2h."
    ),
]

# Enough for one launch, with room for several in alternation.
_FEWEST_FILES = 64


def typed() -> str:
    """The command as typed, to tell the user how to resume it."""
    return shlex.join(("corebound", *sys.argv[1:]))


def take_host(stack: ExitStack, *, unlocked: bool = False, wait_s: float = 0.0) -> None:
    """Hold the host's lock until the stack ends.

    Args:
        stack: Releases the lock.
        unlocked: Whether to measure beside other runs, without the lock.
        wait_s: How long to wait for another run to end.

    Raises:
        HostError: Another run holds the lock, or this process may not open enough files.
    """
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= allowed < _FEWEST_FILES:  # unlimited is -1
        raise HostError(
            what=f"this process may open {allowed} files, and measuring takes up to"
            f" {_FEWEST_FILES}.",
            where="corebound",
            fix="Raise the limit: `ulimit -n 1024`.",
        )
    if not unlocked:
        stack.enter_context(host_lock(wait_s=wait_s, waiting=_say_waiting))


def _say_waiting(holder: str) -> None:
    typer.echo(f"Waiting for the run of {holder}", err=True)
