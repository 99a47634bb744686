"""Import results of other tools, from a script or a notebook."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from corebound.api.arguments import path_or_none
from corebound.exchange.asv.environments import MergeOptions
from corebound.exchange.reading import clean
from corebound.records.jsonl import RECORDS
from corebound.workflow import import_history, import_profile
from corebound.workflow import import_results as result_files
from corebound.workflow.import_history import ImportedProject
from corebound.workflow.import_profile import StoredProfile
from corebound.workflow.import_results import ImportedResults, Tool


def import_results(
    tool: Tool,
    *files: str | PathLike[str],
    project: str | None = None,
    host: str | None = None,
    commit: str | None = None,
    date: str | None = None,
    records: str | PathLike[str] = RECORDS,
) -> ImportedResults:
    """Import result files of another tool, as `corebound import` does.

    Args:
        tool: `pytest-benchmark`, `pyperf`, `hyperfine`, `google-benchmark`, `criterion`,
            `github-action-benchmark` or `bencher`.
        files: Files with results, or folders of them; of Criterion, `target/criterion`.
        project: The project's name; None takes the tool's.
        host: The name of the machine that measured; None takes the files' own.
        commit: The commit that was measured, as git knows it in the current folder; None takes the
            files' own.
        date: When it was measured, ISO 8601; None takes the files' own, or that of their last
            change.
        records: The folder of records.

    Returns:
        The project and its history; `document` is what the command prints with `--json`.

    Raises:
        InputError: The tool is unknown, no file can be read, or the commit or the date is invalid.
    """
    return result_files.import_results(
        tool,
        [Path(file) for file in files],
        Path(records),
        lambda _done, _total: None,
        project=project,
        host=host,
        commit=commit,
        date=date,
    )


def import_asv(
    folder: str | PathLike[str],
    *,
    project: str | None = None,
    repo: str | PathLike[str] | None = None,
    machine: str | None = None,
    under_test: Sequence[str] = (),
    records: str | PathLike[str] = RECORDS,
) -> ImportedProject:
    """Import the history of a project that asv measured, as `corebound import asv` does.

    Args:
        folder: The folder of asv.conf.json, that file, or a folder of results.
        project: The project's name; None takes the one in the configuration or the folder's.
        repo: A clone of its repository, for the subjects of commits.
        machine: A name; all machines are treated as one of this name.
        under_test: Requirements that are measured; series continue across their versions.
        records: The folder of records.

    Returns:
        The project and its history; `document` is what the command prints with `--json`.

    Raises:
        InputError: The results cannot be read, or the history cannot be written.
    """
    return import_history.import_asv(
        Path(folder),
        Path(records),
        lambda _done, _total: None,
        project=project,
        repo=path_or_none(repo),
        merge_options=MergeOptions(
            machine=machine and clean(machine), under_test=tuple(under_test)
        ),
    )


def import_profiles(
    *files: str | PathLike[str],
    name: str | None = None,
    records: str | PathLike[str] = RECORDS,
) -> tuple[StoredProfile, ...]:
    """Import operator profiles of PyTorch, TensorFlow, MindSpore or msprof.

    Args:
        files: Files that profilers have written, or folders of them.
        name: The profile's name in the report; None takes that of the file or folder.
        records: The folder of records.

    Returns:
        Each profile with the file that it is stored in.

    Raises:
        InputError: A file cannot be read, or a profile cannot be written.
    """
    return import_profile.import_profiles(
        [Path(file) for file in files],
        Path(records),
        lambda _file, _done, _total: None,
        name=name,
    )
