"""The format of all `--json` output."""

from __future__ import annotations

import msgspec
import typer

from corebound.text import json_text


def indented_json(document: object) -> str:
    """Serialise a document as indented JSON."""
    return json_text(msgspec.json.format(msgspec.json.encode(document), indent=1).decode())


def print_json(document: object) -> None:
    """Print a document as indented JSON."""
    typer.echo(indented_json(document))
