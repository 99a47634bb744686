"""`corebound import`: the group of commands that import results of other tools."""

from __future__ import annotations

from typing import ClassVar

import typer

from corebound.cli.app import Group


class _Commands(Group):
    places: ClassVar = {
        "asv": "import_history:asv",
        "pyperf": "import_history:pyperf",
        "profile": "import_profile:profile",
    }


app = typer.Typer(help="Read what other tools measured.", cls=_Commands, no_args_is_help=True)


@app.callback()
def _main() -> None:
    """Read what other tools measured."""
