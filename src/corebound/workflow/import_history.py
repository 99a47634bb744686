"""`corebound import asv` without a terminal: read a project's results and extend its history."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from msgspec import Struct

from corebound.errors import Fault
from corebound.exchange import history_import
from corebound.exchange.asv import project as asv_project
from corebound.exchange.asv.environments import MergeOptions, rename_environments
from corebound.exchange.asv.project import AsvResults
from corebound.exchange.history_import import ImportSummary
from corebound.exchange.reading import Progress, clean, no_progress
from corebound.records.jsonl import RECORDS

# Projects have a few machines; a larger number suggests hosted runners.
_MANY_MACHINES = 5


class ImportedProject(Struct, frozen=True, kw_only=True):
    """What was read of a project, its history with it, and warnings about both."""

    source: AsvResults
    history: ImportSummary
    faults: tuple[Fault, ...]

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain data, as `corebound import asv --json` prints it."""
        source = self.source
        counts = {
            "commits_the_repository_does_not_have": source.unknown,
            "benchmarks_that_exist_no_longer": len(source.removed) or None,
            "files_of_a_commit_that_another_has_too": source.duplicates or None,
        }
        return {
            "project": source.project,
            "result_files": source.files,
            **{name: number for name, number in counts.items() if number is not None},
            **self.history.document,
            "faults": [asdict(fault) for fault in self.faults],
        }


def import_asv(
    folder: str | PathLike[str],
    *,
    project: str | None = None,
    repo: str | PathLike[str] | None = None,
    machine: str | None = None,
    under_test: Sequence[str] = (),
    records: str | PathLike[str] = RECORDS,
    progress: Progress = no_progress,
) -> ImportedProject:
    """Import the history of a project that asv measured, as `corebound import asv` does.

    Args:
        folder: The folder of asv.conf.json, that file, or a folder of results.
        project: The project's name; None takes the one in the configuration or the folder's.
        repo: A clone of its repository, for the subjects of commits.
        machine: A name; all machines are treated as one of this name.
        under_test: Requirements that are measured; series continue across their versions.
        records: The folder of records.
        progress: Called with the number of files read and the total.

    Returns:
        The project and its history; `document` is what the command prints with `--json`.

    Raises:
        InputError: The results cannot be read, or the history cannot be written.
    """
    folder, records = Path(folder), Path(records)
    merge_options = MergeOptions(machine=machine and clean(machine), under_test=tuple(under_test))
    source = asv_project.read(
        folder,
        name=project,
        repo=None if repo is None else Path(repo),
        progress=progress,
        records=records,
        merge_options=merge_options,
    )
    history = history_import.keep(
        source.project,
        source.series,
        records,
        rename=partial(rename_environments, names=source.names),
        removed=source.removed,
    )
    asv_project.keep_sources(records, source)
    faults = (
        *source.faults,
        *history.unit_changes,
        *_warn_of_single(folder, source, history, merge_options),
    )
    return ImportedProject(source=source, history=history, faults=faults)


def _warn_of_single(
    folder: Path, source: AsvResults, history: ImportSummary, merge_options: MergeOptions
) -> Iterator[Fault]:
    """Warn if most series have a single result, and of what may be the reason."""
    if history.single * 2 <= history.series:
        return
    machines = len({series.host for series in source.series})
    if merge_options.machine is None and machines >= _MANY_MACHINES:
        yield Fault(
            file=str(folder),
            line=None,
            what=f"the results are from {machines:,} machines, so most series have one result.",
            fix=f"If they are hosted runners of one kind, delete {history.file} and import again"
            " with --machine NAME, which treats them as one.",
        )
    if source.commit_specific and not merge_options.under_test:
        name = source.commit_specific[0]
        yield Fault(
            file=str(folder),
            line=None,
            what=f"each commit was measured with another {name}, so most series have one result.",
            fix=f"If {name} is what is measured, delete {history.file} and import again"
            f" with --under-test {shlex.quote(name)}, which continues series across versions.",
        )
