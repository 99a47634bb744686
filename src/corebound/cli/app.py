"""The command line: parse, dispatch, print errors for people; exit codes of every command.

0 ok · 1 a regression or a claim failed, where asked to judge · 2 bad input ·
3 the host cannot · 4 launches failed · 130 interrupted · 141 nobody read on.
"""

from __future__ import annotations

import errno
import sys
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from corebound import __version__
from corebound.cli.lazily import Group
from corebound.errors import CoreboundError, InputError

# Where each command is, by its name, in the order of the help.
COMMANDS = {
    "init": "init:init",
    "doctor": "doctor:doctor",
    "topology": "plan:topology",
    "check": "plan:check",
    "plan": "plan:plan",
    "run": "measure:run",
    "compare": "compare:compare",
    "compare-commits": "compare_commits:compare_commits",
    "bisect": "bisect:bisect",
    "calibrate": "calibrate:calibrate",
    "regressions": "regressions:regressions",
    "report": "site:report",
    "publish": "publish:publish",
    "nightly": "nightly:nightly",
    "reproduce": "reproduce:reproduce",
    "update": "update:update",
    "schema": "plan:schema",
    "environment": "environments:app",
    "import": "importing:app",
    "export": "export:export",
}


# How the system says that a path is no good, or may not be used.
_REFUSED = {
    errno.ENAMETOOLONG,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
}


class _Commands(Group):
    """Loads the one command that is asked for: most need little of what all need together."""

    places = COMMANDS


app = typer.Typer(
    name="corebound",
    help="Which cores and how many threads, is that still as fast, and can the answer be trusted?",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)


def _version(*, wanted: bool) -> None:
    if wanted:
        typer.echo(f"corebound {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Say the version and end.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take the options of corebound itself."""


def main() -> None:
    """Run the command line; never returns."""
    try:
        app()
    except SystemExit as end:
        # As for whom a closed pipe ended: 1 would be a regression.
        if isinstance(end.__context__, BrokenPipeError):
            end.code = 141
        raise
    except CoreboundError as error:
        _end(error)
    except OSError as error:
        # Some paths of the user's are first refused by the system, such as one too long for any
        # file. What is merely not there was told before: it would be a file of our own.
        if error.filename is None or error.errno not in _REFUSED:
            raise
        _end(
            InputError(
                what=f"{error.strerror}.",
                where=str(error.filename),
                mend="Check this path, and that you may use it.",
            )
        )
    except KeyboardInterrupt:
        sys.exit(130)


def _end(error: CoreboundError) -> NoReturn:
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(str(error)))
    sys.exit(error.exit_code)
