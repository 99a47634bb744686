"""The command-line entry point: parses arguments, dispatches commands, prints errors, and exits.

The README lists the exit codes.
"""

from __future__ import annotations

import errno
import gc
import importlib
import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Annotated, Any, ClassVar, NoReturn

import typer
from typer.core import TyperGroup

from corebound import __version__
from corebound.cli import crash
from corebound.cli.output import terminal
from corebound.errors import CRASHED, CoreboundError, HostError, InputError

# The location of each command, by its name, in the order of the help.
COMMANDS = {
    "init": "init:init",
    "doctor": "doctor:doctor",
    "topology": "plan:topology",
    "check": "plan:check",
    "plan": "plan:plan",
    "run": "run:run",
    "compare": "compare:compare",
    "compare-commits": "compare_commits:compare_commits",
    "bisect": "bisect:bisect",
    "calibrate": "calibrate:calibrate",
    "regressions": "regressions:regressions",
    "report": "report:report",
    "publish": "publish:publish",
    "nightly": "nightly:nightly",
    "reproduce": "reproduce:reproduce",
    "update": "update:update",
    "schema": "plan:schema",
    "environment": "environment:app",
    "import": "import_group:app",
    "export": "export:export",
}


# Errors of the system for an invalid or forbidden path. A missing path is reported elsewhere;
# here it would be a file of corebound's own, and so a bug.
_PATH_REFUSED = {
    errno.ENAMETOOLONG,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ELOOP,
}
_DISK_REFUSES = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO}
_HOST_LACKS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}


class _Uncaught(Exception):
    """Wraps an error as its cause, since typer would exit with 1, which means a regression."""


class Group(TyperGroup):
    """Commands by name; `places` locates them: `module:function`, or `module:app` for a group."""

    places: ClassVar[Mapping[str, str]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, in the order of the help."""
        known = super().list_commands(ctx)
        return [*self.places, *(name for name in known if name not in self.places)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command by name; None if there is none."""
        place = self.places.get(cmd_name)
        if place is None:
            return super().get_command(ctx, cmd_name)
        module, _, name = place.partition(":")
        found = getattr(_loaded(f"corebound.cli.commands.{module}"), name)
        alone = typer.Typer(
            pretty_exceptions_enable=False, add_completion=False, rich_markup_mode=None
        )
        if isinstance(found, typer.Typer):
            alone.add_typer(found, name=cmd_name)
        else:
            alone.command(cmd_name)(found)
        return typer.main.get_group(alone).commands[cmd_name]

    def invoke(self, ctx: Any) -> Any:
        """Run the command; invalid choices are reported without the validation library's prefix."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve the command; for an unknown name, import all commands for suggestions."""
        if args and args[0] not in self.places:
            for name in self.places:
                self.commands[name] = self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


class _Commands(Group):
    """Imports only the requested command: most commands need few of the modules that all need."""

    places = COMMANDS

    def invoke(self, ctx: Any) -> Any:
        """Run the command; typer handles usage errors, but not errors of the system."""
        try:
            return super().invoke(ctx)
        except (EOFError, OSError) as error:
            raise _Uncaught from error


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


def main() -> NoReturn:
    """Run the command line and exit."""
    with terminal.inert():
        code = _run()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (SystemExit, InputError) as end:
            # Keep the exit code of a crash.
            code = code if code == CRASHED else _code_of(end)
    sys.exit(code)


def _run() -> int:
    """Run the typed command and return its exit code."""
    try:
        app()
    except BaseException as error:  # noqa: BLE001  # the last handler
        found = error.__cause__ if isinstance(error, _Uncaught) else error
        return _code_of(crash.interruption(found) or found)
    return 0


def _code_of(error: BaseException | None) -> int:
    """The exit code for the error that ended a command; prints the error unless that was done."""
    match error:
        case KeyboardInterrupt():
            return 130
        case SystemExit(code=int() as code):
            return code
        case SystemExit(code=None) | None:
            return 0
        case CoreboundError():
            known = error
        case OSError() if (refused := _refused(error)) is not None:
            known = refused
        case _:
            return crash.told(error)
    terminal.error(str(known))
    return known.exit_code


def _refused(error: OSError) -> CoreboundError | None:
    """Convert an error of the system into a user error, if it is not a bug."""
    what = f"{error.strerror}."
    if error.errno in _PATH_REFUSED and error.filename is not None:
        fix = "Check this path, and that you may use it."
        return InputError(what=what, where=str(error.filename), fix=fix)
    if error.errno in _DISK_REFUSES:
        fix = "Free some space there, or check the disk."
        return InputError(what=what, where=str(error.filename or "corebound"), fix=fix)
    if error.errno in _HOST_LACKS:
        fix = "End other programs, or raise the limit that `ulimit -a` shows."
        return HostError(what=what, where=str(error.filename or "corebound"), fix=fix)
    return None


def _loaded(module: str) -> ModuleType:
    """Import a module without garbage collection, as its objects stay until the end."""
    gc.disable()
    try:
        return importlib.import_module(module)
    finally:
        gc.freeze()
        gc.enable()
