"""`corebound import profile`: import operator profiles of other tools."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from rich.progress import DownloadColumn
from rich.table import Table
from rich.text import Text

from corebound.cli.options import Output
from corebound.cli.output.console import Console, print_table
from corebound.cli.output.reading_progress import ReadingProgress
from corebound.records.jsonl import RECORDS
from corebound.records.launch_record import ImportedProfile, OperatorProfile
from corebound.units import duration, percent
from corebound.worker.operator_table import Operator
from corebound.workflow.import_profile import StoredProfile, import_profiles
from corebound.workflow.options import Argument, Option, Records

# The report and --json list all types.
_MAX_TYPES = 20


def profile(
    paths: Annotated[
        tuple[Path, ...],
        Argument("Files written by profilers, or folders of them.", metavar="FILE..."),
    ],
    *,
    name: Annotated[str | None, Option("Name in the report.")] = None,
    records: Records = RECORDS,
    console: Console,
) -> Output:
    """Import operator profiles of other tools.

    Formats: PyTorch, TensorFlow, MindSpore and Ascend's msprof.

    Examples:
        corebound import profile trace.json
        corebound import profile profiles/ --name resnet50
    """
    with ReadingProgress(console, DownloadColumn()) as bar:
        stored = import_profiles(
            *paths,
            name=name,
            records=records,
            progress=lambda file, done, total: bar.show(file.name, done, total),
        )
    return Output(stored, partial(_show, stored, Console()))


def _show(stored: Sequence[StoredProfile], console: Console) -> None:
    for each in stored:
        console.print(_heading(each.profile), soft_wrap=True)
        print_table(_table(each.profile.profile), console)
        console.print_line(f"Stored in {each.file}\n")


def _heading(imported: ImportedProfile) -> Text:
    """The profile's name, and what its values cover."""
    profile = imported.profile
    if profile.iterations is None:
        scope = "of the whole profile, because it does not show iterations"
    else:
        scope = f"per iteration, over {profile.iterations}"
    if profile.step_ns is not None and profile.iterations is not None:
        scope += f"; a step took {duration(profile.step_ns)}"
    heading = Text.assemble(
        (imported.name, "bold"), f": {imported.source}\n", (f"Values are {scope}.", "dim")
    )
    if profile.phases:
        phases = ", ".join(f"{name} {duration(ns)}" for name, ns in profile.phases.items())
        heading.append(f"\n{phases}", "dim")
    return heading


def _table(profile: OperatorProfile) -> Table:
    """Types of operators, most time first; a dash marks a value that the file lacks."""
    sum_ns = sum(operator.total_ns for operator in profile.operators)
    whole_ns = sum_ns if profile.step_ns is None else profile.step_ns
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("Operator", ratio=1, overflow="ellipsis", no_wrap=True)
    for column in ("Calls", "Total", "Mean", "Max", "Min", "Ratio"):
        table.add_column(column, justify="right", no_wrap=True)
    for operator in profile.operators[:_MAX_TYPES]:
        table.add_row(*_row(operator, whole_ns))
    others = profile.operators[_MAX_TYPES:]
    if others:
        others_ns = sum(operator.total_ns for operator in others)
        table.add_row(
            f"{len(others)} other types",
            "",
            duration(others_ns),
            "",
            "",
            "",
            _ratio(others_ns, whole_ns),
        )
    if profile.outside_ns is not None:
        share = _ratio(profile.outside_ns, whole_ns)
        table.add_row("outside operators", "", duration(profile.outside_ns), "", "", "", share)
    return table


def _row(operator: Operator, whole_ns: int) -> tuple[Text | str, ...]:
    calls = (
        f"{operator.calls:,.0f}"
        if operator.calls == round(operator.calls)
        else f"{operator.calls:,.1f}"
    )
    return (
        Text(operator.type),
        calls,
        duration(operator.total_ns),
        duration(operator.mean_ns),
        "–" if operator.max_ns is None else duration(operator.max_ns),
        "–" if operator.min_ns is None else duration(operator.min_ns),
        _ratio(operator.total_ns, whole_ns),
    )


def _ratio(part_ns: int, whole_ns: int) -> str:
    return percent(part_ns / whole_ns) if whole_ns else "–"
