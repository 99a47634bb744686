"""The format of all `--json` output: the result of a command, or its error, with a header.

Every document is an object. `corebound` is its header: the version of the format, that of
corebound, and the command. `error` is null, or what is wrong, where, and how to fix it. The other
keys are the command's result; a result that is a list is under `results`.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping
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
# Characters of text.
_MOST_IN_MEMORY, _AT_ONCE = 2**23, 2**16


def indented_json(document: object) -> str:
    """Serialise a document as indented JSON, without a header."""
    return json_text(msgspec.json.format(msgspec.json.encode(document), indent=1).decode())


def result_json(result: object) -> Iterator[str]:
    """The result of the current command as pieces of indented JSON.

    The items of an iterator in it are made and encoded one after the other, since tens of thousands
    of them as plain data take much more memory than as text.

    Raises:
        ValueError: A key of the result is one of the header's.
    """
    plain = result if isinstance(result, Mapping) else msgspec.to_builtins(result)
    document: Mapping[str, Any] = plain if isinstance(plain, Mapping) else {"results": plain}
    if taken := {_HEADER, _ERROR} & document.keys():
        raise ValueError(f"{taken} are keys of the header")
    return _pieces({**_header(None), **document})


def _pieces(document: Mapping[str, Any]) -> Iterator[str]:
    before = "{"
    for key, value in document.items():
        yield f"{before}\n {indented_json(key)}: "
        if isinstance(value, Iterator):
            yield from _items(value)
        else:
            yield _nested(value, 1)
        before = ","
    yield "\n}\n"


def _items(items: Iterator[object]) -> Iterator[str]:
    before = "["
    for item in items:
        yield f"{before}\n  {_nested(item, 2)}"
        before = ","
    yield "[]" if before == "[" else "\n ]"


def _nested(value: object, depth: int) -> str:
    # A line break is only ever between values: within a string it is an escape.
    return indented_json(value).replace("\n", "\n" + depth * " ")


def print_json(result: object) -> None:
    """Print the result of the current command as JSON, or nothing if making it fails."""
    # The text of a long history takes more memory than its analysis.
    with tempfile.SpooledTemporaryFile(_MOST_IN_MEMORY, "w+", encoding="utf-8") as text:
        for piece in result_json(result):
            text.write(piece)  # several at once would all stay in memory
        text.seek(0)
        while some := text.read(_AT_ONCE):
            typer.echo(some, nl=False)


def print_json_line(result: Mapping[str, Any]) -> None:
    """Print one of several results of the current command as a line of JSON Lines."""
    document = msgspec.json.encode({**_header(None), **result})
    typer.echo(json_text(document.decode()))


def print_json_error(error: CoreboundError) -> None:
    """Print the error that ended the command as JSON."""
    typer.echo(indented_json(_header(error.document)))


def _header(error: Mapping[str, Any] | None) -> dict[str, Any]:
    command = " ".join(command_words(sys.argv[1:]))
    header = {"schema": JSON_SCHEMA, "version": __version__, "command": command}
    return {_HEADER: header, _ERROR: error}
