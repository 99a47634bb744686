"""A group of commands that imports each command only when it is used."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any, ClassVar

import typer
from typer.core import TyperGroup


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


def _loaded(module: str) -> ModuleType:
    """Import a module without garbage collection, as its objects stay until the end."""
    gc.disable()
    try:
        return importlib.import_module(module)
    finally:
        gc.freeze()
        gc.enable()
