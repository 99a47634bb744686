"""What was imported, on the first page: a line a project, and its benchmarks if they are few."""

from __future__ import annotations

from corebound.report.view.chronicle import Chronicle
from corebound.report.view.series_rows import SeriesGroup, series_groups
from corebound.report.view.words import count

# Of more benchmarks the page of the history has the list.
_MOST = 50


def benchmarks(known: Chronicle) -> tuple[SeriesGroup, ...]:
    """The benchmarks of all projects; none where they are too many for a first page."""
    imported = [one for one in known.histories if one.project is not None]
    each = {(one.project, one.host, one.scenario) for one in imported}
    return series_groups(imported, known) if len(each) <= _MOST else ()


def projects(known: Chronicle) -> tuple[str, ...]:
    """What was imported, in words, a project each."""
    found: dict[str, list[tuple[str, str]]] = {}
    for one in known.histories:
        if one.project is not None:
            found.setdefault(one.project, []).append((one.scenario, one.host))
    return tuple(
        f"{project}: {count(len({name for name, _ in all_}), 'benchmark')} on "
        f"{count(len({host for _, host in all_}), 'machine')}"
        for project, all_ in sorted(found.items())
    )
