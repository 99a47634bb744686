"""Options of the terminal alone, and what a command prints."""

import shlex
import sys
from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import Struct

from corebound.cli.output.json import print_json
from corebound.workflow.options import Option

Quiet = Annotated[bool, Option("Print results and errors, but no progress or notes.", short="-q")]
Format = Annotated[
    Literal["text", "md", "json", "junit"], Option("Output format.", name="--format")
]
Json = Annotated[bool, Option("Print JSON.", name="--json")]


class Output(Struct, frozen=True):
    """What a command returns: `binder` adds the option `--json`, prints it, and exits.

    Attributes:
        result: What `--json` prints: a result that has a `document`, plain data, or a function that
            returns plain data.
        show: Prints the result otherwise.
    """

    result: object
    show: Callable[[], object]
    exit_code: int = 0

    def print(self, *, as_json: bool = False) -> None:
        """Print the result."""
        if as_json:
            plain = self.result() if callable(self.result) else self.result
            print_json(getattr(plain, "document", plain))
        else:
            self.show()


def typed_command(*more: str) -> str:
    """The command as typed, with more words, to tell the user how to resume it."""
    return shlex.join(("corebound", *sys.argv[1:], *more))
