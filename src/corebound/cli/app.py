"""The command-line entry point: parses arguments, dispatches commands, prints errors, and exits.

docs/reference/commands.md lists the exit codes.
"""

import gc
import importlib
import inspect
import itertools
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, ClassVar, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from corebound import __version__
from corebound.cli import crash, interrupts
from corebound.cli.command_table import COMMANDS, IMPORTS, CommandGroup
from corebound.cli.output.streams import neutralised_streams
from corebound.errors import CRASHED, CoreboundError, InputError, user_error
from corebound.exchange.importers import IMPORTERS


class _Uncaught(Exception):
    """Wraps an error as its cause, since typer would exit with 1, which means a regression."""


class Group(TyperGroup):
    """Commands by name, each imported only when it is used or listed.

    Most commands need few of the modules that all commands together need.
    """

    # `module:function`, or the help of a group and the commands in it.
    locations: ClassVar[Mapping[str, str | CommandGroup]] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands, in the order of the help."""
        names = super().list_commands(ctx)
        return [*self.locations, *(name for name in names if name not in self.locations)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import a command by name; None if there is none."""
        begin_s = time.monotonic()
        location = self.locations.get(cmd_name)
        if location is None:
            return super().get_command(ctx, cmd_name)
        parent = typer.Typer(
            pretty_exceptions_enable=False, add_completion=False, rich_markup_mode=None
        )
        if isinstance(location, CommandGroup):
            parent.add_typer(_group(location), name=cmd_name)
        else:
            module, _, name = location.partition(":")
            commands = _import(f"corebound.cli.commands.{module}")
            tool = IMPORTS.get(location)
            function = commands.command_of(tool) if tool else getattr(commands, name)
            bound = _import("corebound.cli.binder").bound
            interrupts.raise_exceptions()
            parent.command(cmd_name, help=_help(function.__doc__))(bound(function, begin_s=begin_s))
        return typer.main.get_group(parent).commands[cmd_name]

    def format_commands(self, _ctx: Any, formatter: Any) -> None:
        """Write the list of commands, each with the first line of its docstring."""
        rows = [(name, _summary(entry)) for name, entry in self.locations.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; invalid choices are reported without the validation library's prefix."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve the command; an unknown name gets a suggestion from the names of all."""
        if args and args[0] not in self.locations:
            for name in self.locations:
                self.commands.setdefault(name, TyperCommand(name))
        return super().resolve_command(ctx, args)


class _RootGroup(Group):
    locations = COMMANDS

    def invoke(self, ctx: Any) -> Any:
        """Run the command; typer handles usage errors, but not errors of the system."""
        try:
            return super().invoke(ctx)
        except (EOFError, OSError) as error:
            raise _Uncaught from error


def _group(commands: CommandGroup) -> typer.Typer:
    """The Typer of a group of commands, such as `corebound import`."""
    group = type("_SubGroup", (Group,), {"locations": commands.locations})
    typer_app = typer.Typer(help=_help(commands.help), cls=group, no_args_is_help=True)
    typer_app.callback()(_no_options)
    return typer_app


def _summary(location: str | CommandGroup) -> str:
    """The first line of a command's docstring, read from its source: importing all takes long."""
    if isinstance(location, CommandGroup):
        return location.help.splitlines()[0]
    module, _, name = location.partition(":")
    if location in IMPORTS:
        return IMPORTERS[IMPORTS[location]].help.splitlines()[0]
    source = (Path(__file__).parent / "commands" / f"{module}.py").read_text("utf-8")
    match = re.search(rf'^def {name}\(.*?^    """(.+?)(?:"""|$)', source, re.DOTALL | re.MULTILINE)
    if match is None:
        raise ValueError(f"{location} has no docstring")
    return match[1]


def _no_options() -> None:
    """Take no options."""


def _help(text: str | None) -> str:
    """The help of a command or a group, with the lines of the examples as they are."""
    # Click reads the backspace as: do not wrap this paragraph.
    return inspect.cleandoc(text or "").replace("Examples:\n", "\b\nExamples:\n")


app = typer.Typer(
    name="corebound",
    help="Measure which CPUs and how many threads are fastest, and detect regressions.",
    cls=_RootGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# Set by the shell that asks for completions.
_COMPLETE_VARIABLE = "_COREBOUND_COMPLETE"


def _version(*, requested: bool) -> None:
    if requested:
        typer.echo(f"corebound {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version and exit.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Take the options of corebound itself."""


def main() -> NoReturn:
    """Run the command line and exit."""
    with neutralised_streams():
        code = _run()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (SystemExit, InputError) as error:
            # Keep the exit code of a crash.
            code = code if code == CRASHED else _exit_code(error)
    sys.exit(code)


def _run() -> int:
    """Run the typed command and return its exit code."""
    try:
        if _COMPLETE_VARIABLE in os.environ:
            importlib.import_module("typer.completion").completion_init()
        # Not standalone, because typer would print usage errors as text only.
        code = app(prog_name="corebound", standalone_mode=False)
    except BaseException as error:  # noqa: BLE001  # the last handler
        cause = error.__cause__ if isinstance(error, _Uncaught) else error
        return _exit_code(crash.interruption(cause) or cause)
    return code if isinstance(code, int) else 0


def _exit_code(error: BaseException | None) -> int:
    """The exit code for the error that ended a command; prints the error unless that was done."""
    match error:
        case KeyboardInterrupt():
            return 130
        case SystemExit(code=int() | None as code):
            return code or 0
        case None:
            return 0
        case typer.TyperException() | typer.Abort():
            return _usage_error(error)
        case CoreboundError():
            explained = error
        case OSError() if (converted := user_error(error)) is not None:
            explained = converted
        case _:
            return crash.report(error)
    importlib.import_module("corebound.cli.output.console").print_error(str(explained))
    _print_as_json(explained)
    return explained.exit_code


def _usage_error(error: Any) -> int:
    """Print an error of the arguments as typer does; `--json` prints it as any other error."""
    if isinstance(error, typer.Abort):
        typer.echo("Aborted!", err=True)
        return 1
    error.show()
    command = error.ctx.command_path if error.ctx is not None else "corebound"
    fix = f"Run `{command} --help` to see its usage."
    meaning = getattr(getattr(error, "param", None), "help", None)
    if meaning and type(error).__name__ == "MissingParameter":
        _, _, examples = error.ctx.command.help.partition("Examples:")
        fix = f"{meaning} For example: `{examples.strip().splitlines()[0]}`. {fix}"
        typer.echo(f"  {fix}", err=True)
    _print_as_json(InputError(what=error.format_message(), where=command, fix=fix))
    return int(error.exit_code)


def _print_as_json(error: CoreboundError) -> None:
    """Print the error that ended the command, if the user typed that results are JSON."""
    typed = sys.argv[1:]
    if {"--json", "--format=json"} & {*typed} or ("--format", "json") in itertools.pairwise(typed):
        # Imported here: the start of other commands does without.
        from corebound.cli.output.json import print_json_error  # noqa: PLC0415

        print_json_error(error)


def _import(module: str) -> ModuleType:
    """Import a module without garbage collection, as its objects stay until the end."""
    gc.disable()
    try:
        return importlib.import_module(module)
    finally:
        gc.freeze()
        gc.enable()
