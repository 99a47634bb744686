"""`corebound example`: the scenarios that come with corebound."""

from pathlib import Path
from typing import Annotated

import typer

from corebound.cli.options import Json
from corebound.cli.output.json import print_json
from corebound.workflow.examples import examples, write_examples
from corebound.workflow.options import Argument, Option


def example(
    names: Annotated[tuple[str, ...], Argument("Scenarios to write.", metavar="[NAME...]")] = (),
    *,
    into: Annotated[Path, Option("Folder to write them to.", metavar="DIR")] = Path(),
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
    written = write_examples(*names, into=into)
    if as_json:
        print_json(written)
        return
    width = max(map(len, written.files.values()))
    for file, result in written.files.items():
        typer.echo(f"{result:{width}}  {into / file}")
