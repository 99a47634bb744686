"""What every command that measures has: its options, and the host to itself."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from corebound.host.lock import alone
from corebound.model.measure import ProfileName

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
    # What every framework takes.
    typer.Option("--seed", min=0, max=2**32 - 1, help="Of the order and of the workers' numbers."),
]
Unlocked = Annotated[bool, typer.Option("--unlocked", help="Measure although another run does.")]


def typed() -> str:
    """This command as it was typed: who holds the host, and what goes on when it was stopped."""
    return shlex.join(("corebound", *sys.argv[1:]))


def take_host(stack: ExitStack, *, unlocked: bool = False) -> None:
    """Hold the host's lock until the stack ends; `unlocked` measures beside others.

    Raises:
        HostError: another run holds it.
    """
    if not unlocked:
        stack.enter_context(alone(f"`{typed()}`"))
