"""`corebound example`: the scenarios that come with corebound."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from corebound.cli.options import Output
from corebound.workflow.examples import examples, write_examples
from corebound.workflow.options import Argument, Option


def example(
    names: Annotated[tuple[str, ...], Argument("Scenarios to write.", metavar="[NAME...]")] = (),
    *,
    into: Annotated[Path, Option("Folder to write them to.", metavar="DIR")] = Path(),
) -> Output:
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
        return Output(listed, lambda: _print([(row.name, row.question) for row in listed]))
    written = write_examples(*names, into=into)
    rows = [(result, str(into / file)) for file, result in written.files.items()]
    return Output(written, lambda: _print(rows))


def _print(rows: Sequence[tuple[str, str]]) -> None:
    width = max(len(first) for first, _ in rows)
    for first, second in rows:
        typer.echo(f"{first:{width}}  {second}")
