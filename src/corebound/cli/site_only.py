"""The report of some scenarios alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from corebound.errors import InputError
from corebound.model.series import Series
from corebound.report.view.records import Record


def narrowed(
    records: Sequence[Record], series: Sequence[Series], wanted: Sequence[str]
) -> tuple[list[Record], tuple[Series, ...]]:
    """What there is of the scenarios and imported benchmarks of these names.

    Args:
        records: Every run with its launches.
        series: Every history.
        wanted: Names, or patterns of them as a shell has; without any all is wanted.

    Raises:
        InputError: nothing has such a name.
    """
    if not wanted:
        return list(records), tuple(series)

    def is_wanted(name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in wanted)

    kept: list[Record] = []
    for run, launches in records:
        sources = tuple(one for one in run.scenarios if is_wanted(str(one.document.get("name"))))
        if sources:
            own = tuple(launch for launch in launches if is_wanted(launch.cell.scenario))
            kept.append((replace(run, scenarios=sources), own))
    histories = tuple(one for one in series if is_wanted(one.scenario))
    if not kept and not histories:
        raise InputError(
            what="no scenario and no imported benchmark has such a name.",
            where=f"--only {' --only '.join(wanted)}",
            mend="Give a scenario's name, or a pattern such as 'resnet50*'.",
        )
    return kept, histories
