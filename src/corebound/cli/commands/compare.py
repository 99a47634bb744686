"""`corebound compare`: two runs, or two commits, cell by cell; or all hosts of the records."""

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from corebound.analysis.json_documents import compare_document, hosts_document
from corebound.cli.options import Output
from corebound.cli.output.console import Console
from corebound.cli.output.sections import print_text_or_markdown
from corebound.errors import InputError
from corebound.present.compare import compare_sections
from corebound.present.hosts import By, hosts_sections
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
    console: Console,
    form: Annotated[Format, Option("Output format.", name="--format")] = "text",
    show_all: Annotated[
        bool, Option("Also list rows without a clear difference.", name="--all")
    ] = False,
) -> Output:
    """Compare two runs, two commits or all hosts.

    Examples:
        corebound compare 1f0c 9be1
        corebound compare v1.2 v1.3 --format md
        corebound compare --by class scenarios/matmul.yaml
    """
    show = partial(print_text_or_markdown, is_markdown=form == "md")
    if by is not None:
        files = [Path(name) for name in names]
        hosts = compare_recorded_hosts(records, files, console.print_line)
        sections = hosts_sections(hosts, by=by, show_all=show_all)
        return Output(partial(hosts_document, hosts), partial(show, sections))
    if len(names) != 2:
        raise InputError(
            what="compare takes two runs or two commits.",
            where=" ".join(["corebound compare", *names]),
            fix="Name two, such as `corebound compare 1f0c 9be1`, or compare hosts with --by.",
        )
    result = compare_recorded(
        *names, records, console.print_line, console.status, project=project, metric=metric
    )
    sections = compare_sections(result, show_all=show_all)
    return Output(partial(compare_document, result), partial(show, sections))
