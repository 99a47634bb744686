"""`corebound report`: render the static site."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from corebound.cli.options import Json, Output
from corebound.cli.output.console import Console
from corebound.cli.serve import serve_site
from corebound.records.decisions import DECISIONS_FILE
from corebound.records.jsonl import RECORDS
from corebound.workflow.options import Option, Records, Status
from corebound.workflow.publish import DEFAULT_SITE
from corebound.workflow.report import WrittenSite, write_site


def report(
    *,
    records: Records = RECORDS,
    out: Annotated[Path, Option("Folder to write the site to.")] = DEFAULT_SITE,
    status: Status = DECISIONS_FILE,
    only: Annotated[
        tuple[str, ...],
        Option(
            "Scenario, or imported project, benchmark or profile; a name or pattern; repeatable."
        ),
    ] = (),
    compare: Annotated[
        tuple[str, ...], Option("Add a page for two runs or commits; repeatable.", metavar="A..B")
    ] = (),
    address: Annotated[
        str,
        Option(
            "Where the site will be published; link previews then have an image.", metavar="URL"
        ),
    ] = "",
    open_: Annotated[bool, Option("Open the site in the browser.")] = False,
    serve: Annotated[bool, Option("Serve the site on this machine, and update it.")] = False,
    port: Annotated[int, Option("Port of --serve; 0: any free port.", min=0, max=65535)] = 8000,
    console: Console,
    as_json: Json = False,
) -> None:
    """Write the static site from all records.

    Examples:
        corebound report --open
        corebound report --serve
        corebound report --only 'resnet50*' --compare v1.2..v1.3
    """

    def build() -> WrittenSite:
        # Progress is shown only on a terminal, and only temporarily.
        with console.status("Writing the report") as shown:

            def progress(step: str, done: int, total: int) -> None:
                if console.is_terminal:
                    shown.update(Text(f"{step}: {done:,} of {total:,}"))

            return write_site(
                out,
                records=records,
                status=status,
                only=only,
                compare=compare,
                address=address,
                notify=console.print_line,
                progress=progress,
            )

    written = build()
    Output(written, lambda: typer.echo(written.document["index"])).print(as_json=as_json)
    if open_:
        typer.launch(str(written.index.resolve()))
    if serve:
        serve_site(out, (records, status), build, console.print_line, port=port)
