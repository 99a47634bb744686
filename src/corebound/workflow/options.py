"""The options of commands: what each means, and how the command line takes it (ADR 33).

`cli.binder` makes the command line's options from them; a request has their values.
"""

import os
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeVar

from msgspec import Struct

from corebound.errors import InputError
from corebound.scenario.metrics import JudgedBy

# 9 digits of seconds are 31 years.
_DURATION = re.compile(r"(?:(\d{1,5})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s)?", re.ASCII)


class Option(Struct, frozen=True):
    """How the command line takes a field of a request, or a parameter of a command.

    Attributes:
        help: What it means.
        name: The option; by default `--` and the field's name without its unit.
        short: Another name, of one letter.
        metavar: What the help shows for its value.
        min: The least number.
        max: The greatest number.
        envvar: The environment variable that has its value.
        parse: Makes the value from the text, or a mapping from all texts.
        typed: The default of an option with `parse`, as the user would type it.
    """

    help: str
    name: str | None = None
    short: str | None = None
    metavar: str | None = None
    min: float | None = None
    max: float | None = None
    envvar: str | None = None
    parse: Callable[[Any], object] | None = None
    typed: str | None = None


class Argument(Option, frozen=True):
    """The same for a value that is known by its place."""


def seconds(text: str, *, option: str = "--budget") -> float:
    """Parse a duration: `90s`, `10m`, `1h30m`.

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


def variables(assignments: Sequence[str]) -> dict[str, str]:
    """The environment variables that --env sets, by name.

    Raises:
        InputError: A name is empty, or a variable without a value is not set here.
    """
    env: dict[str, str] = {}
    for assignment in assignments:
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


def labels(assignments: Sequence[str]) -> dict[str, str]:
    """The values of --label, by name; `RunRequest` checks them."""
    split = (assignment.partition("=") for assignment in assignments)
    return {name: value for name, _, value in split}


Files = Annotated[tuple[Path, ...], Argument("Scenario files, or folders of them.")]
Unlocked = Annotated[bool, Option("Run even if another run is active.")]
Wait = Annotated[
    float,
    Option(
        "Wait this long for another run to end: 90s, 10m, 2h.",
        parse=partial(seconds, option="--wait"),
    ),
]
Anchor = Annotated[
    tuple[str, ...],
    Option(
        "Alternate with this pinned commit, for a history on changing machines. Twice while it"
        " moves: the new one, then the old one.",
        metavar="REV",
    ),
]
Config = Annotated[Path, Option("The asv.conf.json of the project under test.")]
Records = Annotated[Path, Option("Folder of records.")]
Status = Annotated[Path, Option("File of decisions about regressions.")]
# Where to publish.
To = Annotated[Path | None, Option("Folder that a web server serves.")]
Branch = Annotated[str | None, Option("Branch of a repository, such as gh-pages.")]
Push = Annotated[str | None, Option("Push the branch to this remote.", metavar="REMOTE")]
Squash = Annotated[bool, Option("Replace the branch's earlier commits with this one.")]
Metric = Annotated[
    JudgedBy, Option("Judge the time, or the value that a command reports; or peak memory.")
]
ProjectName = Annotated[str | None, Option("Name of the project.", name="--project")]

R = TypeVar("R")


def request_of(kind: type[R], arguments: Mapping[str, Any], **others: object) -> R:
    """The request of a function of the Python API; None is the default.

    Args:
        arguments: The function's arguments, of which some are no fields.
        others: Fields that the function calls otherwise.

    Raises:
        InputError: A number is beyond the limits of its option.
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    return kind(
        **{
            name: _as_field(name, value, hints[name])
            for name, value in (dict(arguments) | others).items()
            if name in hints and value is not None
        }
    )


def _as_field(name: str, value: Any, hint: Any) -> object:
    """A value of Python as a field has it: a sequence as a tuple, and text as a path."""
    if typing.get_origin(hint) is Annotated:
        hint, option = typing.get_args(hint)
        least, most = option.min, option.max
        if least is not None and most is not None and not least <= value <= most:
            raise InputError(
                what=f"{value} is not between {least} and {most}.",
                where=f"--{name.replace('_', '-')}",
                fix="`help()` of this function says what it is.",
            )
    is_path = hint is Path or Path in typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return tuple(map(Path, value) if is_path else value)
    return Path(value) if is_path else value
