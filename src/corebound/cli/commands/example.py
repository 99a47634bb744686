"""`corebound example`: the scenarios that come with corebound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from corebound.cli.options import Json
from corebound.cli.output.json import print_json
from corebound.workflow.examples import example_texts, examples
from corebound.workflow.init import write_files


def example(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="Scenarios to write.")
    ] = None,
    *,
    into: Annotated[
        Path, typer.Option("--into", metavar="DIR", help="Folder to write them to.")
    ] = Path(),
    as_json: Json = False,
) -> None:
    """List the scenarios of corebound, or write some as files.

    With a scenario come the modules whose functions it measures. Existing files are not
    overwritten.

    Examples:
        corebound example
        corebound example example-function several-processes
        corebound run example-function.yaml --profile quick
    """
    if not names:
        listed = examples()
        if as_json:
            print_json(listed)
            return
        width = max(len(row.name) for row in listed)
        for row in listed:
            typer.echo(f"{row.name:{width}}  {row.question}")
        return
    texts = {file: text for name in names for file, text in example_texts(name).items()}
    results = write_files(texts, into)
    if as_json:
        print_json({"folder": str(into.resolve()), "files": results})
        return
    width = max(map(len, results.values()))
    for file, result in results.items():
        typer.echo(f"{result:{width}}  {into / file}")
