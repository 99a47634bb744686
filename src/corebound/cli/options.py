"""Options of the terminal alone, and what commands tell the user while they run."""

import shlex
import sys
from typing import Annotated, Literal

from rich.text import Text

from corebound.cli.output.console import Console
from corebound.workflow.options import Option
from corebound.workflow.projects import Notify

Quiet = Annotated[bool, Option("Print results and errors, but no progress or notes.", short="-q")]
Format = Annotated[
    Literal["text", "md", "json", "junit"], Option("Output format.", name="--format")
]
Json = Annotated[bool, Option("Print JSON.", name="--json")]


def typed_command() -> str:
    """The command as typed, to tell the user how to resume it."""
    return shlex.join(("corebound", *sys.argv[1:]))


def notifier(console: Console) -> Notify:
    """A function that prints a line of untrusted text."""
    return lambda message: console.print(Text(message), soft_wrap=True)
