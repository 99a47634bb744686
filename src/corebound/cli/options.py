"""Options that several commands share, and what they mean."""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from corebound.cli.output.console import Console
from corebound.errors import InputError
from corebound.scenario.models import ProfileName
from corebound.workflow.projects import Notify

Files = Annotated[list[Path], typer.Argument(help="Scenario files, or folders of them.")]
MaybeFiles = Annotated[
    list[Path] | None, typer.Argument(help="Scenario files, or folders of them.")
]
Profile = Annotated[
    ProfileName | None, typer.Option("--profile", help="How thoroughly to measure.")
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", help="Cells to select: axis=value[,axis=value]; repeatable."),
]
Budget = Annotated[
    str | None, typer.Option("--budget", help="Start no launch after this time: 90s, 10m, 2h.")
]
Seed = Annotated[
    int | None,
    # The range that every framework accepts.
    typer.Option(
        "--seed", min=0, max=2**32 - 1, help="Seed of the order and of the workloads' random data."
    ),
]
Unlocked = Annotated[bool, typer.Option("--unlocked", help="Run even if another run is active.")]
Wait = Annotated[
    str | None,
    typer.Option("--wait", help="Wait this long for another run to end: 90s, 10m, 2h."),
]
Config = Annotated[
    Path, typer.Option("--config", help="The asv.conf.json of the project under test.")
]
ProjectPython = Annotated[
    Path | None,
    typer.Option(
        "--project-python",
        help="Python interpreter in which the project under test is installed already.",
    ),
]
Committed = Annotated[
    bool, typer.Option("--committed", help="Measure HEAD, without uncommitted changes.")
]
Label = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME=VALUE", help="Label for the run's record; repeatable."),
]
Records = Annotated[Path, typer.Option("--records", help="Folder of records.")]
Status = Annotated[Path, typer.Option("--status", help="File of decisions about regressions.")]
ProjectName = Annotated[str | None, typer.Option("--project", help="Name of the project.")]
Env = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME[=VALUE]",
        help="Set an environment variable of the workloads; without VALUE, as it is here.",
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print results and errors, but no progress or notes.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

# 9 digits of seconds are 31 years.
_DURATION = re.compile(r"(?:(\d{1,5})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s)?", re.ASCII)


def seconds(text: str, *, option: str = "--budget") -> float:
    """Parse a duration: `90s`, `10m`, `1h30m`.

    Args:
        text: The text that the user typed.
        option: The option it belongs to.

    Raises:
        InputError: The text is not a duration, or the budget is zero.
    """
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise InputError(
            what=f"`{text}` is not a duration.",
            where=option,
            fix="Write it like 90s, 10m or 1h30m, up to 31 years.",
        )
    hours, minutes, rest = (int(part or 0) for part in match.groups())
    total_s = float(hours * 3600 + minutes * 60 + rest)
    if option == "--budget" and not total_s:
        raise InputError(
            what="a budget of zero has no time for a launch.",
            where=option,
            fix="Write it like 90s or 10m. `corebound plan` launches nothing.",
        )
    return total_s


def variables(assignments: list[str] | None) -> dict[str, str]:
    """The environment variables that --env sets, by name.

    Raises:
        InputError: A name is empty, or a variable without a value is not set here.
    """
    env: dict[str, str] = {}
    for assignment in assignments or ():
        name, sign, value = assignment.partition("=")
        if not name or (not sign and name not in os.environ):
            raise InputError(
                what="this variable is not set in the environment of corebound."
                if name
                else "the name of the variable is missing.",
                where=f"--env {assignment}",
                fix="Write --env NAME=VALUE.",
            )
        env[name] = value if sign else os.environ[name]
    return env


def budget_seconds(budget: str | None) -> float | None:
    """The value of --budget in seconds; None if the option is not given."""
    return None if budget is None else seconds(budget)


def wait_seconds(wait: str | None) -> float:
    """The value of --wait in seconds; 0 if the option is not given."""
    return 0.0 if wait is None else seconds(wait, option="--wait")


def labels(options: Sequence[str]) -> dict[str, str]:
    """The values of --label, by name; `RunRequest` checks them."""
    split = (option.partition("=") for option in options)
    return {name: value for name, _, value in split}


def typed_command() -> str:
    """The command as typed, to tell the user how to resume it."""
    return shlex.join(("corebound", *sys.argv[1:]))


def notifier(console: Console) -> Notify:
    """A function that prints a line of untrusted text."""
    return lambda message: console.print(Text(message), soft_wrap=True)
