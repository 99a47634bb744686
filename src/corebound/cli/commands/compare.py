"""`corebound compare`: two runs, or two commits, cell by cell; or all hosts of the records."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from corebound.analysis.json_documents import compare_document, hosts_document
from corebound.cli.options import Json, Quiet, notifier
from corebound.cli.output.console import Console
from corebound.cli.output.json import print_json
from corebound.cli.output.sections import print_sections
from corebound.errors import InputError
from corebound.present.compare import compare_sections
from corebound.present.hosts import By, hosts_sections
from corebound.present.markdown import markdown
from corebound.present.sections import Section
from corebound.records.jsonl import RECORDS
from corebound.workflow.compare import compare_recorded
from corebound.workflow.hosts import compare_recorded_hosts
from corebound.workflow.options import Argument, Metric, Option, ProjectName, Records

Format = Literal["text", "md"]


def compare(
    names: Annotated[
        tuple[str, ...],
        Argument(
            "Two runs (id, start of it, file) or commits (hash, tag);"
            " with --by, scenario files to compare.",
            metavar="A B",
        ),
    ] = (),
    *,
    by: Annotated[By | None, Option("Compare all hosts of the records, or their classes.")] = None,
    project: ProjectName = None,
    metric: Metric = "time",
    records: Records = RECORDS,
    quiet: Quiet = False,
    as_json: Json = False,
    form: Annotated[Format, Option("Output format.", name="--format")] = "text",
    show_all: Annotated[
        bool, Option("Also list rows without a clear difference.", name="--all")
    ] = False,
) -> None:
    """Compare two runs, two commits or all hosts.

    Examples:
        corebound compare 1f0c 9be1
        corebound compare v1.2 v1.3 --format md
        corebound compare --by class scenarios/matmul.yaml
    """
    console = Console(stderr=True, quiet=quiet)
    document: object
    sections: Iterable[Section]
    if by is not None:
        files = [Path(name) for name in names]
        hosts = compare_recorded_hosts(records, files, notifier(console))
        document, sections = hosts_document(hosts), hosts_sections(hosts, by=by, show_all=show_all)
    else:
        if len(names) != 2:
            raise InputError(
                what="compare takes two runs or two commits.",
                where=" ".join(["corebound compare", *names]),
                fix="Name two, such as `corebound compare 1f0c 9be1`, or compare hosts with --by.",
            )
        result = compare_recorded(
            *names, records, notifier(console), console.status, project=project, metric=metric
        )
        document, sections = compare_document(result), compare_sections(result, show_all=show_all)
    if as_json:
        print_json(document)
    elif form == "md":
        typer.echo(markdown(sections))
    else:
        print_sections(sections, Console())
