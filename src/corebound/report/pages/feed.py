"""The Atom feed of changes (RFC 4287)."""

import hashlib
import re
from collections.abc import Sequence

from corebound import text
from corebound.present.changes import ChangeGroup, group_changes
from corebound.report.elements import Content
from corebound.report.inputs import PageContext
from corebound.report.urls import series_url

_MOST_ENTRIES = 100
_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_NO_MOMENT = "1970-01-01T00:00:00Z"


def feed(context: PageContext, *, records: str = "") -> Content:
    """Build the feed of all clear changes; without any it is empty and has the context's time.

    If they do not fit, regressions take precedence over improvements, then later changes. `records`
    is as in `CommandLine.at`.
    """
    history = context.history
    groups = group_changes(history.changes, history)
    entries = tuple(_entry(group, records) for group in _shown(groups))
    updated = max((entry.updated for entry in entries), default=rfc3339(context.now))
    return Content(id=_urn("changes"), updated=updated, entries=entries)


def _shown(groups: Sequence[ChangeGroup]) -> list[ChangeGroup]:
    """The groups that fit, in their order."""
    worse_first = sorted(range(len(groups)), key=lambda at: not groups[at].change.is_regression)
    return [groups[at] for at in sorted(worse_first[:_MOST_ENTRIES])]


def _entry(row: ChangeGroup, records: str) -> Content:
    parts = [row.change_cell.text, f"on {row.location}", row.status_cell.text, row.commits.text]
    if row.command:
        parts.append(f"reproduce: {row.command.at(records)}")
    return Content(
        # The smallest id, not that of the largest change: sizes vary between nightly runs.
        id=_urn(min(change.id for change in row.changes)),
        title=text.xml(f"{row.size.sign} {row.size.word}: {row.change.series.title}, {row.name}"),
        updated=rfc3339(min(change.first_bad.at for change in row.changes)),
        address=series_url(row.change.series),
        summary=text.xml("; ".join(parts)),
    )


def rfc3339(moment: str) -> str:
    """A timestamp in Atom's format; an invalid one becomes 1 January 1970.

    >>> rfc3339("2026-03-14"), rfc3339("2026-03-14T02:00:00Z"), rfc3339("tonight")
    ('2026-03-14T00:00:00Z', '2026-03-14T02:00:00Z', '1970-01-01T00:00:00Z')
    """
    if _DAY.fullmatch(moment):
        return f"{moment}T00:00:00Z"
    return moment if _MOMENT.fullmatch(moment) else _NO_MOMENT


def _urn(name: str) -> str:
    """A stable identifier: a UUID of version 8 (RFC 9562), made from the name's hash."""
    digest = hashlib.sha256(f"corebound {name}".encode()).hexdigest()
    return f"urn:uuid:{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-a{digest[17:20]}-{digest[20:32]}"
