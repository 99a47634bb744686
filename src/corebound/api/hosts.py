"""Results across hosts, from a script or a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corebound.analysis.host_comparison import HostComparison
from corebound.analysis.serialize import hosts_document
from corebound.api.shown import Shown
from corebound.present.hosts import classes_table
from corebound.workflow.hosts import compare_recorded_hosts
from corebound.workflow.projects import Notify


class HostResults(Shown, frozen=True, kw_only=True):
    """The results of all hosts, each relative to its own baseline.

    Attributes:
        comparison: The `classes` of hosts, the `scenarios` with their values by class, and the
            `outliers`.
        document: The same as plain data, as `corebound compare --by host --json` prints it.
    """

    comparison: HostComparison
    document: Mapping[str, Any]

    def table(self) -> tuple[Sequence[str], list[tuple[str, ...]]]:
        """Each class of hosts with its hosts."""
        columns, rows = classes_table(self.comparison).in_words
        return [column.heading for column in columns], [*rows]


def compare_hosts(records: Path, scenario_files: list[Path], notify: Notify) -> HostResults:
    """Compare all hosts of a folder of records; see `Results.hosts`."""
    comparison = compare_recorded_hosts(records, scenario_files, notify)
    return HostResults(comparison=comparison, document=hosts_document(comparison))
