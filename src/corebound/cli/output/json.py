"""The format of all `--json` output: the result of a command, or its error, with a header.

Every document is an object. `corebound` is its header: the version of the format, that of
corebound, and the command. `error` is null, or what is wrong, where, and how to fix it. The other
keys are the command's result; a result that is a list is under `results`.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import msgspec
import typer

from corebound import __version__
from corebound.cli.command_table import command_words
from corebound.errors import CoreboundError
from corebound.text import json_text

# Raised when a key changes its meaning or is removed; new keys do not raise it.
JSON_SCHEMA = 1
_HEADER, _ERROR = "corebound", "error"


def indented_json(document: object) -> str:
    """Serialise a document as indented JSON, without a header."""
    return json_text(msgspec.json.format(msgspec.json.encode(document), indent=1).decode())


def result_json(result: object) -> str:
    """The result of the current command as indented JSON.

    Raises:
        ValueError: A key of the result is one of the header's.
    """
    plain = msgspec.to_builtins(result)
    document: Mapping[str, Any] = plain if isinstance(plain, Mapping) else {"results": plain}
    if taken := {_HEADER, _ERROR} & document.keys():
        raise ValueError(f"{taken} are keys of the header")
    return indented_json({**_header(None), **document})


def print_json(result: object) -> None:
    """Print the result of the current command as JSON."""
    typer.echo(result_json(result))


def print_json_error(error: CoreboundError) -> None:
    """Print the error that ended the command as JSON."""
    typer.echo(indented_json(_header(error.document)))


def _header(error: Mapping[str, Any] | None) -> dict[str, Any]:
    command = " ".join(command_words(sys.argv[1:]))
    header = {"schema": JSON_SCHEMA, "version": __version__, "command": command}
    return {_HEADER: header, _ERROR: error}
