"""`corebound import`: what other tools measured."""

from __future__ import annotations

from typing import ClassVar

import typer

from corebound.cli.lazily import Group


class _Commands(Group):
    places: ClassVar = {
        "asv": "exchange_histories:asv",
        "pyperf": "exchange_pyperf:pyperf",
        "profile": "exchange:profile",
    }


app = typer.Typer(help="Read what other tools measured.", cls=_Commands, no_args_is_help=True)


@app.callback()
def _main() -> None:
    """Read what other tools measured."""
