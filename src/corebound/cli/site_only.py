"""The report of some scenarios, or of some of what was imported, alone."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from corebound.errors import InputError
from corebound.model.profile import ImportedProfile
from corebound.model.series import Series
from corebound.report.view.records import Record


class Known(Struct, frozen=True, kw_only=True):
    """What a report is made of.

    Attributes:
        records: Every run with its launches.
        series: Every history.
        profiles: The operator profiles that were imported.
    """

    records: tuple[Record, ...]
    series: tuple[Series, ...]
    profiles: tuple[ImportedProfile, ...]


def narrowed(known: Known, wanted: Sequence[str]) -> Known:
    """What there is of the scenarios, and of what was imported, of these names.

    Args:
        known: All there is.
        wanted: Names, or patterns of them as a shell has; without any all is wanted.

    Raises:
        InputError: nothing has such a name.
    """
    if not wanted:
        return known

    def is_wanted(name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in wanted)

    kept: list[Record] = []
    for run, launches in known.records:
        sources = tuple(one for one in run.scenarios if is_wanted(str(one.document.get("name"))))
        if sources:
            own = tuple(launch for launch in launches if is_wanted(launch.cell.scenario))
            kept.append((replace(run, scenarios=sources), own))
    series = tuple(
        one
        for one in known.series
        if is_wanted(one.scenario) or (one.project is not None and is_wanted(one.project))
    )
    profiles = tuple(one for one in known.profiles if is_wanted(one.name))
    if not kept and not series and not profiles:
        raise InputError(
            what="no scenario has such a name, and no imported project, benchmark or profile.",
            where=f"--only {' --only '.join(wanted)}",
            mend="Give a name that the report shows, or a pattern such as 'resnet50*'.",
        )
    return Known(records=tuple(kept), series=series, profiles=profiles)
